package edge

import (
	"fmt"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

// The order of a bucket's candidates: the edge's own site first, then by the cost of the way and by
// the load of the host, whichever of them the service names. Who is a candidate is the table's word
// alone, so edges that know other weights find the same connections.

// emptyPath is what is added to the congestion of ways: a fifth of a full queue. So ways that are
// free but for a few packets, a fiftieth of a full queue, have the same rank.
const emptyPath = 2_000

// ordered says whether offers to the members of a service have an order.
func (s *Service) ordered(n *config.Node) bool {
	return len(s.Order) > 0 || s.remote(n)
}

// remote says whether a service has backends at another site than the edge.
func (s *Service) remote(n *config.Node) bool {
	return n.Edge.Site != "" && len(s.Sites()) > 1
}

// weightsOf are what offers to the members of a service cost, in their order; nil if it has no
// order.
func (e *Room) weightsOf(s *Service, n *config.Node) []pool.Weight {
	if !s.ordered(n) {
		return nil
	}
	sites := s.remote(n)
	weights := make([]pool.Weight, len(s.Backends))
	for i, b := range s.Backends {
		weights[i].Remote = sites && b.Site != n.Edge.Site
	}
	if slices.Contains(s.Order, config.OrderByPath) && s.way != nil {
		s.weighPaths(weights)
	}
	if slices.Contains(s.Order, config.OrderByLoad) {
		e.weighLoads(s, weights)
	}
	return weights
}

// weighPaths adds the costs of the ways.
func (s *Service) weighPaths(weights []pool.Weight) {
	least := 0.0
	for i, b := range s.Backends {
		a, known := s.way.answers[s.way.nodes[b.SID]]
		if !known {
			continue
		}
		cost := float64(max(a.Own, 1))
		for k, p := range a.Paths {
			cost = max(float64(p.Cost), 1)
			if k > 0 { // flows are spread over both
				cost = float64(a.Paths[0].Cost+p.Cost) / 2
			}
		}
		if weights[i].Path = cost; least == 0 || cost < least {
			least = cost
		}
	}
	for i := range weights {
		if weights[i].Path == 0 { // as the farthest: nothing speaks for it
			continue
		}
		weights[i].LeastPath = least
		if s.way.want.By == config.ByTelemetry {
			weights[i].EmptyPath = emptyPath
		}
	}
}

// weighLoads adds the loads of the hosts. One that is not known counts as the mean.
func (e *Room) weighLoads(s *Service, weights []pool.Weight) {
	sum, known := 0.0, 0
	for i, b := range s.Backends {
		if c, _, ok := e.loads.of(b.Agent, s.Endpoint); ok {
			weights[i].Load = c.Load
			sum, known = sum+c.Load, known+1
		}
	}
	for i := range weights {
		if known > 0 {
			weights[i].MeanLoad = sum / float64(known)
		}
	}
}

// orderOf is the order of a service's backends. A rank stays until a weight has moved some way.
func (e *Room) orderOf(s *Service, n *config.Node) pool.Order {
	weights := e.weightsOf(s, n)
	if weights == nil {
		return nil
	}
	order := pool.Order{}
	for i, m := range s.Members {
		order[m.ID] = weights[i].Rank(s.order[m.ID])
	}
	return order
}

// reorder brings services into force whose candidates have another order now.
func (e *Room) reorder() {
	var next []datapath.ServiceChains
	var of []*Service
	for i := range e.list() {
		s := &e.Runs.Services[i]
		s.order = e.orderOf(s, e.Node)
		if g := s.Generation.Ordered(s.order); g != s.Generation {
			next = append(next, datapath.ServiceChains{Index: s.Index, Generation: g})
			of = append(of, s)
		}
	}
	e.Runs.changeChains(next, func(i int, err error) {
		if err != nil {
			e.retryLater(err)
			return
		}
		of[i].Generation = next[i].Generation
		e.changes++
	})
}

// orderWarnings are about services in order whose hosts learn by comparing themselves with hosts at
// random: those that come first are told nothing, and refuse what those behind must take.
func (e *Room) orderWarnings() (list []string) {
	for _, s := range e.list() {
		if !s.ordered(e.Node) {
			continue
		}
		for _, b := range s.Backends {
			c, _, known := e.loads.of(b.Agent, s.Endpoint)
			if known && (c.Accept == config.Average || c.Accept == config.Delay ||
				c.Accept == config.Dynamic) {
				list = append(list, fmt.Sprintf("service %s: candidates are in order, and %s "+
					"accepts by policy %s, which wants them at random: hosts that come first "+
					"refuse much of what the others must take; write accept: {policy: static, "+
					"threshold: CONNECTIONS} or {policy: always} on the hosts", s.Name, b.Name,
					c.Accept))
				break
			}
		}
	}
	return list
}

// placeOrder says why a candidate is where it is; nil if the table alone says.
func (e *Room) placeOrder(s *Service, member int) *api.PlaceOrder {
	weights := e.weightsOf(s, e.Node)
	if weights == nil {
		return nil
	}
	w := weights[member]
	o := &api.PlaceOrder{Rank: int(s.order[s.Members[member].ID]), Remote: w.Remote,
		Path: w.Path, LeastPath: w.LeastPath, Load: w.Load, MeanLoad: w.MeanLoad}
	if c, age, ok := e.loads.of(s.Backends[member].Agent, s.Endpoint); ok && w.Load > 0 {
		o.Told, o.LoadAgeSeconds = c.Mean, age.Seconds()
	}
	if w.Path > 0 {
		o.PathAgeSeconds = s.way.age().Seconds()
	}
	return o
}
