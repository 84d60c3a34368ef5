package datapath

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/datapath/model"
	"sextant/datapath/packetgen"
	"sextant/te/srpolicy"
)

// What is explained of a head-end's packets is what its program then does with them, list by list
// and copy by copy, and nothing of what runs is changed by it.
func TestExplainEqualsHeadend(t *testing.T) {
	w := newWorld(t)
	routeBackends(t)
	ends := newTwoHeadends(t, w, Mixed)
	world := packetgen.World{Block: netip.MustParsePrefix("fcbb:bb00::/32"),
		Infrastructure: []netip.Addr{netip.MustParseAddr("fd00:5e::77")}}
	for _, key := range edgeServices {
		world.Services = append(world.Services, packetgen.Service{Addr: key.VIP, Port: key.Port,
			Protocol: key.Protocol})
	}
	generator := packetgen.New(77, world)
	x, err := ends.program.Explainer(Mixed)
	must(t, err)
	defer x.Close()
	var given [][]byte
	for range min(*frames, 20_000) {
		if frame := generator.Next(); len(frame) >= minFrame {
			given = append(given, bytes.Clone(frame))
		}
	}
	type said struct {
		whole  Explained
		copies []ListCopy
		want   model.Steering
	}
	before := contents(t, ends.program.collection)
	var all []said
	for _, frame := range given {
		s := said{want: ends.model.Process(uint32(w.near), 0, frame)}
		policy, lists := uint32(0), 0
		if s.want.Entry >= 0 {
			policy, lists = ends.model.Table[s.want.Entry].Index,
				len(ends.model.Table[s.want.Entry].Lists)
		}
		s.whole, s.copies, err = x.Steer(w.near, frame, policy, lists)
		must(t, err)
		s.whole.Frame = bytes.Clone(s.whole.Frame)
		for i := range s.copies {
			s.copies[i].Frame = bytes.Clone(s.copies[i].Frame)
		}
		all = append(all, s)
	}
	if diff := cmp.Diff(before, contents(t, ends.program.collection)); diff != "" {
		t.Fatalf("explaining has changed the maps of the program that runs (-before +after):\n%s",
			diff)
	}
	arrival, loop := newRunner(ends.program.programs[Mixed], w.near),
		newRunner(ends.program.programs[Internal], ends.program.loop.inner)
	taken := map[int]int{}
	for i, frame := range given {
		s := all[i]
		code, after := arrival.run(t, frame)
		if s.want.Lists == nil && len(s.copies) != 0 || len(s.copies) > 0 &&
			!slices.Equal(listsOf(s.copies), s.want.Lists) {
			t.Fatalf("frame %d: explained lists %v, the model %v", i, listsOf(s.copies),
				s.want.Lists)
		}
		if s.whole.Outcome == "copied" {
			inside := bytes.Clone(after)
			for _, c := range s.copies {
				code, after := loop.run(t, inside)
				sameAsRun(t, i, c.Explained, code, after)
			}
		} else {
			sameAsRun(t, i, s.whole, code, after)
		}
		taken[len(s.copies)]++
	}
	for _, copies := range []int{0, 1, 2, 3, 4} {
		if taken[copies] == 0 {
			t.Errorf("no packet was sent along %d lists: %v", copies, taken)
		}
	}
}

func listsOf(copies []ListCopy) (lists []int) {
	for _, c := range copies {
		lists = append(lists, c.List)
	}
	return lists
}

// sameAsRun compares an explanation with a run of the program; but for the time that a number has.
func sameAsRun(t *testing.T, i int, got Explained, code uint32, after []byte) {
	t.Helper()
	verdict := code
	switch got.Verdict {
	case model.Pass, model.HandToKernel:
		verdict = xdpPass
	case model.Transmit:
		verdict = xdpTransmit
	case model.Redirect:
		verdict = xdpRedirect
	case model.Drop:
		if code != xdpDrop {
			t.Fatalf("frame %d: explained as dropped (%s), but the program returns %d", i,
				got.Reason, code)
		}
		return
	}
	if verdict != code || !bytes.Equal(untimed(got.Frame), untimed(after)) {
		t.Fatalf("frame %d: explained %v\n%x\nthe program returns %d\n%x", i, got.Verdict,
			got.Frame, code, after)
	}
}

// untimed is a frame without the timestamp of a redundancy TLV, which is the first behind the
// segments.
func untimed(frame []byte) []byte {
	frame = bytes.Clone(frame)
	at := ethernetHeader
	for at+4 < len(frame) && (frame[at-2] == 0x81 || frame[at-2] == 0x88) {
		at += 4
	}
	if len(frame) < at+ipv6Header+8 || frame[at]>>4 != 6 || frame[at+6] != 43 {
		return frame
	}
	tlv := at + ipv6Header + 8 + 16*(int(frame[at+ipv6Header+4])+1)
	if tlv+16 <= len(frame) && frame[tlv] == 124 {
		binary.BigEndian.PutUint32(frame[tlv+12:], 0)
	}
	return frame
}

// What is explained of packets to an egress, in the middle of streams, is what its program then
// does: which copy is the first, and which are dropped for what.
func TestExplainEqualsMerge(t *testing.T) {
	w := newWorld(t)
	merges := newTwoMerges(t, w)
	random := rand.New(rand.NewPCG(6, 6))
	senders := []*sender{newSender(t, random, srpolicy.TLV, mergeInstances[0]),
		newSender(t, random, srpolicy.SID, mergeInstances[1])}
	run := newRunner(merges.program.programs["merge"], w.near)
	next := func() []byte {
		for {
			if frame := senders[random.IntN(2)].next(); frame != nil {
				if random.IntN(50) == 0 {
					frame[ethernetHeader+ipv6Header+8+2*16+7] ^= 0x40 // of the flow, in a TLV
				}
				return frame
			}
		}
	}
	for range 3000 {
		run.run(t, next())
	}
	x, err := merges.program.Explainer()
	must(t, err)
	defer x.Close()
	before := contents(t, merges.program.collection)
	var all [][]byte
	var explained []Explained
	for range min(*frames, 20_000) {
		all = append(all, bytes.Clone(next()))
		got, ordered, err := x.Merge(w.near, all[len(all)-1])
		must(t, err)
		if ordered {
			t.Fatal("a packet was explained to wait, but nobody puts packets in order")
		}
		got.Frame = bytes.Clone(got.Frame)
		explained = append(explained, got)
	}
	if diff := cmp.Diff(before, contents(t, merges.program.collection)); diff != "" {
		t.Fatalf("explaining has changed the maps of the program that runs (-before +after):\n%s",
			diff)
	}
	reasons := map[string]int{}
	for i, frame := range all {
		code, after := run.run(t, frame)
		sameAsRun(t, i, explained[i], code, after)
		reasons[explained[i].Reason]++
	}
	for _, reason := range []string{"", "duplicate", "unknown_flow"} {
		if reasons[reason] == 0 {
			t.Errorf("no packet was explained as %q: %v", reason, reasons)
		}
	}
}
