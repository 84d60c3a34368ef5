package segment

import (
	"slices"

	"sextant/spf"
	"sextant/topology"
)

// search is the memory of one query, used for one after the other.
//
// Finding a path takes three steps. First the path of least cost over the edges that are free, whatever segments it takes: an
// A* search from the destination, led by the distances from the source. If there is none, there is no segmentable one. If there
// is one and its minimal list is short enough, no other path is better, except for those of the same cost and fewer SIDs. Only
// where there may be some, or the list is too long, does the third step go through the states of Algorithm 3 (states.go),
// with the first step's result as a bound.
type search struct {
	*Engine
	query Query
	used  edgeSet

	// Of the first step.
	heap    spf.Heap
	level   []topology.Node // nodes that wait at the cost that the search has come to
	round   uint32
	reached []uint32 // == round: dist holds a cost to the destination
	settled []uint32 // == round: and it is exact
	dist    []uint64
	ahead   []uint64 // the source's row: lower bounds of the cost from it
	least   uint64   // the cost of the path found
	unique  bool     // whether it is the only one of that cost

	states states
}

func newSearch(e *Engine) *search {
	n := e.graph.Nodes()
	s := &search{
		Engine: e, used: newEdgeSet(e.graph.Edges()),
		reached: make([]uint32, n), settled: make([]uint32, n), dist: make([]uint64, n),
	}
	s.states = newStates(s)
	return s
}

// run finds one path after the other.
func (s *search) run(q Query) Answer {
	s.query = q
	s.used.clear()
	for _, e := range q.Avoid {
		s.used.add(e)
	}
	answer := Answer{Query: q, Stop: Enough}
	for q.Paths == 0 || len(answer.Paths) < q.Paths {
		path, stop, needs := s.next()
		if stop != "" {
			answer.Stop, answer.Needs = stop, needs
			break
		}
		answer.Paths = append(answer.Paths, path)
		s.take(&s.used, q.Disjoint, q.From, q.To, path.Edges)
	}
	return answer
}

// next finds the best path over free edges, or says why there is none.
func (s *search) next() (path Path, stop Stop, needs int) {
	if !s.leastCost() {
		return Path{}, NoWay, 0
	}
	edges := s.leastPath()
	sids, stuck := s.minimal(edges, s.query.Model)
	needs = len(sids)
	bound := spf.Unreachable
	if s.query.Model != ECMP && stuck == topology.NoEdge && needs <= s.query.MaxSIDs {
		bound = s.least + uint64(needs)*sidCost
		if s.unique || needs == 1 {
			return s.path(edges, sids), "", 0
		}
	}
	if s.states.improve(bound) {
		return s.states.path(), "", 0
	}
	if bound == spf.Unreachable {
		return Path{}, ListTooLong, needs
	}
	return s.path(edges, sids), "", 0
}

func (s *search) path(edges []topology.Edge, sids []SID) Path {
	latency := int64(0)
	for _, e := range edges {
		latency += s.graph.Delay(e)
	}
	return Path{Edges: edges, SIDs: sids, Latency: latency, Forced: s.forced(s.query.From, sids)}
}

// leastCost finds the least cost from the source to the destination over free edges, and, exactly, that of all nodes on the
// paths of this cost. It searches from the destination; how far a node is from the source when nothing is in use never
// overestimates, so nodes are settled once.
func (s *search) leastCost() bool {
	s.round++
	if s.round == 0 { // after 2^32 rounds old stamps would look new
		clear(s.reached)
		clear(s.settled)
		s.round = 1
	}
	s.ahead = s.latency.From(s.query.From).Dist
	s.least = spf.Unreachable
	if s.ahead[s.query.To] == spf.Unreachable {
		return false
	}
	s.heap, s.level = s.heap[:0], s.level[:0]
	if !s.leaves(s.query.From) {
		return false
	}
	s.open(s.query.To, 0, s.ahead[s.query.To])
	for at := s.ahead[s.query.To]; at <= s.least; {
		if len(s.level) == 0 {
			if len(s.heap) == 0 {
				break
			}
			it := s.heap.Pop()
			at = it.Cost
			s.level = append(s.level, it.Node)
			continue
		}
		v := s.level[len(s.level)-1]
		s.level = s.level[:len(s.level)-1]
		if s.settled[v] != s.round {
			s.settle(v, at)
		}
	}
	return s.least != spf.Unreachable
}

// leaves tells whether any edge from v is free: when the source's are all in use, there is no need to search.
func (s *search) leaves(v topology.Node) bool {
	return slices.ContainsFunc(s.latency.Out(v), func(a spf.Arc) bool { return a.Cost != 0 && !s.used.has(a.Edge) })
}

// settle goes on from a node on a path of cost at.
func (s *search) settle(v topology.Node, at uint64) {
	s.settled[v] = s.round
	if v == s.query.From {
		s.least = at
		return
	}
	cost := s.dist[v]
	for _, a := range s.latency.In(v) {
		if a.Cost != 0 && !s.used.has(a.Edge) {
			s.open(a.Node, cost+a.Cost, at)
		}
	}
}

// open reaches a node. No path will cost less than at, where the search is; what does not cost more need not queue.
func (s *search) open(v topology.Node, cost, at uint64) {
	if s.reached[v] == s.round && s.dist[v] <= cost || s.ahead[v] == spf.Unreachable {
		return
	}
	s.reached[v] = s.round
	s.dist[v] = cost
	if total := cost + s.ahead[v]; total <= at {
		s.level = append(s.level, v)
	} else if total < s.least {
		s.heap.Push(spf.Item{Cost: total, Node: v})
	}
}

// leastPath follows the cost to the destination, by the lowest edge where several serve.
func (s *search) leastPath() []topology.Edge {
	var edges []topology.Edge
	s.unique = true
	for v := s.query.From; v != s.query.To; {
		next := topology.NoEdge
		for _, a := range s.latency.Out(v) {
			if a.Cost == 0 || s.settled[a.Node] != s.round || s.dist[a.Node]+a.Cost != s.dist[v] || s.used.has(a.Edge) {
				continue
			}
			if next != topology.NoEdge {
				s.unique = false
				break
			}
			next = a.Edge
		}
		edges = append(edges, next)
		v = s.graph.To(next)
	}
	return edges
}

// bound is at most what it costs to get from v to the destination over free edges.
func (s *search) bound(v topology.Node, free []uint64) uint64 {
	switch {
	case s.settled[v] == s.round:
		return s.dist[v]
	case s.ahead[v] >= s.least: // a node that costs more to get to than the whole path
		return free[v]
	}
	return max(free[v], s.least-s.ahead[v])
}
