package flowlets

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/state"
	"sextant/datapath"
	"sextant/datapath/model"
)

// Explain is role.Room.
func (r *Room) Explain(x *explain.Explaining, on string) (err error) {
	if x.At, err = explain.Arrival(r.Runs.Attachments, "flowlet_send", on); err != nil {
		return err
	}
	x.Decide = func(e *api.Explanation, frame []byte) (datapath.Explained, error) {
		return r.Runs.decide(x, e, frame)
	}
	x.Made = func(f api.Flow, kinds []string) ([]explain.Framed, error) {
		if _, known := r.Runs.Program.PathOf(endsOf(f)); known {
			kinds = kinds[len(kinds)-1:] // an opening would be another connection's
		}
		return x.Frames(f, kinds, nil)
	}
	x.Program, err = r.Runs.Program.Explainer()
	return err
}

func endsOf(f api.Flow) model.FlowletEnds {
	return model.FlowletEnds{Local: f.Source.Addr(), Remote: f.Destination.Addr(),
		LocalPort: f.Source.Port(), RemotePort: f.Destination.Port(),
		Protocol: state.ProtocolNumbers[f.Protocol]}
}

// decide gives a frame that leaves to the program, and names the path that it takes.
func (r *Role) decide(x *explain.Explaining, e *api.Explanation, frame []byte) (
	datapath.Explained, error) {
	got, err := x.Program.Leave(frame)
	if err != nil || got.Outcome == "" {
		return got, err
	}
	ends, ok := model.FlowletEndsOf(frame, false)
	if !ok {
		return got, nil
	}
	e.Flow = flowOf(ends)
	group := r.groupOf(ends.Remote)
	if group < 0 {
		return got, nil // the node file has changed meanwhile
	}
	c := &api.FlowletChoice{Group: r.config.Groups[group].Name, Choice: r.config.Choice}
	if c.Paths, err = r.pathsOf(group); err != nil {
		return got, err
	}
	e.Flowlet = c
	before, _ := r.Program.PathOf(ends)
	sent := destinationOf(got)
	for _, p := range c.Paths {
		if p.SID == before {
			c.Before = p.Name
		}
		if p.SID == sent {
			c.Path = p.Name
			e.Header = []api.HeaderSID{{Bytes: hex.EncodeToString(p.SID.AsSlice()), SID: p.SID,
				Role: "path", Name: p.Name, Does: "its segments one after the other, of which " +
					"the last takes the outer header off"}}
		}
	}
	return got, nil
}

// flowOf is nil for what is neither TCP nor UDP.
func flowOf(ends model.FlowletEnds) *api.Flow {
	for protocol, number := range state.ProtocolNumbers {
		if number == ends.Protocol {
			return &api.Flow{Protocol: protocol,
				Source:      netip.AddrPortFrom(ends.Local, ends.LocalPort),
				Destination: netip.AddrPortFrom(ends.Remote, ends.RemotePort)}
		}
	}
	return nil
}

// groupOf is the group whose destinations are the longest prefix of an address; -1: none.
func (r *Role) groupOf(to netip.Addr) int {
	found, longest := -1, -1
	for i, g := range r.Groups {
		for _, prefix := range g.Destinations {
			if prefix.Contains(to) && prefix.Bits() > longest {
				found, longest = i, prefix.Bits()
			}
		}
	}
	return found
}

// destinationOf is the SID that a frame which was sent goes to; the zero value: it has none.
func destinationOf(got datapath.Explained) (sid netip.Addr) {
	const etherType, address = 12, 14 + 24
	if b := got.Frame; got.Verdict == model.HandToKernel && len(b) >= address+16 &&
		binary.BigEndian.Uint16(b[etherType:]) == 0x86dd {
		sid, _ = netip.AddrFromSlice(b[address : address+16])
	}
	return sid
}
