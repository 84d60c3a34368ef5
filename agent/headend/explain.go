package headend

import (
	"encoding/hex"
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/te/srpolicy"
)

// entrances are where the head-end's packets come in, without the loop.
func (h *Role) entrances() []datapath.Attachment {
	return slices.DeleteFunc(slices.Clone(h.Attachments), func(at datapath.Attachment) bool {
		return !slices.ContainsFunc(h.Config.Interfaces,
			func(i datapath.HeadendInterface) bool { return i.Name == at.On })
	})
}

// model is the head-end in Go, without the kernel's FIB: which rule chooses a packet.
func (h *Role) model(n *config.Node) *model.Headend {
	m := &model.Headend{
		Sides: map[uint32]model.Side{}, Block: h.Config.Block, Locators: h.Config.Locators,
		Infrastructure: h.Config.Infrastructure,
		Table:          h.table, Secret: n.Secret, FlowHash: n.FlowHash,
		HopLimit: h.Config.HopLimit,
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Status: model.NextHopKernel}
		},
	}
	for _, at := range h.Attachments {
		m.Sides[uint32(at.Index)] = at.Side
	}
	return m
}

// decide gives a frame to the program, and names what it met.
func (h *Role) decide(x *explain.Explaining, twin *model.Headend, e *api.Explanation,
	frame []byte) (datapath.Explained, error) {
	s := twin.Process(uint32(x.At.Index), 0, frame)
	if len(s.Results) > 0 {
		e.Flow = explain.FlowOf(s.Results[0].Flow)
	}
	if s.Entry < 0 {
		return x.Program.Run(x.At.Index, frame)
	}
	entry := twin.Table[s.Entry]
	got, copies, err := x.Program.Steer(x.At.Index, frame, entry.Index, len(entry.Lists))
	if err != nil {
		return got, err
	}
	e.Policy = &api.PolicyChoice{
		Name: entry.Policy, Rule: matchText(entry.Match), Path: entry.Path,
		Action: config.SteeringAction(entry.Action.String()),
	}
	for _, c := range copies {
		if c.List < 0 || c.List >= len(entry.Lists) {
			continue // dropped before it was counted
		}
		e.Copies = append(e.Copies, h.explained(e.Policy, entry.Lists[c.List].List,
			c.Explained))
	}
	return got, nil
}

// explained is what became of a packet on a list.
func (h *Role) explained(c *api.PolicyChoice, list string,
	got datapath.Explained) api.ExplainedList {
	e := api.ExplainedList{List: list, Verdict: got.Verdict.String(), Reason: got.Reason}
	for _, p := range h.Steering.Policies {
		for _, path := range p.Paths {
			i := slices.IndexFunc(path.Lists, func(l srpolicy.List) bool { return l.Name == list })
			if p.Name == c.Name && path.Name == c.Path && i >= 0 {
				e.Segments, e.Flow = path.Lists[i].Segments, path.Lists[i].Flow
			}
		}
	}
	switch got.Verdict {
	case model.Transmit, model.Redirect:
		e.NextHop = explain.NextHopOf(got)
		e.Frame = hex.EncodeToString(got.Frame)
	case model.HandToKernel:
		e.Frame = hex.EncodeToString(got.Frame)
	}
	return e
}
