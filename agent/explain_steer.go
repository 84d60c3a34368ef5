package agent

import (
	"encoding/hex"
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/te/srpolicy"
)

// entrances are where the head-end's packets come in, without the loop.
func (h *headendRole) entrances() []datapath.Attachment {
	return slices.DeleteFunc(slices.Clone(h.attachments), func(at datapath.Attachment) bool {
		return !slices.ContainsFunc(h.config.Interfaces,
			func(i datapath.HeadendInterface) bool { return i.Name == at.On })
	})
}

// model is the head-end in Go, without the kernel's FIB: which rule chooses a packet.
func (h *headendRole) model(n *config.Node) *model.Headend {
	m := &model.Headend{
		Sides: map[uint32]model.Side{}, Block: h.config.Block, Locators: h.config.Locators,
		Infrastructure: h.config.Infrastructure,
		Table:          h.table, Secret: n.Secret, HopLimit: h.config.HopLimit,
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Status: model.NextHopKernel}
		},
	}
	for _, at := range h.attachments {
		m.Sides[uint32(at.Index)] = at.Side
	}
	return m
}

// decide gives a frame to the program, and names what it met.
func (h *headendRole) decide(x *explaining, twin *model.Headend, e *api.Explanation,
	frame []byte) (datapath.Explained, error) {
	s := twin.Process(uint32(x.at.Index), 0, frame)
	if len(s.Results) > 0 {
		e.Flow = flowOf(s.Results[0].Flow)
	}
	if s.Entry < 0 {
		return x.program.Run(x.at.Index, frame)
	}
	entry := twin.Table[s.Entry]
	got, copies, err := x.program.Steer(x.at.Index, frame, entry.Index, len(entry.Lists))
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
func (h *headendRole) explained(c *api.PolicyChoice, list string,
	got datapath.Explained) api.ExplainedList {
	e := api.ExplainedList{List: list, Verdict: got.Verdict.String(), Reason: got.Reason}
	for _, p := range h.steering.policies {
		for _, path := range p.Paths {
			i := slices.IndexFunc(path.Lists, func(l srpolicy.List) bool { return l.Name == list })
			if p.Name == c.Name && path.Name == c.Path && i >= 0 {
				e.Segments, e.Flow = path.Lists[i].Segments, path.Lists[i].Flow
			}
		}
	}
	switch got.Verdict {
	case model.Transmit, model.Redirect:
		e.NextHop = nextHopOf(got)
		e.Frame = hex.EncodeToString(got.Frame)
	case model.HandToKernel:
		e.Frame = hex.EncodeToString(got.Frame)
	}
	return e
}
