package strays

import (
	"net/netip"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/linux"
	"sextant/linux/facts"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// twin is what takes strays away, in Go and without the kernel's sockets: how far a packet gets,
// and at which SID.
func (s *Role) twin() *model.Strays {
	m := &model.Strays{
		Interfaces: map[uint32]struct{}{}, Infrastructure: s.Config.Infrastructure,
		Sockets: func(netip.Prefix, flow.Tuple) model.Socket { return model.Socket{} },
	}
	for _, at := range s.Attachments {
		m.Interfaces[uint32(at.Index)] = struct{}{}
	}
	for _, sid := range s.Program.SIDs() {
		m.SIDs = append(m.SIDs, model.StraySID{
			Prefix: sid.Prefix, IPv4: sid.IPv4, IPv6: sid.IPv6,
			Device: s.Config.VRFs[sid.VRF].Device != "",
		})
	}
	return m
}

// behaviorOf is what the kernel does at a SID of a VRF device; of a namespace that is not known.
func (s *Role) behaviorOf(sid datapath.StraySID) string {
	switch {
	case s.Config.VRFs[sid.VRF].Device == "":
		return "the kernel's"
	case !sid.IPv6:
		return srv6.EndDT4.String()
	case !sid.IPv4:
		return srv6.EndDT6.String()
	}
	return srv6.EndDT46.String()
}

// decide gives a frame to the program, and names what it met.
func (s *Role) decide(x *explain.Explaining, program *datapath.StrayExplainer, twin *model.Strays,
	e *api.Explanation, frame []byte) (datapath.Explained, error) {
	r := twin.Process(uint32(x.At.Index), frame)
	e.Flow = explain.FlowOf(r.Flow)
	got, err := program.Run(x.At.Index, frame)
	if err != nil {
		return got.Explained, err
	}
	for _, sid := range s.Program.SIDs() {
		if sid.Prefix == r.SID {
			vrf := s.Config.VRFs[sid.VRF]
			e.SID = &api.SID{Prefix: sid.Prefix, Behavior: s.behaviorOf(sid)}
			e.VRF = &api.ExplainedVRF{Name: vrf.Name(), Backup: vrf.Backup}
		}
	}
	switch {
	case e.VRF == nil:
	case got.Here:
		e.Offer = model.OfferHere.String()
	case got.Returned:
		e.Offer = model.OfferReturned.String()
	case got.Stray:
		e.Offer = model.OfferStray.String()
		e.VRF.Leaves = leavesOf(linux.Passage(e.VRF.Backup, r.Flow.Src, r.Flow.Dst))
	case got.Taken: // vrf_ask did not judge it
	case r.Reason != model.ReasonNone:
		e.VRF.Left = r.Reason.String()
	case r.Taken:
		e.VRF.Left = explain.LeftGone
	default:
		e.VRF.Left = explain.LeftOpening
	}
	return got.Explained, nil
}

func leavesOf(p facts.Passage) *api.StrayWay {
	return &api.StrayWay{Fate: string(p.Fate), Interface: p.Interface, Segments: p.Segments}
}

// toVRFs are the packets of a flow as they come to each VRF that takes its family.
func (s *Role) toVRFs(x *explain.Explaining, f api.Flow, kinds []string) ([]explain.Framed, error) {
	var list []explain.Framed
	asked := map[int]bool{}
	for _, sid := range s.Program.SIDs() {
		if ipv4 := f.Source.Addr().Is4(); asked[sid.VRF] || ipv4 && !sid.IPv4 || !ipv4 &&
			!sid.IPv6 {
			continue
		}
		asked[sid.VRF] = true
		some, err := x.Frames(f, kinds, explain.OuterTo(sid.Prefix.Addr(), s.Config.Infrastructure,
			f))
		if err != nil {
			return nil, err
		}
		list = append(list, some...)
	}
	if len(list) == 0 {
		return nil, &api.Error{Code: api.Conflict,
			Message: "no SID leads packets of the flow's family into a VRF now; " +
				"see sextant doctor, or give packets instead: sextant explain -r FILE"}
	}
	return list, nil
}
