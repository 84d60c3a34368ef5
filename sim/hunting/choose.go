package hunting

import "sextant/lb/acceptance"

// next is the server of a request: the given one, or one that is chosen.
func (s *simulation) next(j *job) int {
	if len(s.given) > 0 {
		i := int(s.given[0])
		s.given = s.given[1:]
		if i < len(s.servers) {
			return i
		}
	}
	return s.choose(j)
}

// choose selects the server of a request.
func (s *simulation) choose(j *job) int {
	switch s.config.Choice {
	case LeastOfAll:
		return s.crowd.least(s.random)
	case ByProbes:
		return s.probed(j.at)
	}
	chain := s.generation.Chain(s.random.IntN(s.generation.Buckets()))
	candidates := chain.IDs[:chain.Candidates]
	if n := s.network; n != nil && (n.OrdersByPath || n.OrdersByLoad) {
		s.network.order(candidates)
	}
	if s.config.Choice == LeastOfCandidates {
		best := int(candidates[0]) - 1
		for _, id := range candidates[1:] {
			if i := int(id) - 1; s.servers[i].lighter(&s.servers[best]) {
				best = i
			}
		}
		return best
	}
	if s.config.Choice == LeastReported {
		return s.reported(candidates, j)
	}
	return s.hunt(candidates, j)
}

// lighter compares connections per core, with that to come.
func (v *server) lighter(o *server) bool {
	return (v.connections+1)*o.cores < (o.connections+1)*v.cores
}

// hunt offers the request to the candidates in turn.
func (s *simulation) hunt(candidates []uint16, j *job) int {
	var told acceptance.Note
	for place, id := range candidates {
		v := &s.servers[id-1]
		left := len(candidates) - 1 - place
		answer, state := v.policy.Decide(v.state,
			acceptance.Offer{Busy: v.connections, Left: uint32(left), Told: told, Now: j.at})
		v.state = state
		if answer.Accept {
			s.result.accepted(place, j.measured)
			return int(id) - 1
		}
		told = answer.Tell
	}
	return int(candidates[len(candidates)-1]) - 1
}
