package edge

import (
	"cmp"
	"slices"

	"sextant/agent/api"
	"sextant/agent/role"
	"sextant/config"
	"sextant/lb/pool"
	"sextant/packet/lists"
)

// ServiceNames is role.Serving.
func (e *Room) ServiceNames() (names []string) {
	if e.Runs == nil {
		return nil
	}
	for i := range e.Runs.Services {
		names = append(names, e.Runs.Services[i].Name)
	}
	return names
}

// Services is role.Serving.
func (e *Room) Services(names map[string]bool) (services []api.Service, err error) {
	if e.Runs == nil {
		return nil, nil
	}
	for _, place := range e.Runs.placesOf(names) {
		s, err := e.view(&e.Runs.Services[place])
		if err != nil {
			return nil, err
		}
		services = append(services, s)
	}
	return services, nil
}

// placesOf are the places of the services of some names, in their order. It does not look at those
// of other names: a list of all services comes in many parts.
func (e *Role) placesOf(names map[string]bool) []int {
	places := make([]int, 0, len(names))
	for name := range names {
		if place, runs := e.placesByName()[name]; runs {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	return places
}

// placesByName are made when they are first asked for: most changes come between two lists.
func (e *Role) placesByName() map[string]int {
	if e.named == nil {
		e.named = make(map[string]int, len(e.Services))
		for i := range e.Services {
			e.named[e.Services[i].Name] = i
		}
	}
	return e.named
}

// view is a service of the edge with its counters, and with who told of its backends.
func (e *Room) view(s *Service) (api.Service, error) {
	traffic, err := e.Runs.Program.ServiceTraffic(s.Index, idsOf(s.Members)...)
	view := api.Service{
		Name: s.Name, Role: api.Edge, VIP: s.VIP, Protocol: s.Protocol, Port: s.Port,
		Packets: traffic.All.Packets, Bytes: traffic.All.Bytes,
		Edge: &api.EdgeService{
			UncountedPackets: traffic.Others.Packets, UncountedBytes: traffic.Others.Bytes,
			Policy: s.Policy, Table: s.Table, Candidates: s.Candidates, Depth: s.Depth,
			DrainSeconds: s.DrainTime.Seconds(), SlowSeconds: s.SlowStart.Seconds(),
			HoldSeconds:   s.ReturnHold.Seconds(),
			Encapsulation: e.Node.Edge.Encapsulation, Buckets: s.Buckets,
			Check: s.Check.String(), Panic: s.effect.Panic,
			Backends: make([]api.Backend, 0, len(s.Backends)),
		},
	}
	if err != nil {
		return view, err
	}
	if f := e.Runs.former; s.former != nil {
		view.Edge.FormerUntil = &f.until
	}
	if n := s.NewConnections; n != (config.NewConnections{}) {
		count, err := e.Runs.Program.Openings(s.Index)
		if err != nil {
			return view, err
		}
		view.Edge.NewConnections = &api.NewConnections{Rate: n.Rate, Burst: n.Burst,
			Taken: count.Taken, Refused: count.Refused}
	}
	shares := s.shares()
	for i, b := range s.Backends {
		source := e.Found.Sources[role.LearnedKey{Endpoint: s.Endpoint, SID: b.SID}]
		view.Edge.Backends = append(view.Edge.Backends, api.Backend{
			Service: s.Name, Name: b.Name, SID: b.SID, Weight: b.Weight, State: b.State,
			Agent:     b.Agent,
			Effective: config.BackendState(s.Members[i].State.String()),
			Health:    e.checks.healthView(s, b.Name),
			Learned:   source != "",
			Source:    cmp.Or(string(source), "config"), Buckets: shares[i],
			Packets: traffic.Backends[i].Packets, Bytes: traffic.Backends[i].Bytes,
		})
	}
	return view, nil
}

// idsOf are the numbers of backends, in their order.
func idsOf(members []pool.Backend) []uint16 {
	return lists.Map(members, func(m pool.Backend) uint16 { return m.ID })
}

// shares are how many buckets a generation's backends have as their first candidates, in the order
// of the members.
type shares struct {
	of      *pool.Generation
	members []int
}

// shares counts the buckets by their first candidate, once for each generation.
func (s *Service) shares() []int {
	if s.counted.of == s.Generation && len(s.counted.members) == len(s.Members) {
		return s.counted.members
	}
	members := s.Generation.Shares(idsOf(s.Members))
	s.counted = shares{s.Generation, members}
	return members
}
