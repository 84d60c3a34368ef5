package datapath

import (
	"bytes"
	"fmt"

	"github.com/cilium/ebpf"

	"sextant/datapath/model"
)

// Explainer opens one for the program that runs on the head-end's interfaces of a side. Close it.
func (h *Headend) Explainer(side Side) (*Explainer, error) {
	spec, err := h.sideSpec(side)
	if err != nil {
		return nil, err
	}
	if h.programs[side] == nil {
		return nil, fmt.Errorf("explain packets: no interface of this head-end is %s",
			sideNames[side])
	}
	x, err := newExplainer(h.collection, spec, "headend", h.programs[side])
	if err == nil {
		x.loop = h.loop.inner
	}
	return x, err
}

// Explainer opens one for the program that runs on the egress's interfaces. Close it.
func (m *Merge) Explainer() (*Explainer, error) {
	spec, err := m.spec()
	if err != nil {
		return nil, err
	}
	return newExplainer(m.collection, spec, "merge", m.programs["merge"])
}

// ListCopy is what the program did with a packet along one list of its policy's active path.
type ListCopy struct {
	Explained
	List int // in the order of the path
}

// Steer gives the head-end's program a frame. Which lists the packet took is what the program
// counted for its policy; if it is sent into the loop to be copied, the copies that come out are
// given to the program, too, as many as there are lists.
func (x *Explainer) Steer(ingress int, frame []byte, policy uint32,
	lists int) (Explained, []ListCopy, error) {
	before, err := listTraffic(x.maps["policy_traffic"], policy)
	if err != nil {
		return Explained{}, nil, err
	}
	got, err := x.Run(ingress, frame)
	if err != nil {
		return got, nil, err
	}
	if got.Outcome != "copied" {
		list, err := x.tookList(policy, &before)
		if err != nil || list < 0 {
			return got, nil, err
		}
		return got, []ListCopy{{got, list}}, nil
	}
	inside := bytes.Clone(got.Frame)
	got.Frame = inside[copyNoteLength:] // as it came: the note is the program's own
	var copies []ListCopy
	for range lists {
		c, err := x.Run(x.loop, inside)
		if err != nil {
			return got, nil, err
		}
		c.Frame = bytes.Clone(c.Frame)
		list, err := x.tookList(policy, &before)
		if err != nil {
			return got, nil, err
		}
		copies = append(copies, ListCopy{c, list})
	}
	return got, copies, nil
}

// tookList is the list that was counted since; -1: none was.
func (x *Explainer) tookList(policy uint32, before *policyTraffic) (int, error) {
	now, err := listTraffic(x.maps["policy_traffic"], policy)
	if err != nil {
		return -1, err
	}
	was := *before
	*before = now
	for i, t := range now.Lists {
		if t.Packets != was.Lists[i].Packets {
			return i, nil
		}
	}
	return -1, nil
}

// Merge gives the egress's program a frame. Ordered says that the packet waits for its turn before
// it goes on.
func (x *Explainer) Merge(ingress int, frame []byte) (got Explained, ordered bool, err error) {
	got, err = x.Run(ingress, frame)
	if err != nil || got.Verdict != model.Redirect || len(got.Frame) < orderNoteLength {
		return got, false, err
	}
	got.Verdict, got.Interface, got.Frame = model.HandToKernel, 0, got.Frame[orderNoteLength:]
	return got, true, nil
}

// NextNumber is the number with the sender's epoch that an instance would take for the next one; ok
// is false if it takes any.
func (x *Explainer) NextNumber(instance uint32) (number uint32, epoch uint8, ok bool, err error) {
	var slot recoverySlot
	if err := x.maps["recoveries"].Lookup(instance, &slot); err != nil {
		return 0, 0, false, fmt.Errorf("read what instance %d remembers: %w", instance, err)
	}
	state := slot.Recovery.State
	return uint32(state) + 1, uint8(state >> 32), state>>63 != 0, nil
}

// Lengths in bytes of what programs put in front of a frame on its way through a pair of
// interfaces: struct copy_note, struct order_note.
const copyNoteLength, orderNoteLength = 48, 24

// copyHistories copies the histories of all instances.
func copyHistories(to, from *ebpf.Map) error {
	for index := range from.MaxEntries() {
		var inner *ebpf.Map
		if err := from.Lookup(index, &inner); err != nil || inner == nil {
			continue // no such instance
		}
		info := ebpf.MapSpec{
			Name: "history", Type: inner.Type(), KeySize: inner.KeySize(),
			ValueSize: inner.ValueSize(), MaxEntries: inner.MaxEntries(),
			Flags: inner.Flags(),
		}
		own, err := copyMap(&info, inner, copyEntries)
		inner.Close()
		if err != nil {
			return err
		}
		err = to.Put(index, own)
		own.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
