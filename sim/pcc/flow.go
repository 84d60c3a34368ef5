package pcc

import (
	"slices"
	"time"

	"sextant/lb/pool"
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

	timeWait [timeWaitsMost]uint16 // servers of connections of the same ports before
}

// past is a connection that its server has closed.
type past struct {
	flow
	bucket int
}

// reuse draws a flow whose ports come again, if one does.
func (s *simulation) reuse() (p past, ok bool) {
	if s.Reuse == 0 || s.clients.Float64() >= s.Reuse {
		return past{}, false
	}
	for len(s.past) > 0 && !ok {
		last := len(s.past) - 1
		i := s.clients.IntN(len(s.past))
		p, s.past[i] = s.past[i], s.past[last]
		s.past = s.past[:last]
		ok = p.end+timeWaitLasts > s.now && s.servers[p.owner].lives == p.lives
	}
	return p, ok
}

// follow makes f the next connection of the ports of p.
func (f *flow) follow(p *past) {
	f.hash = p.hash
	f.timeWait = [timeWaitsMost]uint16{p.owner, p.timeWait[0]}
}

// accepted is the server's: its kernel forgets the connection before for the new one.
func (f *flow) accepted(owner uint16, lives uint32) {
	f.owner, f.lives = owner, lives
	for i, id := range f.timeWait {
		if id == owner {
			f.timeWait[i] = 0
		}
	}
}

// sockets are those of its ports, if the owner still has the connection.
func (s *simulation) sockets(f *flow) sockets {
	all := sockets{f.owner, f.timeWait, s.matching}
	if s.servers[f.owner].lives != f.lives {
		all.owner = 0
	}
	return all
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
		if before, ok := s.reuse(); ok {
			bucket = before.bucket
			f.follow(&before)
		}
		f.edge = s.route(f.hash)
		id := s.accept(bucket, f.edge)
		if id == 0 {
			s.result.Unopened++
			continue
		}
		owner := s.servers[id]
		f.accepted(id, owner.lives)
		if f.timeWait != [timeWaitsMost]uint16{} {
			s.result.Reused++
		}
		if owner.state == pool.Draining {
			s.result.Late++
		}
		if !s.survives(bucket, &f) {
			continue
		}
		if flows := s.flows[bucket]; len(flows) == cap(flows) {
			s.forget(bucket)
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

// forget removes the flows of a bucket that are over by now.
func (s *simulation) forget(bucket int) {
	s.flows[bucket] = slices.DeleteFunc(s.flows[bucket],
		func(f flow) bool { return s.end(bucket, &f) })
}

// end counts the time of a flow if it is over by now, and lets its server keep it in TIME-WAIT.
func (s *simulation) end(bucket int, f *flow) bool {
	if f.end > s.now {
		return false
	}
	s.result.Hops[f.hops] += f.end - f.since
	if s.Reuse > 0 {
		s.past = append(s.past, past{*f, bucket})
	}
	return true
}

// anyEdge stands for all edges in a review.
const anyEdge = -1

// review looks at the flows of a bucket that go through an edge, because their chain may be another
// one now.
func (s *simulation) review(bucket, edge int) {
	kept := s.flows[bucket][:0]
	for _, f := range s.flows[bucket] {
		if s.end(bucket, &f) {
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
	all := s.sockets(f)
	end := deliver(s.Spec.Policy, &s.edges[f.edge].chains[bucket], all, s.reachable)
	if s.Circle && s.Spec.Policy == pool.Shadow && end.verdict == reset && all.owner != 0 {
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
	case hung:
		s.result.Hung++
		return false
	}
	s.result.MaxResetHops = max(s.result.MaxResetHops, int(end.hops))
	if all.owner == 0 {
		s.result.Died++
	} else {
		s.result.Cut++
	}
	return false
}
