package continuity

import (
	"slices"
	"time"

	"sextant/pool"
)

// flow is a connection that has not ended yet, or has since its bucket was looked at.
type flow struct {
	end   time.Duration
	since time.Duration // when it was looked at
	hash  uint32        // of the router before the edges
	lives uint32        // of the owner when it accepted: what died since has lost the connection
	owner uint16
	edge  uint8
	hops  uint8 // of its packets since then; 0: they are lost
}

// arrivals opens the flows that arrive until a time.
func (s *simulation) arrivals(until time.Duration) {
	for s.arrives < until && s.result.Flows < s.Churn.Flows {
		s.now = s.arrives
		s.last = s.now
		s.arrives += s.gap()
		s.result.Flows++
		bucket := s.clients.IntN(s.Spec.Buckets)
		f := flow{since: s.now, end: s.now + s.Life.draw(s.clients), hash: s.clients.Uint32()}
		f.edge = s.route(f.hash)
		if f.owner = s.accept(bucket, f.edge); f.owner == 0 {
			s.result.Unopened++
			continue
		}
		owner := s.servers[f.owner]
		f.lives = owner.lives
		if owner.state == pool.Draining {
			s.result.Late++
		}
		f.hops = deliver(s.Spec.Policy, &s.edges[f.edge].chains[bucket], f.owner, s.reachable).hops
		if flows := s.flows[bucket]; len(flows) == cap(flows) {
			s.flows[bucket] = slices.DeleteFunc(flows, s.ended)
		}
		s.flows[bucket] = append(s.flows[bucket], f)
	}
}

// accept offers a new connection to the candidates, and returns who takes it, 0 if nobody.
func (s *simulation) accept(bucket int, edge uint8) uint16 {
	p := opening(&s.edges[edge].chains[bucket])
	for p.length > 0 && s.reachable(p.host()) {
		if p.length == 1 || s.Refuse == 0 || s.clients.Float64() >= s.Refuse {
			return p.host()
		}
		p = p.rest()
	}
	return 0
}

// ended tells whether a flow is over by now, and counts its time if so.
func (s *simulation) ended(f flow) bool {
	if f.end > s.now {
		return false
	}
	s.result.Hops[f.hops] += f.end - f.since
	return true
}

// anyEdge stands for all edges in a review.
const anyEdge = -1

// review looks at the flows of a bucket that go through an edge, because their chain may be another one now.
func (s *simulation) review(bucket, edge int) {
	kept := s.flows[bucket][:0]
	for _, f := range s.flows[bucket] {
		if s.ended(f) {
			continue
		}
		if edge != anyEdge && int(f.edge) != edge || s.survives(bucket, &f) {
			kept = append(kept, f)
		}
	}
	s.flows[bucket] = kept
}

// survives sends a packet of f to see whether it is still served.
func (s *simulation) survives(bucket int, f *flow) bool {
	owner := f.owner
	if s.servers[owner].lives != f.lives {
		owner = 0
	}
	end := deliver(s.Spec.Policy, &s.edges[f.edge].chains[bucket], owner, s.reachable)
	if s.Circle && s.Spec.Policy == pool.Shadow && end.verdict == reset && owner != 0 {
		end.verdict = lost // until its server is one of the two that the edge knows again
	}
	s.result.Hops[f.hops] += s.now - f.since
	f.since = s.now
	f.hops = end.hops
	switch end.verdict {
	case taken:
		return true
	case lost:
		f.hops = 0
		return true
	}
	s.result.MaxResetHops = max(s.result.MaxResetHops, int(end.hops))
	if owner == 0 {
		s.result.Died++
	} else {
		s.result.Cut++
	}
	return false
}
