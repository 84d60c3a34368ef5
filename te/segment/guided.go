package segment

import (
	"slices"

	"sextant/te/spf"
	"sextant/te/topology"
)

// guided is an A* search from the destination over the edges that are free, led by the distances
// from the source.
type guided struct {
	table   *spf.Table
	used    *edgeSet
	from    topology.Node
	to      topology.Node
	queue   spf.Queue
	short   bool            // extend is of no interest
	level   []topology.Node // nodes that wait at the cost that the search has come to
	at      uint64          // that cost: no path that is found later costs less
	within  uint64          // what costs as much, or more, is of no interest
	round   uint32
	marks   []mark
	ahead   []uint64        // the source's row: lower bounds of the cost from it
	least   uint64          // the cost of the path found
	order   []topology.Node // those settled
	guessed []uint64        // by node: what guess found
}

// mark is what the search knows of a node.
type mark struct {
	dist    uint64        // a cost to the destination
	reached uint32        // == round: there is one
	settled uint32        // == round: and it is exact
	next    topology.Edge // the lowest edge by which it goes on at this cost
	several bool          // whether there are others
}

func newGuided(table *spf.Table, used *edgeSet) guided {
	return guided{table: table, used: used, marks: make([]mark, table.Graph().Nodes())}
}

// find finds the least cost from the source to the destination over free edges, and, exactly, that
// of all nodes on the paths of this cost. How far a node is from the source when nothing is in use
// never overestimates, so nodes are settled once.
func (g *guided) find(from, to topology.Node) bool {
	g.begin(from, to)
	if g.at == spf.Unreachable || !g.leaves(g.from) {
		return false
	}
	if g.short && len(g.used.list) == 0 {
		g.within = g.at + 1 // the path of that cost is free
	}
	g.open(g.to, 0, topology.NoEdge)
	for g.at <= g.least && g.step() {
	}
	return g.least != spf.Unreachable
}

// begin forgets the search before.
func (g *guided) begin(from, to topology.Node) {
	g.from, g.to = from, to
	g.round++
	if g.round == 0 { // after 2^32 rounds old stamps would look new
		clear(g.marks)
		g.round = 1
	}
	g.ahead = g.table.From(g.from).Dist
	g.at = g.ahead[g.to]
	g.least, g.within = spf.Unreachable, spf.Unreachable
	g.queue.Reset()
	g.level, g.order = g.level[:0], g.order[:0]
}

// extend goes on, after a path was found, until the cost of all nodes on paths of less than a limit
// is exact: then that of all other nodes is of no interest.
func (g *guided) extend(limit uint64) {
	for g.at < limit && g.step() {
	}
}

// guess is extend for those who have the distances to the destination when nothing is in use, and
// get bounds from them, for all nodes.
func (g *guided) guess(free []uint64) {
	if g.guessed == nil {
		g.guessed = make([]uint64, len(g.marks))
	}
	for v := range g.marks {
		bound := free[v]
		if ahead := g.ahead[v]; g.marks[v].settled == g.round {
			bound = g.marks[v].dist
		} else if ahead < g.least { // else it costs more to get there than the whole path
			bound = max(bound, g.least-ahead)
		}
		g.guessed[v] = bound
	}
}

// bound is the least cost from v to the destination over free edges; spf.Unreachable if v is on no
// path that costs less than the limit of extend.
func (g *guided) bound(v topology.Node) uint64 {
	if m := &g.marks[v]; m.settled == g.round {
		return m.dist
	}
	return spf.Unreachable
}

// step settles a node, or moves to the next cost. It fails when there are no more.
func (g *guided) step() bool {
	if len(g.level) == 0 {
		if g.queue.Len() == 0 {
			return false
		}
		it := g.queue.Pop()
		g.at = it.Cost
		g.level = append(g.level, it.Node)
		return true
	}
	v := g.level[len(g.level)-1]
	g.level = g.level[:len(g.level)-1]
	if g.marks[v].settled != g.round {
		g.settle(v)
	}
	return true
}

// leaves tells whether any edge from v is free: when the source's are all in use, there is no need
// to search.
func (g *guided) leaves(v topology.Node) bool {
	return slices.ContainsFunc(g.table.Out(v),
		func(a spf.Arc) bool { return a.Cost != 0 && !g.used.has(a.Edge) })
}

// settle goes on from a node on a path of the cost that the search is at.
func (g *guided) settle(v topology.Node) {
	g.marks[v].settled = g.round
	g.order = append(g.order, v)
	if v == g.from {
		g.least = g.at
		return
	}
	cost, round := g.marks[v].dist, g.round
	for _, a := range g.table.In(v) {
		if a.Cost == 0 || g.used.has(a.Edge) {
			continue
		}
		far, m := cost+a.Cost, &g.marks[a.Node]
		switch {
		case m.reached != round || far < m.dist:
			g.open(a.Node, far, a.Edge)
		case far == m.dist:
			m.next, m.several = min(m.next, a.Edge), true
		}
	}
}

// open reaches a node at less cost than before. What does not cost more than the search is at need
// not queue.
func (g *guided) open(v topology.Node, cost uint64, next topology.Edge) {
	if g.ahead[v] == spf.Unreachable {
		return
	}
	g.marks[v] = mark{dist: cost, reached: g.round, next: next}
	if total := cost + g.ahead[v]; total <= g.at {
		g.level = append(g.level, v)
	} else if total < g.within {
		g.queue.Push(spf.Item{Cost: total, Node: v})
		if v == g.from && g.short {
			g.within = total + 1
		}
	}
}

// path follows the cost to the destination, by the lowest edge where several serve, and tells
// whether none ever did.
func (g *guided) path(edges []topology.Edge) (longer []topology.Edge, unique bool) {
	unique = true
	for v := g.from; v != g.to; {
		m := &g.marks[v]
		edges = append(edges, m.next)
		unique = unique && !m.several
		v = g.table.Graph().To(m.next)
	}
	return edges, unique
}
