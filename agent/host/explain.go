package host

import (
	"net/netip"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/lb/acceptance"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// twin is the host in Go, without the kernel's sockets, and busy beyond all measure: so it says
// what a packet is offered for, and the program, whether it is taken.
func (h *Role) twin() *model.Host {
	m := &model.Host{
		Interfaces: map[uint32]struct{}{}, Block: h.Config.Block, Locators: h.Config.Locators,
		Infrastructure: h.Config.Infrastructure, Secret: h.Config.Secret,
		FlowHash:  h.Config.FlowHash,
		Refusal:   h.Config.Refusal,
		Source:    h.Config.Source,
		Services:  map[model.ServiceKey]*model.HostService{},
		Sockets:   func(flow.Tuple) model.Socket { return model.Socket{} },
		HasServer: func(flow.Tuple) bool { return true },
		Busy:      func(model.ServiceKey) uint32 { return 1 },
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Status: model.NextHopKernel}
		},
	}
	for _, at := range h.Attachments {
		m.Interfaces[uint32(at.Index)] = struct{}{}
	}
	for _, s := range h.Config.SIDs {
		m.SIDs = append(m.SIDs, model.LocalSID(s))
	}
	for _, s := range h.Services {
		m.Services[explain.ModelKey(
			s.Key)] = &model.HostService{Policy: acceptance.Policy{Kind: acceptance.Static},
			QUIC: s.QUIC}
	}
	return m
}

// account names the packet's flow, service and SID.
func (h *Role) account(twin *model.Host, e *api.Explanation, at int,
	frame []byte) model.Result {
	r := twin.Process(uint32(at), 0, frame)
	e.Flow = explain.FlowOf(r.Flow)
	if service := h.serviceOf(r.Service); service != nil {
		e.Service = service.Name
	}
	if r.SID.IsValid() {
		e.SID = &api.SID{Prefix: r.SID, Behavior: h.behaviorOf(r.SID).String()}
	}
	return r
}

// decide gives a frame to the program, and names what it met.
func (h *Role) decide(x *explain.Explaining, twin *model.Host, e *api.Explanation,
	frame []byte) (datapath.Explained, error) {
	r := h.account(twin, e, x.At.Index, frame)
	service, flow := h.serviceOf(r.Service), twin.FlowHash.Hash(twin.Secret, r.Flow)
	before, err := look(x.Program, service, flow)
	if err != nil {
		return datapath.Explained{}, err
	}
	got, err := x.Program.Run(x.At.Index, frame)
	if err != nil {
		return got, err
	}
	after, err := look(x.Program, service, flow)
	if offer := offerOf(r.Offer, got.Taken, before, after); offer != model.OfferNone &&
		got.Verdict != model.Drop {
		e.Offer = offer.String()
	}
	return got, err
}

// learnt is what a host remembers of offers.
type learnt struct {
	accepted uint64 // SYNs of the service
	refusal  uint64 // of the flow
}

func look(program *datapath.Explainer, service *hostService, flow uint64) (l learnt, err error) {
	if service == nil {
		return l, nil
	}
	traffic, err := program.Served(service.Index)
	if err != nil {
		return l, err
	}
	l.accepted = traffic.Accepted
	l.refusal, err = program.Refusal(flow)
	return l, err
}

// offerOf combines what a packet was offered for, by a model that takes as little as possible, with
// what the program did.
func offerOf(least model.Offer, taken bool, before, after learnt) model.Offer {
	switch {
	case least == model.OfferNone || least == model.OfferLast:
		return least
	case taken && after.accepted != before.accepted:
		return model.OfferAccepted
	case taken:
		return model.OfferHere
	case least == model.OfferRefused || least == model.OfferRefusedBefore:
		if after.refusal == before.refusal {
			return model.OfferRefusedBefore
		}
		return model.OfferRefused
	}
	return least
}

// serviceOf finds the running service behind a model's key, nil if there is none.
func (h *Role) serviceOf(key model.ServiceKey) *hostService {
	for i := range h.Services {
		if explain.ModelKey(h.Services[i].Key) == key {
			return &h.Services[i]
		}
	}
	return nil
}

func (h *Role) behaviorOf(sid netip.Prefix) srv6.Behavior {
	for _, s := range h.Config.SIDs {
		if s.Prefix == sid {
			return s.Behavior
		}
	}
	return 0
}

// offers are the packets of a flow as they reach this host: offered to it with one candidate left.
func (h *Role) offers(x *explain.Explaining, twin *model.Host, f api.Flow,
	kinds []string) ([]explain.Framed, error) {
	sid, err := h.offeredAt(twin)
	if err != nil {
		return nil, err
	}
	return x.Frames(f, kinds, explain.OuterTo(sid, twin.Infrastructure, f))
}

// someoneElse is the id of the candidate that is left in made-up offers.
const someoneElse = srv6.MaxGlobalCSID

// offeredAt is the host's first End.OFFER SID, with an argument: another candidate.
func (h *Role) offeredAt(twin *model.Host) (netip.Addr, error) {
	for _, s := range h.Config.SIDs {
		if s.Behavior == srv6.EndOFFER && s.Prefix.Bits() <= 48 && len(twin.Infrastructure) > 0 {
			sid := s.Prefix.Addr().As16()
			sid[6], sid[7] = byte(someoneElse>>8), byte(someoneElse&0xff)
			return netip.AddrFrom16(sid), nil
		}
	}
	return netip.Addr{}, &api.Error{Code: api.Conflict,
		Message: "this host has no End.OFFER SID to which a flow could be offered; " +
			"give packets instead: sextant explain -r FILE"}
}

// capturedOffer is what became of an offer, as far as the verdict tells.
func capturedOffer(least model.Offer, taken bool) model.Offer {
	refused := least == model.OfferRefused || least == model.OfferRefusedBefore
	switch {
	case refused && taken:
		return model.OfferAccepted
	case taken && least != model.OfferNone && least != model.OfferLast:
		return model.OfferHere
	case refused:
		return model.OfferRefused
	}
	return least
}
