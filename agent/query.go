package agent

import (
	"cmp"
	"context"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

// answers are those of api.Agent that all roles have a part in.
type answers struct {
	*core
	*roles
}

// Services is what api.Agent says.
func (q *answers) Services(ctx context.Context) ([]api.Service, error) {
	return ask(ctx, &q.loop, q.services)
}

func (q *answers) services() (all []api.Service, err error) {
	for _, room := range having[serving](q.roles) {
		services, err := room.services()
		if err != nil {
			return nil, err
		}
		all = append(all, services...)
	}
	return all, nil
}

func (e *edgeRoom) services() (services []api.Service, err error) {
	if e.runs == nil {
		return nil, nil
	}
	for i := range e.runs.services {
		s, err := e.view(&e.runs.services[i])
		if err != nil {
			return nil, err
		}
		services = append(services, s)
	}
	return services, nil
}

func (h *hostRoom) services() (services []api.Service, err error) {
	if h.runs == nil {
		return nil, nil
	}
	for i := range h.runs.services {
		s, err := h.runs.view(&h.runs.services[i])
		if err != nil {
			return nil, err
		}
		s.Host.Health = h.own.view(s.Name)
		services = append(services, s)
	}
	return services, nil
}

// view is a service of the edge with its counters.
func (e *edgeRoom) view(s *edgeService) (api.Service, error) {
	traffic, err := e.runs.program.ServiceTraffic(s.index, idsOf(s.members)...)
	view := api.Service{
		Name: s.Name, Role: api.Edge, VIP: s.VIP, Protocol: s.Protocol, Port: s.Port,
		Packets: traffic.All.Packets, Bytes: traffic.All.Bytes,
		Edge: &api.EdgeService{
			UncountedPackets: traffic.Others.Packets, UncountedBytes: traffic.Others.Bytes,
			Policy: s.Policy, Table: s.Table, Candidates: s.Candidates, Depth: s.Depth,
			DrainSeconds: s.DrainTime.Seconds(), SlowSeconds: s.SlowStart.Seconds(),
			HoldSeconds:   s.ReturnHold.Seconds(),
			Encapsulation: e.node.Edge.Encapsulation, Buckets: s.buckets,
			Check: s.Check.String(), Panic: s.effect.Panic, Backends: []api.Backend{},
		},
	}
	if err != nil {
		return view, err
	}
	if f := e.runs.former; s.former != nil {
		view.Edge.FormerUntil = &f.until
	}
	if n := s.NewConnections; n != (config.NewConnections{}) {
		count, err := e.runs.program.Openings(s.index)
		if err != nil {
			return view, err
		}
		view.Edge.NewConnections = &api.NewConnections{Rate: n.Rate, Burst: n.Burst,
			Taken: count.Taken, Refused: count.Refused}
	}
	shares, sources := s.shares(), e.sourcesOf(s.Endpoint)
	for i, b := range s.Backends {
		view.Edge.Backends = append(view.Edge.Backends, api.Backend{
			Service: s.Name, Name: b.Name, SID: b.SID, Weight: b.Weight, State: b.State,
			Agent:     b.Agent,
			Effective: config.BackendState(s.members[i].State.String()),
			Health:    e.checks.healthView(s, b.Name),
			Learned:   sources[b.SID] != "", Source: cmp.Or(sources[b.SID], "config"),
			Buckets: shares[s.members[i].ID],
			Packets: traffic.Backends[i].Packets, Bytes: traffic.Backends[i].Bytes,
		})
	}
	return view, nil
}

// idsOf are the numbers of backends, in their order.
func idsOf(members []pool.Backend) []uint16 {
	ids := make([]uint16, len(members))
	for i, m := range members {
		ids[i] = m.ID
	}
	return ids
}

// shares counts the buckets by their first candidate.
func (s *edgeService) shares() map[uint16]int {
	shares := map[uint16]int{}
	for b := range s.generation.Buckets() {
		if c := s.generation.Chain(b); c.Candidates > 0 {
			shares[c.IDs[0]]++
		}
	}
	return shares
}

// view is a service of the host with its counters.
func (h *hostRole) view(s *hostService) (api.Service, error) {
	view := api.Service{Name: s.Name, Role: api.Host, VIP: s.VIP, Protocol: s.Protocol,
		Port: s.Port}
	t, err := h.program.Traffic(s.index)
	if err != nil {
		return view, err
	}
	busy, err := h.program.Busy(s.index, s.policy)
	if err != nil {
		return view, err
	}
	state, err := h.program.AcceptState(s.index)
	if err != nil {
		return view, err
	}
	signals, err := h.program.Signals(s.index)
	if err != nil {
		return view, err
	}
	view.Packets, view.Bytes = t.Taken.Packets, t.Taken.Bytes
	view.Host = &api.HostService{
		Accept: api.AcceptOf(s.Accept), Threshold: s.policy.ThresholdIn(state), Busy: busy,
		Offered: t.Offered, Accepted: t.Accepted, Refused: t.Refused, Forced: t.Forced,
		PassedOnPackets: t.PassedOn.Packets, PassedOnBytes: t.PassedOn.Bytes,
		Established: signals.Established, Resets: signals.Resets,
		ByEdge: signals.ByEdge, NotRouted: signals.NotRouted,
	}
	return view, nil
}

// Counters is what api.Agent says.
func (q *answers) Counters(ctx context.Context) ([]api.Counters, error) {
	return ask(ctx, &q.loop, q.counters)
}

func (q *answers) counters() ([]api.Counters, error) {
	var counters []api.Counters
	for _, r := range q.running() {
		c, err := countersOf(r.name, r.uses())
		if err == nil {
			err = r.count(&c)
		}
		if err != nil {
			return nil, err
		}
		counters = append(counters, c)
	}
	return counters, nil
}

func countersOf(role api.Role, p program) (api.Counters, error) {
	c := api.Counters{Role: role, Drops: []api.Drop{}}
	outcomes, err := p.Outcomes()
	if err != nil {
		return c, err
	}
	for _, o := range outcomes {
		switch o.Name {
		case "passed":
			c.PassedPackets = o.Packets
		case "handed":
			c.HandedToKernelPackets = o.Packets
		case "transmitted":
			c.TransmittedPackets = o.Packets
		case "redirected":
			c.RedirectedPackets = o.Packets
		case "taken":
			c.TakenPackets = o.Packets
		case "echoed":
			c.EchoedPackets = o.Packets
		case "too_big_answered":
			c.TooBigAnsweredPackets = o.Packets
		case "translated":
			c.TranslatedPackets = o.Packets
		case "copied":
			c.CopiedPackets = o.Packets
		case "learned":
			c.LearnedPackets = o.Packets
		}
	}
	drops, err := p.Drops()
	for _, d := range drops {
		c.Drops = append(c.Drops, api.Drop{Reason: d.Name, Packets: d.Packets})
	}
	return c, err
}

// Maps is what api.Agent says.
func (q *answers) Maps(ctx context.Context) (maps []api.Map, err error) {
	err = q.do(ctx, func() {
		for _, r := range q.running() {
			for _, use := range r.uses().Maps() {
				m := api.Map{Name: use.Name, Role: r.name, Type: use.Type, Capacity: use.Capacity}
				if use.Entries >= 0 {
					m.Entries = &use.Entries
				}
				maps = append(maps, m)
			}
		}
	})
	return maps, err
}

func sideName(s datapath.Side) config.Side {
	for name, side := range attachSides {
		if side == s {
			return name
		}
	}
	return ""
}
