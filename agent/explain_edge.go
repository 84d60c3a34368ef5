package agent

import (
	"net/netip"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/lb/pool"
	"sextant/packet/quiclb"
)

func (e *edgeRoom) explain(x *explaining, on string) (err error) {
	if x.at, err = arrival(e.runs.attachments, "edge", on); err != nil {
		return err
	}
	twin := e.runs.twin(e.node)
	x.decide = func(told *api.Explanation, frame []byte) (datapath.Explained, error) {
		e.accountOf(twin, x.at.Index, told, frame)
		return x.program.Run(x.at.Index, frame)
	}
	x.program, err = e.runs.program.Explainer(x.at.Side)
	twin.Learning = e.runs.learning(x.program)
	return err
}

func (e *edgeRoom) capture(bytes int, interfaces ...string) (*datapath.Capture, error) {
	return e.runs.program.Capture(bytes, interfaces...)
}

// account names what a captured packet met.
func (e *edgeRoom) account() accountant {
	twin := e.runs.twin(e.node)
	return func(told *api.Explanation, got datapath.Captured, frame []byte) {
		e.accountOf(twin, got.Interface, told, frame)
	}
}

// twin is the edge in Go, with the kernel's FIB left out: which flow, service, bucket and chain a
// packet has.
func (e *edgeRole) twin(n *config.Node) *model.Edge {
	m := &model.Edge{
		Sides: map[uint32]model.Side{}, Block: e.config.Block, Locators: e.config.Locators,
		Infrastructure: e.config.Infrastructure,
		Services:       map[model.ServiceKey]uint32{}, QUIC: map[uint32]*model.QUIC{},
		VIPs:          map[netip.Addr]struct{}{},
		Buckets:       func(service uint32) uint32 { return uint32(e.services[service].buckets) },
		Secret:        e.config.Secret,
		Encapsulation: e.config.Encapsulation, Source: e.config.Source,
		EdgeOuter: e.config.EdgeOuter,
		Shadow:    e.config.Shadow, LastOffer: e.config.LastOffer,
		SID: func(uint16) netip.Addr { return e.config.Source }, // any that is one
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Status: model.NextHopKernel}
		},
	}
	for _, at := range e.attachments {
		m.Sides[uint32(at.Index)] = at.Side
	}
	for i, s := range e.services {
		m.Services[modelKey(s.key)] = uint32(i)
		m.VIPs[s.VIP] = struct{}{}
		if quic := s.quicModel(); quic != nil {
			m.QUIC[uint32(i)] = quic
		}
	}
	m.Chains = func(service, bucket uint32) pool.Chain {
		return e.services[service].generation.Chain(int(bucket))
	}
	if e.former != nil {
		m.Former = e.formerModel()
	}
	return m
}

// learning is the flow cache of what explains packets, nil without one: each packet meets what the
// ones before left there.
func (e *edgeRole) learning(program *datapath.Explainer) *model.Learning {
	if e.config.FlowCache.Entries == 0 {
		return nil
	}
	return &model.Learning{
		SID: e.config.FlowCache.SID,
		Owner: func(hash uint64) uint16 {
			owner, err := program.CachedOwner(hash)
			if err != nil {
				return 0 // as the program does that can't look
			}
			return owner
		},
		Remember: func(uint64, uint16) {}, // the program does
	}
}

// quicModel is how the service's connection IDs are read, nil if it is not QUIC.
func (s *edgeService) quicModel() *model.QUIC {
	if len(s.QUIC.Configs) == 0 {
		return nil
	}
	quic := &model.QUIC{Backends: s.quicBackends()}
	for _, c := range s.QUIC.Configs {
		if codec, err := quiclb.New(
			c.Config()); err == nil { // as the program's are, or it would not run
			quic.Codecs = append(quic.Codecs, codec)
		}
	}
	return quic
}

func modelKey(k datapath.ServiceKey) model.ServiceKey {
	return model.ServiceKey{Addr: k.VIP, Port: k.Port, Protocol: k.Protocol}
}

// accountOf names the packet's flow, service, bucket and chain.
func (e *edgeRoom) accountOf(twin *model.Edge, at int, told *api.Explanation, frame []byte) {
	r := twin.Process(uint32(at), frame)
	told.Flow = flowOf(r.Flow)
	index, ok := twin.Services[r.Service]
	if !ok || told.Flow == nil {
		return
	}
	s := &e.runs.services[index]
	trace := e.traceOf(s, *told.Flow, r.Hash)
	told.Service, told.Trace, told.FlowCache = s.Name, &trace, r.Cache.String()
	for _, id := range r.Chain {
		told.OfferedTo = append(told.OfferedTo, e.place(s, pool.Place{ID: id}).Backend)
	}
}
