package segment

import (
	"math/bits"
	"slices"

	"sextant/te/spf"
	"sextant/te/topology"
)

// leg is what segments from a row's root (or to it) cost when some edges are in use. What forced
// segments cost, a sprout tells.
type leg struct {
	engine *Engine
	used   *edgeSet
	row    *spf.Row
	kind   spf.LayerKind
	toward bool // the row's root is where segments end
	// by node: what the segment costs, but for Forced; spf.Unreachable if there is none that is
	// free, or of interest
	cost    []uint64
	reached nodeSet // the nodes with a cost
}

func newLeg(e *Engine, used *edgeSet) leg {
	cost := slices.Repeat([]uint64{spf.Unreachable}, e.graph.Nodes())
	return leg{engine: e, used: used, cost: cost, reached: newNodeSet(e.graph.Nodes())}
}

// start works out the costs to, or from, all nodes at which a cost and what the rest of a path
// costs at least are less than a limit. What does not serve, and what is behind it, it passes over.
func (l *leg) start(row *spf.Row, kind spf.LayerKind, toward bool, rest []uint64, limit uint64) {
	l.row, l.kind, l.toward = row, kind, toward
	if kind == spf.Forced {
		return
	}
	for v := range l.reached.all {
		l.cost[v] = spf.Unreachable
	}
	l.reached.clear()
	l.cost[row.Root] = 0
	l.reached.add(row.Root)
	hops := row.Hops()
	for i := 0; i < len(hops); {
		far, next := hops[i].Far, i
		sum := spf.Unreachable
		if kind == spf.Worst {
			sum, next = l.worst(hops, i)
		} else {
			sum, next = l.least(hops, i)
		}
		if sum >= limit || rest[far] >= limit-sum {
			i = int(hops[i].Beyond)
			continue
		}
		l.cost[far] = sum
		l.reached.add(far)
		i = next
	}
}

// least is the cost of the best of the hops to a node, and where those to the next one begin. Masks
// rather than branches, which a processor would often guess wrong, make a sum spf.Unreachable where
// the edge is in use or there is no way to it.
func (l *leg) least(hops []spf.Hop, i int) (sum uint64, next int) {
	sum = spf.Unreachable
	cost, used := l.cost, l.used.bits
	for far := hops[i].Far; i < len(hops) && hops[i].Far == far; i++ {
		h := &hops[i]
		inUse := used[h.Edge>>6] >> (uint(h.Edge) & 63) & 1
		by, over := bits.Add64(cost[h.Near], h.Latency, 0)
		sum = min(sum, by|-(inUse|over))
	}
	return sum, i
}

// worst is the greatest cost of all of the hops, which must all be free.
func (l *leg) worst(hops []spf.Hop, i int) (sum uint64, next int) {
	for far := hops[i].Far; i < len(hops) && hops[i].Far == far; i++ {
		if near := l.cost[hops[i].Near]; near == spf.Unreachable || l.used.has(hops[i].Edge) {
			sum = spf.Unreachable
		} else {
			sum = max(sum, near+hops[i].Latency)
		}
	}
	return sum, i
}

// near is the end of an edge that is nearer to the root.
func (l *leg) near(e topology.Edge) topology.Node {
	if l.toward {
		return l.engine.ends[e].to
	}
	return l.engine.ends[e].from
}

// appendPath appends the edges of the segment between the root and v in travel order. There must be
// one, and the kind must not be Worst. Where several edges serve, it takes the lowest.
func (l *leg) appendPath(path []topology.Edge, v topology.Node) []topology.Edge {
	begin := len(path)
	for v != l.row.Root {
		e := l.step(v)
		path = append(path, e)
		v = l.near(e)
	}
	if !l.toward {
		slices.Reverse(path[begin:])
	}
	return path
}

func (l *leg) step(v topology.Node) topology.Edge {
	if l.kind == spf.Forced {
		return l.row.Via[v]
	}
	best := topology.NoEdge
	for _, a := range l.row.Back(v) {
		if (best == topology.NoEdge || a.Edge < best) && !l.used.has(a.Edge) &&
			l.row.TightBack(v, a) {
			if c := l.cost[a.Node]; c != spf.Unreachable &&
				c+l.engine.cost(a.Edge) == l.cost[v] {
				best = a.Edge
			}
		}
	}
	return best
}
