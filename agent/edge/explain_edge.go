package edge

import (
	"net/netip"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/role"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/lb/pool"
	"sextant/packet/quiclb"
)

// Explain is role.Room.
func (e *Room) Explain(x *explain.Explaining, on string) (err error) {
	if x.At, err = explain.Arrival(e.Runs.Attachments, "edge", on); err != nil {
		return err
	}
	twin := e.Runs.twin(e.Node)
	x.Decide = func(told *api.Explanation, frame []byte) (datapath.Explained, error) {
		e.accountOf(twin, x.At.Index, told, frame)
		return x.Program.Run(x.At.Index, frame)
	}
	x.Program, err = e.Runs.Program.Explainer(x.At.Side)
	twin.Learning = e.Runs.learning(x.Program)
	return err
}

// Capture is role.Capturer.
func (e *Room) Capture(bytes int, interfaces ...string) (*datapath.Capture, error) {
	return e.Runs.Program.Capture(bytes, interfaces...)
}

// Account names what a captured packet met.
func (e *Room) Account() role.Accountant {
	twin := e.Runs.twin(e.Node)
	return func(told *api.Explanation, got datapath.Captured, frame []byte) {
		e.accountOf(twin, got.Interface, told, frame)
	}
}

// twin is the edge in Go, with the kernel's FIB left out: which flow, service, bucket and chain a
// packet has.
func (e *Role) twin(n *config.Node) *model.Edge {
	m := &model.Edge{
		Sides: map[uint32]model.Side{}, Block: e.Config.Block, Locators: e.Config.Locators,
		Infrastructure: e.Config.Infrastructure,
		Services:       map[model.ServiceKey]uint32{}, QUIC: map[uint32]*model.QUIC{},
		VIPs:    map[netip.Addr]struct{}{},
		Buckets: func(service uint32) uint32 { return uint32(e.Services[service].Buckets) },
		Secret:  e.Config.Secret, FlowHash: e.Config.FlowHash,
		Encapsulation: e.Config.Encapsulation, Source: e.Config.Source,
		EdgeOuter: e.Config.EdgeOuter,
		Shadow:    e.Config.Shadow, LastOffer: e.Config.LastOffer,
		SID: func(uint16) netip.Addr { return e.Config.Source }, // any that is one
		NextHop: func(netip.Addr, uint8) model.NextHop {
			return model.NextHop{Status: model.NextHopKernel}
		},
	}
	for _, at := range e.Attachments {
		m.Sides[uint32(at.Index)] = at.Side
	}
	for i, s := range e.Services {
		m.Services[explain.ModelKey(s.Key)] = uint32(i)
		m.VIPs[s.VIP] = struct{}{}
		if quic := s.quicModel(); quic != nil {
			m.QUIC[uint32(i)] = quic
		}
	}
	m.Chains = func(service, bucket uint32) pool.Chain {
		return e.Services[service].Generation.Chain(int(bucket))
	}
	m.Copies = func(service uint32) model.Copies {
		return model.Copies(e.Services[service].copied())
	}
	m.Paths = func(service uint32, backend uint16) [][]uint16 {
		return e.Services[service].Paths.to[backend]
	}
	if e.former != nil {
		m.Former = e.formerModel()
	}
	return m
}

// learning is the flow cache of what explains packets, nil without one: each packet meets what the
// ones before left there.
func (e *Role) learning(program *datapath.Explainer) *model.Learning {
	if e.Config.FlowCache.Entries == 0 {
		return nil
	}
	return &model.Learning{
		SID: e.Config.FlowCache.SID,
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
func (s *Service) quicModel() *model.QUIC {
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

// accountOf names the packet's flow, service, bucket and chain.
func (e *Room) accountOf(twin *model.Edge, at int, told *api.Explanation, frame []byte) {
	r := twin.Process(uint32(at), frame)
	told.Flow = explain.FlowOf(r.Flow)
	index, ok := twin.Services[r.Service]
	if !ok || told.Flow == nil {
		return
	}
	s := &e.Runs.Services[index]
	trace := e.traceOf(s, *told.Flow, r.Hash)
	told.Service, told.Trace, told.FlowCache = s.Name, &trace, r.Cache.String()
	told.Header = e.headerOf(s, r.Path, r.Chain)
	told.OtherCopy = e.copiesOf(s, &told.Header, r)
	if len(r.Chain) > 0 {
		told.Way = e.wayView(s, r.Chain[0], r.Hash, told.OtherCopy != nil)
	}
	for _, id := range r.Chain {
		told.OfferedTo = append(told.OfferedTo, e.place(s, pool.Place{ID: id}).Backend)
	}
}
