package agent

import (
	"fmt"
	"net/netip"
	"strings"

	"sextant/agent/api"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/linux"
	"sextant/linux/facts"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// twin is what takes strays away, in Go and without the kernel's sockets: how far a packet gets,
// and at which SID.
func (s *straysRole) twin() *model.Strays {
	m := &model.Strays{
		Interfaces: map[uint32]struct{}{}, Infrastructure: s.config.Infrastructure,
		Sockets: func(netip.Prefix, flow.Tuple) model.Socket { return model.Socket{} },
	}
	for _, at := range s.attachments {
		m.Interfaces[uint32(at.Index)] = struct{}{}
	}
	for _, sid := range s.program.SIDs() {
		m.SIDs = append(m.SIDs, model.StraySID{
			Prefix: sid.Prefix, IPv4: sid.IPv4, IPv6: sid.IPv6,
			Device: s.config.VRFs[sid.VRF].Device != "",
		})
	}
	return m
}

// behaviorOf is what the kernel does at a SID of a VRF device; of a namespace that is not known.
func (s *straysRole) behaviorOf(sid datapath.StraySID) string {
	switch {
	case s.config.VRFs[sid.VRF].Device == "":
		return "the kernel's"
	case !sid.IPv6:
		return srv6.EndDT4.String()
	case !sid.IPv4:
		return srv6.EndDT6.String()
	}
	return srv6.EndDT46.String()
}

// decide gives a frame to the program, and names what it met.
func (s *straysRole) decide(x *explaining, program *datapath.StrayExplainer, twin *model.Strays,
	e *api.Explanation, frame []byte) (datapath.Explained, error) {
	r := twin.Process(uint32(x.at.Index), frame)
	e.Flow = flowOf(r.Flow)
	got, err := program.Run(x.at.Index, frame)
	if err != nil {
		return got.Explained, err
	}
	for _, sid := range s.program.SIDs() {
		if sid.Prefix == r.SID {
			vrf := s.config.VRFs[sid.VRF]
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
		e.VRF.Left = leftGone
	default:
		e.VRF.Left = leftOpening
	}
	return got.Explained, nil
}

// Why a packet to a SID of a VRF is left to the kernel, besides the reasons of package forward.
const (
	leftGone    = "vrf_gone"
	leftOpening = "continues_nothing"
)

func leavesOf(p facts.Passage) *api.StrayWay {
	return &api.StrayWay{Fate: string(p.Fate), Interface: p.Interface, Segments: p.Segments}
}

// straysWhy says what the programs do, and what is the kernel's to decide.
func straysWhy(e *api.Explanation) string {
	const asItCame = "passed to the kernel as it came"
	if e.VRF == nil {
		return asItCame + ": its destination is no SID of a VRF"
	}
	vrf := "VRF " + e.VRF.Name
	switch {
	case e.Offer == model.OfferHere.String() && e.Verdict == model.Pass.String():
		return fmt.Sprintf("%s, which decapsulates it: the connection is in %s", asItCame, vrf)
	case e.Offer == model.OfferHere.String():
		return fmt.Sprintf("the connection is in %s: decapsulated, and received there, where the "+
			"kernel delivers it", vrf)
	case e.Offer == model.OfferReturned.String():
		return fmt.Sprintf("left to the kernel: a stray that was one before, as its hop limit "+
			"says, and %s has no such connection; "+
			"it goes round no more, and is answered with a RST", vrf)
	case e.Offer == model.OfferStray.String():
		return fmt.Sprintf("a stray: %s has no such connection; decapsulated, and received on "+
			"%s, %s",
			vrf, e.VRF.Backup, wayText(e.VRF.Leaves))
	case e.Verdict != model.Pass.String():
		return fmt.Sprintf("decapsulated, and received by %s, where the kernel decides", vrf)
	case e.VRF.Left == leftGone:
		return fmt.Sprintf("%s: %s or its backup device %s is not there now; see sextant doctor",
			asItCame, vrf, e.VRF.Backup)
	case e.VRF.Left == leftOpening:
		return fmt.Sprintf("%s, which decapsulates it into %s: only a packet that continues a "+
			"TCP connection can be astray", asItCame, vrf)
	}
	return fmt.Sprintf("%s, to decide by itself: %s", asItCame, model.Meaning(e.VRF.Left))
}

// wayText is where the kernel's routes lead a stray.
func wayText(w *api.StrayWay) string {
	switch facts.Fate(w.Fate) {
	case facts.Forwarded:
		text := "from where the kernel's routes send it by " + w.Interface
		if len(w.Segments) == 0 {
			return text + " as it is"
		}
		var segments []string
		for _, s := range w.Segments {
			segments = append(segments, s.String())
		}
		return text + " to " + strings.Join(segments, ", ")
	case facts.Delivered:
		return "where the kernel delivers it on this machine, and answers with a RST"
	case "":
		return "where the kernel's routes decide"
	}
	return "where it ends (" + w.Fate + "); see sextant doctor"
}

// toVRFs are the packets of a flow as they come to each VRF that takes its family.
func (s *straysRole) toVRFs(x *explaining, f api.Flow, kinds []string) ([]framed, error) {
	var list []framed
	asked := map[int]bool{}
	for _, sid := range s.program.SIDs() {
		if ipv4 := f.Source.Addr().Is4(); asked[sid.VRF] || ipv4 && !sid.IPv4 || !ipv4 &&
			!sid.IPv6 {
			continue
		}
		asked[sid.VRF] = true
		some, err := x.frames(f, kinds, outerTo(sid.Prefix.Addr(), s.config.Infrastructure, f))
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
