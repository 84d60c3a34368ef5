package spf

import (
	"slices"

	"sextant/te/topology"
)

// Hop is an edge on a shortest path.
type Hop struct {
	Latency   uint64
	Near, Far topology.Node // its ends, the one nearer to the root first
	Edge      topology.Edge
	// the index of the first hop behind those that lead to Far, and to the nodes that no shortest
	// path gets to but by Far
	Beyond int32
}

// Hops lists all edges on shortest paths: those to a node next to each other, and behind those to
// the nodes before it. Who does not want to go by a node goes on at Beyond. They are listed when
// first asked for.
func (r *Row) Hops() []Hop {
	if hops := r.hops.Load(); hops != nil {
		return *hops
	}
	l := hopLister{Row: r, place: make([]place, len(r.Dist)), hops: make([]Hop, 0, len(r.Dist)),
		order: make([]topology.Node, 0, len(r.Dist))}
	for v := range l.place {
		l.place[v] = place{gate: topology.NoNode, inside: topology.NoNode, next: topology.NoNode}
	}
	for v, dist := range r.Dist {
		if dist != Unreachable {
			l.find(topology.Node(v))
		}
	}
	for _, v := range slices.Backward(l.order) {
		if v != r.Root {
			gate := &l.place[l.place[v].gate]
			l.place[v].next, gate.inside = gate.inside, v
		}
	}
	l.enter(r.Root)
	r.hops.Store(&l.hops) // of two that are made at once, both are right
	return l.hops
}

// hopLister finds for each node the last one that all shortest paths to it cross, its gate; in a
// network without cycles that is the nearest that is common to the ways by all edges that lead
// there.
type hopLister struct {
	*Row
	place []place // by node
	order []topology.Node
	hops  []Hop
}

// place is where a node is in the tree of gates.
type place struct {
	gate  topology.Node
	depth int32 // 0: not found yet; the root has 1
	// the first node of which this one is the gate, and the next one with the same gate
	inside, next topology.Node
}

// find orders nodes, each behind all that lead to it. Distances shrink on the way to the root, so
// it ends.
func (l *hopLister) find(v topology.Node) {
	if l.place[v].depth != 0 {
		return
	}
	gate := topology.NoNode
	for _, a := range l.back.of(v) {
		if l.tight(a.Node, v, a.Cost) {
			l.find(a.Node)
			gate = l.common(gate, a.Node)
		}
	}
	p := &l.place[v]
	if p.gate, p.depth = gate, 1; gate != topology.NoNode {
		p.depth += l.place[gate].depth
	}
	l.order = append(l.order, v)
}

// common is the last node that is, or is a gate on the way to, both.
func (l *hopLister) common(a, b topology.Node) topology.Node {
	if a == topology.NoNode {
		return b
	}
	for a != b {
		if l.place[a].depth < l.place[b].depth {
			a, b = b, a
		}
		a = l.place[a].gate
	}
	return a
}

// enter lists what leads to the nodes of which v is the gate, and what they are the gates of.
func (l *hopLister) enter(v topology.Node) {
	for far := l.place[v].inside; far != topology.NoNode; far = l.place[far].next {
		begin := len(l.hops)
		for _, a := range l.back.of(far) {
			if l.tight(a.Node, far, a.Cost) {
				l.hops = append(l.hops, Hop{Latency: l.table.latency[a.Edge], Near: a.Node,
					Far: far, Edge: a.Edge})
			}
		}
		end := len(l.hops)
		l.enter(far)
		for i := begin; i < end; i++ {
			l.hops[i].Beyond = int32(len(l.hops))
		}
	}
}
