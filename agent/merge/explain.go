package merge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gopacket/gopacket/layers"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/packet/srv6"
	"sextant/te/srpolicy"
)

// model is the egress in Go, without instances: what a packet carries.
func (m *Role) model() *model.Merge {
	model := &model.Merge{
		Interfaces: map[uint32]struct{}{}, Block: m.Config.Block, Locators: m.Config.Locators,
		Infrastructure: m.Config.Infrastructure,
	}
	for _, at := range m.Attachments {
		model.Interfaces[uint32(at.Index)] = struct{}{}
	}
	for _, s := range m.Config.SIDs {
		model.SIDs = append(model.SIDs, s.Prefix)
	}
	return model
}

// decide gives a frame to the program, and names what it met.
func (m *Role) decide(x *explain.Explaining, twin *model.Merge, e *api.Explanation,
	frame []byte) (datapath.Explained, error) {
	r := twin.Process(uint32(x.At.Index), 0, frame)
	got, waits, err := x.Program.Merge(x.At.Index, frame)
	if err != nil {
		return got, err
	}
	if r.SID.IsValid() {
		e.SID = &api.SID{Prefix: r.SID, Behavior: srv6.EndMERGE.String()}
	}
	if r.Number != nil {
		e.Copy = &api.ExplainedCopy{
			Flow: r.Number.Flow, Flows: m.flowsBeside(r.SID, r.Number.Flow),
			Number: r.Number.Sequence, Epoch: r.Number.Epoch, First: got.Verdict != model.Drop,
			Waits: waits,
		}
	}
	if got.Verdict == model.HandToKernel {
		e.Flow = flowWithin(got.Frame)
	}
	return got, nil
}

// flowsBeside are the paths of the protected flow to which one of them belongs; nil if none does.
func (m *Role) flowsBeside(sid netip.Prefix, flow uint32) []uint32 {
	for _, i := range m.Instances {
		if i.Prefix == sid && slices.Contains(i.Instance.Flows, flow) {
			return i.Instance.Flows
		}
	}
	return nil
}

// flowWithin reads the flow of a decapsulated packet.
func flowWithin(frame []byte) *api.Flow {
	const here = 1
	reader := model.Headend{Sides: map[uint32]model.Side{here: model.Internal}}
	if s := reader.Process(here, 0, frame); len(s.Results) > 0 {
		return explain.FlowOf(s.Results[0].Flow)
	}
	return nil
}

// copiesOf are the copies of a flow's next packet, one by each path of every protected flow: an
// egress does not know which of them the rules of a head-end choose for a packet.
func (m *Role) copiesOf(x *explain.Explaining, twin *model.Merge,
	f api.Flow) ([]explain.Framed, error) {
	if len(m.Instances) == 0 || len(twin.Infrastructure) == 0 {
		return nil, &api.Error{
			Code: api.Conflict, Message: "this egress has no protected flow; give packets " +
				"instead: sextant explain -r FILE",
		}
	}
	inner, err := x.Frame(f, "following", nil)
	if err != nil {
		return nil, err
	}
	var copies []explain.Framed
	for _, i := range m.Instances {
		some, err := copiesTo(x, i, twin.Infrastructure[0].Addr(), f, inner)
		if err != nil {
			return nil, err
		}
		copies = append(copies, some...)
	}
	return copies, nil
}

// copiesTo are the copies of a packet that come to one protected flow.
func copiesTo(x *explain.Explaining, i MergeInstance, from netip.Addr, f api.Flow,
	inner []byte) ([]explain.Framed, error) {
	number, epoch, _, err := x.Program.NextNumber(i.Index)
	if err != nil {
		return nil, err
	}
	form := srpolicy.TLV
	if i.Form == config.NumberedInSID {
		form = srpolicy.SID
	}
	var copies []explain.Framed
	for _, flow := range i.Instance.Flows {
		policy := srpolicy.Policy{Name: "p",
			Paths: []srpolicy.CandidatePath{{Action: srpolicy.Path, Lists: []srpolicy.List{{
				Name: "l", Segments: []netip.Addr{i.Prefix.Addr()}, Redundancy: form, Flow: flow,
				Reduced: true,
			}}}}}
		source := srpolicy.Source{Addr: from, HopLimit: explain.MadeUpHopLimit,
			Epoch: epoch}
		table, err := srpolicy.Compile([]srpolicy.Rule{{Policy: "p"}}, []srpolicy.Policy{policy},
			source, nil)
		if err != nil {
			return nil, fmt.Errorf("make a copy of the flow %s -> %s: %w", f.Source, f.Destination,
				err)
		}
		header := table[0].Lists[0]
		octets := bytes.Clone(header.Octets)
		header.Fill(octets, len(inner)-explain.EthernetHeader, uint8(explain.InnerProtocol(f)), 0,
			0, number, 0)
		link := binary.BigEndian.AppendUint16(bytes.Clone(inner[:explain.EthernetHeader-2]),
			uint16(layers.EthernetTypeIPv6))
		frame := slices.Concat(link, octets, inner[explain.EthernetHeader:])
		copies = append(copies, explain.Framed{What: fmt.Sprintf("by flow %d", flow),
			Frame: frame})
	}
	return copies, nil
}
