package elephant

import (
	"sextant/te/spf"
	"sextant/te/topology"
)

// score compares paths: the one with less of first is better, then that with less of second.
type score struct {
	first  float64
	second int64
}

func (s score) less(o score) bool {
	return s.first < o.first || s.first == o.first && s.second < o.second
}

// search walks over the graph of the shortest paths to a root, each node of it once.
type search struct {
	row   *spf.Row
	round uint32
	seen  []uint32        // by node: the round in which it was looked at
	score []score         // of the best way from the node to the root
	via   []topology.Edge // that it begins with
}

func newSearch(nodes int) search {
	return search{seen: make([]uint32, nodes), score: make([]score, nodes),
		via: make([]topology.Edge, nodes)}
}

// least scores the best way from a node to the root. Step scores a way by an edge from the score of
// the rest; ok is false where the edge is not to be taken.
func (s *search) least(v topology.Node, step func(e topology.Edge, rest score) (score, bool)) {
	s.seen[v], s.via[v] = s.round, topology.NoEdge
	s.score[v] = score{}
	if v == s.row.Root {
		return
	}
	for _, arc := range s.row.Back(v) {
		if !s.row.TightBack(v, arc) {
			continue
		}
		if s.seen[arc.Node] != s.round {
			s.least(arc.Node, step)
		}
		if arc.Node != s.row.Root && s.via[arc.Node] == topology.NoEdge {
			continue
		}
		way, ok := step(arc.Edge, s.score[arc.Node])
		if ok && (s.via[v] == topology.NoEdge || way.less(s.score[v])) {
			s.score[v], s.via[v] = way, arc.Edge
		}
	}
}

// best returns a path by Flows or Weight; by Flows also what Coloring falls back to.
func (s *Scheduler) best(ends Ends, by Objective) ([]topology.Edge, bool) {
	s.search.row = s.table.To(ends.To)
	if by == Weight {
		s.walk(ends.From, func(e topology.Edge, rest score) (score, bool) {
			return score{rest.first + s.weight(e), rest.second + int64(s.loads[e])}, true
		})
		return s.path(ends)
	}
	s.walk(ends.From, func(e topology.Edge, rest score) (score, bool) {
		return score{first: max(rest.first, s.fullness(e))}, true
	})
	bottleneck := s.search.score[ends.From].first
	s.walk(ends.From, func(e topology.Edge, rest score) (score, bool) {
		return score{second: rest.second + int64(s.loads[e])}, s.fullness(e) <= bottleneck
	})
	return s.path(ends)
}

func (s *Scheduler) walk(from topology.Node,
	step func(e topology.Edge, rest score) (score, bool)) {
	s.search.round++
	s.search.least(from, step)
}

// path reads the path that the last walk found.
func (s *Scheduler) path(ends Ends) ([]topology.Edge, bool) {
	var path []topology.Edge
	for v := ends.From; v != ends.To; v = s.graph.To(path[len(path)-1]) {
		if s.search.via[v] == topology.NoEdge {
			return nil, false
		}
		path = append(path, s.search.via[v])
	}
	return path, true
}

// fullness is what a link would carry with one flow more.
func (s *Scheduler) fullness(e topology.Edge) float64 {
	return float64(s.loads[e]+1) * s.scale[e]
}

func (s *Scheduler) weight(e topology.Edge) float64 {
	weight := s.settings.Herd * float64(s.recent[e]) * s.scale[e]
	if s.settings.Weight != nil {
		weight += s.settings.Weight(e)
	}
	return weight
}

// NextHops returns the links by which shortest paths to another router leave a router, in the
// topology's order.
func (s *Scheduler) NextHops(v, to topology.Node) []topology.Edge {
	var links []topology.Edge
	row := s.table.To(to)
	for _, arc := range row.Back(v) {
		if row.TightBack(v, arc) {
			links = append(links, arc.Edge)
		}
	}
	return links
}
