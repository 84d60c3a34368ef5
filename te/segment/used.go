package segment

import "sextant/te/topology"

// edgeSet is a set of edges that is cheap to empty.
type edgeSet struct {
	bits []uint64
	list []topology.Edge
}

func newEdgeSet(edges int) edgeSet { return edgeSet{bits: make([]uint64, (edges+63)/64)} }

func (s *edgeSet) has(e topology.Edge) bool { return s.bits[e>>6]&(1<<(uint(e)&63)) != 0 }

func (s *edgeSet) add(e topology.Edge) {
	if e != topology.NoEdge && !s.has(e) {
		s.bits[e>>6] |= 1 << (uint(e) & 63)
		s.list = append(s.list, e)
	}
}

func (s *edgeSet) clear() {
	for _, e := range s.list {
		s.bits[e>>6] = 0
	}
	s.list = s.list[:0]
}

// take adds all that a path disjoint from these edges must not cross. The edges lie on a path
// between the ends.
func (e *Engine) take(s *edgeSet, kind Disjointness, from, to topology.Node,
	edges []topology.Edge) {
	for _, edge := range edges {
		s.add(edge)
		switch kind {
		case LinkDisjoint:
			s.add(e.graph.Reverse(edge))
		case NodeDisjoint:
			e.takeNode(s, from, to, e.graph.From(edge))
			e.takeNode(s, from, to, e.graph.To(edge))
		case SRLGDisjoint:
			s.add(e.graph.Reverse(edge))
			e.takeGroups(s, edge)
			if back := e.graph.Reverse(edge); back != topology.NoEdge {
				e.takeGroups(s, back)
			}
		}
	}
}

// takeGroups adds the links that share a risk with an edge. Both directions of a link share the
// risks of either.
func (e *Engine) takeGroups(s *edgeSet, edge topology.Edge) {
	for _, group := range e.graph.Edge(edge).SRLGs {
		for _, other := range e.groups[group] {
			s.add(other)
			s.add(e.graph.Reverse(other))
		}
	}
}

// takeNode adds the edges into a node between the ends; then nothing gets there.
func (e *Engine) takeNode(s *edgeSet, from, to, v topology.Node) {
	if v == from || v == to {
		return
	}
	for _, edge := range e.graph.In(v) {
		s.add(edge)
	}
}
