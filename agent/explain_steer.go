package agent

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/forward"
	"sextant/steer"
)

// explainedRole is whose program is asked if the question does not say.
func (a *Agent) explainedRole() api.Role {
	switch {
	case a.edge != nil:
		return api.Edge
	case a.host != nil:
		return api.Host
	case a.headend != nil:
		return api.Headend
	case a.merge != nil:
		return api.Merge
	}
	return api.Host
}

// entrances are where the head-end's packets come in, without the loop.
func (h *headendRole) entrances() []datapath.Attachment {
	return slices.DeleteFunc(slices.Clone(h.attachments), func(at datapath.Attachment) bool {
		return !slices.ContainsFunc(h.config.Interfaces, func(i datapath.HeadendInterface) bool { return i.Name == at.On })
	})
}

// model is the head-end in Go, without the kernel's FIB: which rule chooses a packet.
func (h *headendRole) model(n *config.Node) *forward.Headend {
	m := &forward.Headend{
		Sides: map[uint32]forward.Side{}, Block: h.config.Block, Locators: h.config.Locators, Infrastructure: h.config.Infrastructure,
		Table: h.table, Secret: n.Secret, HopLimit: h.config.HopLimit,
		NextHop: func(netip.Addr, uint8) forward.NextHop { return forward.NextHop{Status: forward.NextHopKernel} },
	}
	for _, at := range h.attachments {
		m.Sides[uint32(at.Index)] = forward.Side(at.Side)
	}
	return m
}

// model is the egress in Go, without instances: what a packet carries.
func (m *mergeRole) model() *forward.Merge {
	model := &forward.Merge{
		Interfaces: map[uint32]struct{}{}, Block: m.config.Block, Locators: m.config.Locators, Infrastructure: m.config.Infrastructure,
	}
	for _, at := range m.attachments {
		model.Interfaces[uint32(at.Index)] = struct{}{}
	}
	for _, s := range m.config.SIDs {
		model.SIDs = append(model.SIDs, s.Prefix)
	}
	return model
}

func (x *explaining) onHeadend(e *api.Explanation, frame []byte) (datapath.Explained, error) {
	s := x.headend.Process(uint32(x.at.Index), 0, frame)
	if len(s.Results) > 0 {
		e.Flow = flowOf(s.Results[0].Flow)
	}
	if s.Entry < 0 {
		return x.program.Run(x.at.Index, frame)
	}
	entry := x.headend.Table[s.Entry]
	got, copies, err := x.program.Steer(x.at.Index, frame, entry.Index, len(entry.Lists))
	if err != nil {
		return got, err
	}
	e.Policy = &api.PolicyChoice{
		Name: entry.Policy, Rule: matchText(entry.Match), Path: entry.Path, Action: config.SteeringAction(entry.Action.String()),
	}
	for _, c := range copies {
		if c.List < 0 || c.List >= len(entry.Lists) {
			continue // dropped before it was counted
		}
		e.Copies = append(e.Copies, x.agent.headend.explained(e.Policy, entry.Lists[c.List].List, c.Explained))
	}
	return got, nil
}

// explained is what became of a packet on a list.
func (h *headendRole) explained(c *api.PolicyChoice, list string, got datapath.Explained) api.ExplainedList {
	e := api.ExplainedList{List: list, Verdict: got.Verdict.String(), Reason: got.Reason}
	for _, p := range h.steering.policies {
		for _, path := range p.Paths {
			i := slices.IndexFunc(path.Lists, func(l steer.List) bool { return l.Name == list })
			if p.Name == c.Name && path.Name == c.Path && i >= 0 {
				e.Segments, e.Flow = path.Lists[i].Segments, path.Lists[i].Flow
			}
		}
	}
	switch got.Verdict {
	case forward.Transmit, forward.Redirect:
		e.NextHop = nextHopOf(got)
		e.Frame = hex.EncodeToString(got.Frame)
	case forward.HandToKernel:
		e.Frame = hex.EncodeToString(got.Frame)
	}
	return e
}

func (x *explaining) onMerge(e *api.Explanation, frame []byte) (datapath.Explained, error) {
	r := x.merge.Process(uint32(x.at.Index), 0, frame)
	got, waits, err := x.program.Merge(x.at.Index, frame)
	if err != nil {
		return got, err
	}
	if r.SID.IsValid() {
		e.SID = &api.SID{Prefix: r.SID, Behavior: "End.MERGE"}
	}
	if r.Number != nil {
		e.Copy = &api.ExplainedCopy{
			Flow: r.Number.Flow, Number: r.Number.Sequence, Epoch: r.Number.Epoch, First: got.Verdict != forward.Drop, Waits: waits,
		}
	}
	if got.Verdict == forward.HandToKernel {
		e.Flow = flowWithin(got.Frame)
	}
	return got, nil
}

// flowWithin reads the flow of a decapsulated packet.
func flowWithin(frame []byte) *api.Flow {
	const here = 1
	reader := forward.Headend{Sides: map[uint32]forward.Side{here: forward.Internal}}
	if s := reader.Process(here, 0, frame); len(s.Results) > 0 {
		return flowOf(s.Results[0].Flow)
	}
	return nil
}

// copiesOf are the copies of a flow's next packet, one by each path of the first protected flow.
func (x *explaining) copiesOf(f api.Flow) ([]framed, error) {
	m := x.agent.merge
	if len(m.instances) == 0 || len(x.merge.Infrastructure) == 0 {
		return nil, &api.Error{
			Code: api.Conflict, Message: "this egress has no protected flow; give packets instead: sextant explain -r FILE",
		}
	}
	i := m.instances[0]
	number, epoch, _, err := x.program.NextNumber(i.Index)
	if err != nil {
		return nil, err
	}
	inner, err := x.frameOf(f, "following")
	if err != nil {
		return nil, err
	}
	form := steer.TLV
	if i.Form == config.NumberedInSID {
		form = steer.SID
	}
	protocol := uint8(41)
	if f.Source.Addr().Is4() {
		protocol = 4
	}
	var copies []framed
	for _, flow := range i.Instance.Flows {
		policy := steer.Policy{Name: "p", Paths: []steer.CandidatePath{{Action: steer.Path, Lists: []steer.List{{
			Name: "l", Segments: []netip.Addr{i.Prefix.Addr()}, Redundancy: form, Flow: flow, Reduced: true,
		}}}}}
		source := steer.Source{Addr: x.merge.Infrastructure[0].Addr(), HopLimit: 64, Epoch: epoch}
		table, err := steer.Compile([]steer.Rule{{Policy: "p"}}, []steer.Policy{policy}, source, nil)
		if err != nil {
			return nil, fmt.Errorf("make a copy of the flow %s -> %s: %w", f.Source, f.Destination, err)
		}
		header := table[0].Lists[0]
		octets := bytes.Clone(header.Octets)
		header.Fill(octets, len(inner)-ethernetHeader, protocol, 0, 0, number, 0)
		frame := slices.Concat(inner[:ethernetHeader-2], []byte{0x86, 0xdd}, octets, inner[ethernetHeader:])
		copies = append(copies, framed{fmt.Sprintf("by flow %d", flow), frame})
	}
	return copies, nil
}

// steeredWhy says what a policy or an egress did; "" if neither did anything.
func steeredWhy(e *api.Explanation) string {
	switch {
	case e.Policy != nil && len(e.Copies) > 0:
		return policyWhy(e)
	case e.Policy != nil && e.Dropped():
		return fmt.Sprintf("dropped: %s (policy %s)", forward.Meaning(e.Reason), e.Policy.Name)
	case e.Policy != nil:
		return fmt.Sprintf("policy %s: answered (%s)", e.Policy.Name, e.Outcome)
	case e.Copy != nil && e.Copy.First && e.Copy.Waits:
		return fmt.Sprintf("the first copy of packet %d, by flow %d: decapsulated, and put in order with the others",
			e.Copy.Number, e.Copy.Flow)
	case e.Copy != nil && e.Copy.First:
		return fmt.Sprintf("the first copy of packet %d, by flow %d: decapsulated, for the kernel to route", e.Copy.Number, e.Copy.Flow)
	case e.Copy != nil:
		return fmt.Sprintf("packet %d by flow %d is dropped: %s", e.Copy.Number, e.Copy.Flow, forward.Meaning(e.Reason))
	case e.Role == api.Merge && e.SID != nil && !e.Dropped():
		return "decapsulated, for the kernel to route; it has no number, so copies are not told apart"
	}
	return ""
}

func policyWhy(e *api.Explanation) string {
	var lists []string
	for _, c := range e.Copies {
		text := c.List
		if c.Reason != "" {
			text += " (dropped: " + c.Reason + ")"
		}
		lists = append(lists, text)
	}
	how := map[config.SteeringAction]string{
		"path": "its only list", "split-flow": "its flow's list", "split-packet": "the list whose turn it is",
		"mirror": "a copy by each list",
	}[e.Policy.Action]
	return fmt.Sprintf("policy %s, path %s: %s, %s", e.Policy.Name, e.Policy.Path, how, strings.Join(lists, ", "))
}
