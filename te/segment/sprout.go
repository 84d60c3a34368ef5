package segment

import (
	"sextant/te/spf"
	"sextant/te/topology"
)

// sprout is the part of a forced tree that is of use: Dijkstra's algorithm from the root of a row,
// or toward it, that ends when no branch is left that is free and worth going on with. In large
// networks that is a small part of the row, which need not be kept then.
type sprout struct {
	*Engine
	used   *edgeSet
	queue  spf.Queue
	round  uint32
	buds   []bud
	live   int             // how many live buds wait
	order  []topology.Node // the live ones, by distance
	toward bool
}

// bud is what is known of a node.
type bud struct {
	dist  uint64
	cost  uint64        // in latency, by the only shortest path
	via   topology.Edge // the last edge of that path; spf.Several if there are more
	round uint32        // whether this is of the search at hand
	live  bool          // whether that path is free and worth it
}

func newSprout(e *Engine, used *edgeSet) sprout {
	return sprout{Engine: e, used: used, buds: make([]bud, e.graph.Nodes())}
}

// grow finds the nodes to which, or if toward is set from which, segments lead that are forced,
// free and worth it. What a segment is worth must not rise on the way.
func (s *sprout) grow(root topology.Node, toward bool,
	worth func(v topology.Node, cost uint64) bool) {
	s.round++
	if s.round == 0 { // after 2^32 rounds old stamps would look new
		clear(s.buds)
		s.round = 1
	}
	s.toward = toward
	s.queue.ResetWithin(s.igp.Most())
	s.order = s.order[:0]
	s.live = 1
	s.buds[root] = bud{via: topology.NoEdge, round: s.round, live: true}
	s.queue.Push(spf.Item{Cost: 0, Node: root})
	for s.live > 0 {
		it := s.queue.Pop() // there is one, as there is a live one
		b := s.buds[it.Node]
		if it.Cost != b.dist {
			continue
		}
		if b.live {
			s.live--
			s.order = append(s.order, it.Node)
		}
		arcs := s.igp.Out(it.Node)
		if toward {
			arcs = s.igp.In(it.Node)
		}
		for _, a := range arcs {
			if a.Cost != 0 {
				s.reach(b, a, worth)
			}
		}
	}
}

// reach goes on from a node by an arc. All costs are at least 1, so a node is settled when all
// shortest paths to it are known.
func (s *sprout) reach(near bud, a spf.Arc, worth func(topology.Node, uint64) bool) {
	far, dist := &s.buds[a.Node], near.dist+a.Cost
	known := far.round == s.round
	if known && dist > far.dist {
		return
	}
	if known && far.live {
		far.live = false
		s.live--
	}
	if known && dist == far.dist {
		far.via = spf.Several
		return
	}
	*far = bud{dist: dist, cost: near.cost + s.cost(a.Edge), via: a.Edge, round: s.round}
	if near.live && !s.used.has(a.Edge) && worth(a.Node, far.cost) {
		far.live = true
		s.live++
	}
	s.queue.Push(spf.Item{Cost: dist, Node: a.Node})
}

// to is the cost of the segment between the root and v; spf.Unreachable if there is none that is
// forced, free and worth it.
func (s *sprout) to(v topology.Node) uint64 {
	if b := &s.buds[v]; b.round == s.round && b.live {
		return b.cost
	}
	return spf.Unreachable
}
