package agent

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/forward"
	"sextant/srv6"
	"sextant/steer"
)

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

func (x *explaining) onMerge(e *api.Explanation, frame []byte) (datapath.Explained, error) {
	r := x.merge.Process(uint32(x.at.Index), 0, frame)
	got, waits, err := x.program.Merge(x.at.Index, frame)
	if err != nil {
		return got, err
	}
	if r.SID.IsValid() {
		e.SID = &api.SID{Prefix: r.SID, Behavior: srv6.EndMERGE.String()}
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
