package segment

import (
	"slices"

	"sextant/te/spf"
	"sextant/te/topology"
)

// search is the memory of one query, used for one after the other.
//
// Finding a path takes three steps. First the path of least cost over the edges that are free,
// whatever segments it takes (guided.go). If there is none, there is no segmentable one. If there
// is one and its minimal list is short enough, no other path is better, except for those of the
// same cost and fewer SIDs. Only where there may be some, or the list is too long, does the third
// step go through the states of Algorithm 3 (states.go), with what the first step found as bounds;
// at first for paths that cost little more than the first step's, then for others, as the effort
// grows with that.
type search struct {
	*Engine
	query Query
	used  edgeSet

	quick  guided // the quickest way
	plain  guided // the way of least IGP weight
	states states
	way    []topology.Edge // that is looked at
	again  rearranger
}

func newSearch(e *Engine) *search {
	s := &search{Engine: e, used: newEdgeSet(e.graph.Edges())}
	s.quick, s.plain = newGuided(e.latency, &s.used), newGuided(e.igp, &s.used)
	s.states, s.again = newStates(s), newRearranger(s)
	return s
}

// begin puts the edges in use that no path may have.
func (s *search) begin() {
	s.used.clear()
	for _, e := range s.query.Avoid {
		s.used.add(e)
	}
}

// run finds one path after the other.
func (s *search) run(q Query) Answer {
	s.query = q
	s.quick.short, s.plain.short = q.Model.layer() != spf.Forced, true
	s.begin()
	answer := Answer{Query: q, Stop: Enough}
	for q.Paths == 0 || len(answer.Paths) < q.Paths {
		path, stop, needs := s.next()
		if stop != "" && len(answer.Paths) == 1 && !q.Greedy && !answer.Rearranged {
			if pair := s.again.rearrange(answer.Paths[0]); pair != nil {
				answer.Paths, answer.Rearranged = pair, true
				continue
			}
		}
		if stop != "" {
			answer.Stop, answer.Needs = stop, needs
			break
		}
		if len(answer.Paths) == 0 {
			answer.Least = path.Latency
		}
		answer.Paths = append(answer.Paths, path)
		s.take(&s.used, q.Disjoint, q.From, q.To, path.Edges)
	}
	return answer
}

// next finds the best path over free edges, or says why there is none.
func (s *search) next() (path Path, stop Stop, needs int) {
	if !s.quick.find(s.query.From, s.query.To) {
		return Path{}, NoWay, 0
	}
	edges, unique := s.quick.path(s.way[:0])
	s.way = edges
	sids, stuck := s.minimal(edges, s.query.Model)
	needs = len(sids)
	fits := stuck == topology.NoEdge && needs <= s.query.MaxSIDs
	if fits && (unique || needs == 1) {
		return s.path(edges, sids), "", 0
	}
	if fits {
		if s.states.improve(s.costOf(edges, sids)) {
			return s.states.path(), "", 0
		}
		return s.path(edges, sids), "", 0
	}
	// Rows of layers hold all they tell, and are soon made in the networks that such models suit:
	// there, one go is the quickest.
	staged := s.query.Model.layer() == spf.Forced
	slack := s.quick.least / 64 // more than half of those that exist cost less than this
	if staged && s.states.improve(s.quick.least+slack) {
		return s.states.path(), "", 0
	}
	// The way of least weight, as the IGP itself would choose it without the edges in use, tends to
	// have a short list. It is seldom the best, but a bound.
	s.plain.find(s.query.From, s.query.To)
	edges, _ = s.plain.path(s.way[:0])
	s.way = edges
	limit := spf.Unreachable
	if sids, stuck = s.minimal(edges, s.query.Model); stuck == topology.NoEdge &&
		len(sids) <= s.query.MaxSIDs {
		limit = s.costOf(edges, sids)
	}
	for slack *= 4; staged && s.quick.least+slack < min(limit, 2*s.quick.least); slack *= 4 {
		if s.states.improve(s.quick.least + slack) {
			return s.states.path(), "", 0
		}
	}
	switch {
	case s.states.improve(limit):
		return s.states.path(), "", 0
	case limit != spf.Unreachable:
		return s.path(edges, sids), "", 0
	}
	return Path{}, ListTooLong, needs
}

// costOf is what a path costs with its list.
func (s *search) costOf(edges []topology.Edge, sids []SID) uint64 {
	cost := uint64(len(sids)) * sidCost
	for _, e := range edges {
		cost += s.cost(e)
	}
	return cost
}

// path is one with a list that forces it, or, for the paper's model, is held to. It keeps a copy
// of the edges.
func (s *search) path(edges []topology.Edge, sids []SID) Path {
	latency := int64(0)
	for _, e := range edges {
		latency += s.graph.Delay(e)
	}
	if s.query.Model == ECMP {
		slices.Sort(edges)
	}
	return Path{Edges: slices.Clone(edges), SIDs: sids, Latency: latency,
		Forced: s.forced(s.query.From, sids)}
}
