package pcc

import (
	"slices"
	"time"

	"sextant/lb/pool"
)

// edge is one load balancer.
type edge struct {
	generation *pool.Generation
	chains     []pool.Chain // of the generation
	backends   []pool.Backend
	informed   time.Duration // when the latest news reach it
	epoch      int           // changes when the process dies, and when the next one starts
}

// learn gives an edge the servers as they were a moment ago, and looks at the flows whose chains
// change by that.
func (s *simulation) learn(i int, backends []pool.Backend) error {
	e := &s.edges[i]
	e.backends = backends
	next, err := e.generation.Next(backends, s.now)
	if err != nil || next == e.generation {
		return err
	}
	e.generation = next
	for bucket := range e.chains {
		if chain := next.Chain(bucket); chain != e.chains[bucket] {
			e.chains[bucket] = chain
			s.review(bucket, i)
		}
	}
	if at, waiting := next.NextAt(); waiting {
		epoch := e.epoch
		s.agenda.add(max(at, s.now+1), func() error {
			if e.generation != next || e.epoch != epoch {
				return nil
			}
			return s.learn(i, e.backends)
		})
	}
	return nil
}

// kill ends an edge's process: its memory is gone, and its flows go through the others.
func (s *simulation) kill(i int) error {
	s.edges[i].epoch++
	s.live = slices.DeleteFunc(s.live, func(other int) bool { return other == i })
	s.result.Restarts++
	s.reroute()
	s.agenda.add(s.now+s.Restart/2, func() error { return s.start(i) })
	s.agenda.add(s.now+s.Restart, func() error { return s.kill((i + 1) % len(s.edges)) })
	return nil
}

// start begins a new process. It knows how the servers are now, or what another edge knows, and
// takes its part of the flows.
func (s *simulation) start(i int) error {
	e := &s.edges[i]
	e.epoch++ // what was on the way to the process before is not for this one
	e.informed = s.now
	var err error
	if s.Peer {
		peer := &s.edges[s.live[0]]
		e.generation, err = pool.Resume(s.Spec, peer.chains, s.backends(), s.now)
	} else {
		e.generation, err = pool.New(s.Spec, s.backends(), s.now)
	}
	if err != nil {
		return err
	}
	e.backends = s.backends()
	e.chains = e.generation.AllChains()
	s.live = append(s.live, i)
	slices.Sort(s.live)
	s.reroute()
	return nil
}

// route is the edge that the router chooses for a flow.
func (s *simulation) route(hash uint32) uint8 {
	return uint8(s.live[int(hash)%len(s.live)])
}

// reroute sends all flows where the router does now.
func (s *simulation) reroute() {
	for bucket := range s.flows {
		s.forget(bucket)
		for i := range s.flows[bucket] {
			s.flows[bucket][i].edge = s.route(s.flows[bucket][i].hash)
		}
		s.review(bucket, anyEdge)
	}
}
