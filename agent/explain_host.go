package agent

import (
	"net/netip"

	"sextant/agent/api"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/lb/acceptance"
	"sextant/packet/flow"
	"sextant/packet/srv6"
)

// twin is the host in Go, without the kernel's sockets, and busy beyond all measure: so it says
// what a packet is offered for, and the program, whether it is taken.
func (h *hostRole) twin() *model.Host {
	m := &model.Host{
		Interfaces: map[uint32]struct{}{}, Block: h.config.Block, Locators: h.config.Locators,
		Infrastructure: h.config.Infrastructure, Secret: h.config.Secret,
		Source:    h.config.Source,
		Services:  map[model.ServiceKey]*model.HostService{},
		Sockets:   func(flow.Tuple) model.Socket { return model.Socket{} },
		HasServer: func(flow.Tuple) bool { return true },
		Busy:      func(model.ServiceKey) uint32 { return 1 },
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Status: model.NextHopKernel}
		},
	}
	for _, at := range h.attachments {
		m.Interfaces[uint32(at.Index)] = struct{}{}
	}
	for _, s := range h.config.SIDs {
		m.SIDs = append(m.SIDs, model.LocalSID(s))
	}
	for _, s := range h.services {
		m.Services[modelKey(
			s.key)] = &model.HostService{Policy: acceptance.Policy{Kind: acceptance.Static},
			QUIC: s.QUIC}
	}
	return m
}

// accountHost names the packet's flow, service and SID.
func (x *explaining) accountHost(e *api.Explanation, frame []byte) model.Result {
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

func (x *explaining) look(service *hostService, r model.Result) (l learnt, err error) {
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
func (h *hostRole) serviceOf(key model.ServiceKey) *hostService {
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
