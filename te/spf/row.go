package spf

import (
	"sync/atomic"

	"sextant/te/topology"
)

// Several stands in Row.Via for a node that more than one shortest path leads to.
const Several topology.Edge = -2

// Row is the shortest paths from its root to all nodes, or, for a row of Table.To, from all nodes
// to its root. Its slices must not be changed. A row is current until the next Apply, which mends
// it in place.
type Row struct {
	Root topology.Node
	// Dist is the distance of each node, Unreachable when there is none.
	Dist []uint64
	// Via is the forced tree T_r: for a node with exactly one shortest path, its edge next to the
	// node; Several when there are more (parallel edges of equal cost count); NoEdge for the root
	// and for what is unreachable.
	Via []topology.Edge

	table       *Table
	back, ahead *arcs // the arcs toward the root and away from it
	layers      [layerKinds]atomic.Pointer[Layer]
	hops        atomic.Pointer[[]Hop]
	held        atomic.Bool   // whether it is more than passing
	asked       atomic.Uint32 // if not, after which change it was asked for last
}

// Paths is how many shortest paths there are between the root and v: 0, 1, or 2 for two and more.
func (r *Row) Paths(v topology.Node) int {
	switch {
	case r.Dist[v] == Unreachable:
		return 0
	case r.Via[v] == Several:
		return 2
	}
	return 1
}

// Tight tells whether edge e lies on a shortest path, that is, whether it is in the DAG of the row.
func (r *Row) Tight(e topology.Edge) bool {
	near, far := r.table.graph.From(e), r.table.graph.To(e)
	if r.back == &r.table.out {
		near, far = far, near
	}
	return r.tight(near, far, r.table.cost[e])
}

// tight tells it for an arc from near to far, as seen from the root. Unreachable plus a cost wraps
// round to less than any distance it could be compared with, except Unreachable itself, which it
// cannot reach.
func (r *Row) tight(near, far topology.Node, cost uint64) bool {
	return cost != 0 && r.Dist[far] != Unreachable && r.Dist[near] != Unreachable &&
		r.Dist[near]+cost == r.Dist[far]
}

// Back lists the arcs of v that lead toward the root. Those that satisfy TightBack are the ends of
// shortest paths.
func (r *Row) Back(v topology.Node) []Arc { return r.back.of(v) }

// TightBack tells whether an arc of Back(v) lies on a shortest path.
func (r *Row) TightBack(v topology.Node, a Arc) bool { return r.tight(a.Node, v, a.Cost) }

// work is what one computation needs beside the row.
type work struct {
	queue   Queue
	round   uint32
	stamp   []uint32 // == round: the node is among those that this phase found affected
	seen    []uint32 // == round: the node has been looked at
	old     []uint64 // the distance before, where changed == round
	changed []uint32
	nodes   []topology.Node // those with changed == round
	touched []topology.Node
	fresh   []topology.Node // those whose edges on shortest paths may differ from before
}

func newWork(nodes int) *work {
	return &work{
		stamp: make([]uint32, nodes), seen: make([]uint32, nodes), old: make([]uint64, nodes),
		changed: make([]uint32, nodes),
	}
}

// compute is Dijkstra's algorithm. Costs are at least 1, so when a node is settled all shortest
// paths to it are known, and Via is right without a second pass.
func (t *Table) compute(root topology.Node, toward bool) *Row {
	n := t.graph.Nodes()
	r := &Row{Root: root, Dist: make([]uint64, n), Via: make([]topology.Edge, n), table: t,
		back: &t.in, ahead: &t.out}
	if toward {
		r.back, r.ahead = r.ahead, r.back
	}
	for v := range r.Dist {
		r.Dist[v], r.Via[v] = Unreachable, topology.NoEdge
	}
	w := t.scratch.Get().(*work)
	defer t.scratch.Put(w)
	queue := &w.queue
	queue.ResetWithin(t.most)
	r.Dist[root] = 0
	queue.Push(Item{0, root})
	for queue.Len() > 0 {
		it := queue.Pop()
		if it.Cost != r.Dist[it.Node] {
			continue
		}
		several := r.Via[it.Node] == Several
		for _, a := range r.ahead.of(it.Node) {
			if a.Cost == 0 {
				continue
			}
			far := it.Cost + a.Cost
			switch {
			case far < r.Dist[a.Node]:
				r.Dist[a.Node] = far
				r.Via[a.Node] = a.Edge
				if several {
					r.Via[a.Node] = Several
				}
				queue.Push(Item{far, a.Node})
			case far == r.Dist[a.Node]:
				r.Via[a.Node] = Several
			}
		}
	}
	return r
}
