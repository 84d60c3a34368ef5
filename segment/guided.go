package segment

import (
	"slices"

	"sextant/spf"
	"sextant/topology"
)

// guided is an A* search from the destination over the edges that are free, led by the distances from the source.
type guided struct {
	table   *spf.Table
	used    *edgeSet
	from    topology.Node
	to      topology.Node
	queue   spf.Queue
	level   []topology.Node // nodes that wait at the cost that the search has come to
	round   uint32
	reached []uint32 // == round: dist holds a cost to the destination
	settled []uint32 // == round: and it is exact
	dist    []uint64
	ahead   []uint64 // the source's row: lower bounds of the cost from it
	least   uint64   // the cost of the path found
}

func newGuided(table *spf.Table, used *edgeSet) guided {
	n := table.Graph().Nodes()
	return guided{table: table, used: used, reached: make([]uint32, n), settled: make([]uint32, n), dist: make([]uint64, n)}
}

// find finds the least cost from the source to the destination over free edges, and, exactly, that of all nodes on the paths of
// this cost. How far a node is from the source when nothing is in use never overestimates, so nodes are settled once.
func (g *guided) find(from, to topology.Node) bool {
	g.from, g.to = from, to
	g.round++
	if g.round == 0 { // after 2^32 rounds old stamps would look new
		clear(g.reached)
		clear(g.settled)
		g.round = 1
	}
	g.ahead = g.table.From(g.from).Dist
	g.least = spf.Unreachable
	if g.ahead[g.to] == spf.Unreachable {
		return false
	}
	g.queue.Reset()
	g.level = g.level[:0]
	if !g.leaves(g.from) {
		return false
	}
	g.open(g.to, 0, g.ahead[g.to])
	for at := g.ahead[g.to]; at <= g.least; {
		if len(g.level) == 0 {
			if g.queue.Len() == 0 {
				break
			}
			it := g.queue.Pop()
			at = it.Cost
			g.level = append(g.level, it.Node)
			continue
		}
		v := g.level[len(g.level)-1]
		g.level = g.level[:len(g.level)-1]
		if g.settled[v] != g.round {
			g.settle(v, at)
		}
	}
	return g.least != spf.Unreachable
}

// leaves tells whether any edge from v is free: when the source's are all in use, there is no need to search.
func (g *guided) leaves(v topology.Node) bool {
	return slices.ContainsFunc(g.table.Out(v), func(a spf.Arc) bool { return a.Cost != 0 && !g.used.has(a.Edge) })
}

// settle goes on from a node on a path of cost at.
func (g *guided) settle(v topology.Node, at uint64) {
	g.settled[v] = g.round
	if v == g.from {
		g.least = at
		return
	}
	cost := g.dist[v]
	for _, a := range g.table.In(v) {
		if a.Cost != 0 && !g.used.has(a.Edge) {
			g.open(a.Node, cost+a.Cost, at)
		}
	}
}

// open reaches a node. No path will cost less than at, where the search is; what does not cost more need not queue.
func (g *guided) open(v topology.Node, cost, at uint64) {
	if g.reached[v] == g.round && g.dist[v] <= cost || g.ahead[v] == spf.Unreachable {
		return
	}
	g.reached[v] = g.round
	g.dist[v] = cost
	if total := cost + g.ahead[v]; total <= at {
		g.level = append(g.level, v)
	} else if total < g.least {
		g.queue.Push(spf.Item{Cost: total, Node: v})
	}
}

// path follows the cost to the destination, by the lowest edge where several serve, and tells whether none ever did.
func (g *guided) path() (edges []topology.Edge, unique bool) {
	unique = true
	for v := g.from; v != g.to; {
		next := topology.NoEdge
		for _, a := range g.table.Out(v) {
			if a.Cost == 0 || g.settled[a.Node] != g.round || g.dist[a.Node]+a.Cost != g.dist[v] || g.used.has(a.Edge) {
				continue
			}
			if next != topology.NoEdge {
				unique = false
				break
			}
			next = a.Edge
		}
		edges = append(edges, next)
		v = g.table.Graph().To(next)
	}
	return edges, unique
}
