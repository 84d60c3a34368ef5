package agent

import (
	"net/netip"

	"sextant/accept"
	"sextant/agent/api"
	"sextant/datapath"
	"sextant/flow"
	"sextant/forward"
	"sextant/srv6"
)

// model is the host in Go, without the kernel's sockets, and busy beyond all measure: so it says what a packet is offered for,
// and the program, whether it is taken.
func (h *hostRole) model() *forward.Host {
	m := &forward.Host{
		Interfaces: map[uint32]struct{}{}, Block: h.config.Block, Locators: h.config.Locators,
		Infrastructure: h.config.Infrastructure, Secret: h.config.Secret,
		Source:    h.config.Source,
		Services:  map[forward.ServiceKey]*forward.HostService{},
		Sockets:   func(flow.Tuple) forward.Socket { return forward.Socket{} },
		HasServer: func(flow.Tuple) bool { return true },
		Busy:      func(forward.ServiceKey) uint32 { return 1 },
		NextHop:   func(netip.Addr, uint8) forward.NextHop { return forward.NextHop{Status: forward.NextHopKernel} },
	}
	for _, at := range h.attachments {
		m.Interfaces[uint32(at.Index)] = struct{}{}
	}
	for _, s := range h.config.SIDs {
		m.SIDs = append(m.SIDs, forward.LocalSID(s))
	}
	for _, s := range h.services {
		m.Services[modelKey(s.key)] = &forward.HostService{Policy: accept.Policy{Kind: accept.Static}, QUIC: s.QUIC}
	}
	return m
}

// accountHost names the packet's flow, service and SID.
func (x *explaining) accountHost(e *api.Explanation, frame []byte) forward.Result {
	r := x.host.Process(uint32(x.at.Index), 0, frame)
	e.Flow = flowOf(r.Flow)
	if service := x.agent.host.serviceOf(r.Service); service != nil {
		e.Service = service.Name
	}
	if r.SID.IsValid() {
		e.SID = &api.SID{Prefix: r.SID, Behavior: x.agent.host.behaviorOf(r.SID).String()}
	}
	return r
}

func (x *explaining) onHost(e *api.Explanation, frame []byte) (datapath.Explained, error) {
	r := x.accountHost(e, frame)
	service := x.agent.host.serviceOf(r.Service)
	before, err := x.look(service, r)
	if err != nil {
		return datapath.Explained{}, err
	}
	got, err := x.program.Run(x.at.Index, frame)
	if err != nil {
		return got, err
	}
	after, err := x.look(service, r)
	if offer := offerOf(r.Offer, got.Taken, before, after); offer != forward.OfferNone && got.Verdict != forward.Drop {
		e.Offer = offer.String()
	}
	return got, err
}

// learnt is what a host remembers of offers.
type learnt struct {
	accepted uint64 // SYNs of the service
	refusal  uint64 // of the flow
}

func (x *explaining) look(service *hostService, r forward.Result) (l learnt, err error) {
	if service == nil {
		return l, nil
	}
	traffic, err := x.program.Served(service.index)
	if err != nil {
		return l, err
	}
	l.accepted = traffic.Accepted
	l.refusal, err = x.program.Refusal(x.host.Secret.Hash(r.Flow))
	return l, err
}

// offerOf combines what a packet was offered for, by a model that takes as little as possible, with what the program did.
func offerOf(least forward.Offer, taken bool, before, after learnt) forward.Offer {
	switch {
	case least == forward.OfferNone || least == forward.OfferLast:
		return least
	case taken && after.accepted != before.accepted:
		return forward.OfferAccepted
	case taken:
		return forward.OfferHere
	case least == forward.OfferRefused || least == forward.OfferRefusedBefore:
		if after.refusal == before.refusal {
			return forward.OfferRefusedBefore
		}
		return forward.OfferRefused
	}
	return least
}

// serviceOf finds the running service behind a model's key, nil if there is none.
func (h *hostRole) serviceOf(key forward.ServiceKey) *hostService {
	for i := range h.services {
		if modelKey(h.services[i].key) == key {
			return &h.services[i]
		}
	}
	return nil
}

func (h *hostRole) behaviorOf(sid netip.Prefix) srv6.Behavior {
	for _, s := range h.config.SIDs {
		if s.Prefix == sid {
			return s.Behavior
		}
	}
	return 0
}
