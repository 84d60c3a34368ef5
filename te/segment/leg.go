package segment

import (
	"slices"

	"sextant/te/spf"
	"sextant/te/topology"
)

// leg is what segments from a row's root (or to it) cost when some edges are in use. It works out
// only what is asked for: while nothing on the way is in use, the row's layer is right as it is.
// What forced segments cost, a sprout tells.
type leg struct {
	engine *Engine
	used   *edgeSet
	row    *spf.Row
	kind   spf.LayerKind
	layer  *spf.Layer // nil for Forced
	toward bool       // the row's root is where segments end
	clean  bool       // no edge in use is on any segment that the layer takes
	round  uint32
	stamp  []uint32
	value  []uint64
}

func newLeg(e *Engine, used *edgeSet) leg {
	return leg{engine: e, used: used, stamp: make([]uint32, e.graph.Nodes()),
		value: make([]uint64, e.graph.Nodes())}
}

func (l *leg) start(row *spf.Row, kind spf.LayerKind, toward bool) {
	l.row, l.kind, l.toward = row, kind, toward
	if kind == spf.Forced {
		return
	}
	l.layer = row.Layer(kind)
	l.round++
	if l.round == 0 { // after 2^32 rounds old stamps would look new
		clear(l.stamp)
		l.round = 1
	}
	l.clean = !slices.ContainsFunc(l.used.list, l.hits)
}

// hits tells whether the layer goes by an edge.
func (l *leg) hits(e topology.Edge) bool {
	if l.kind == spf.Worst {
		return l.row.Tight(e)
	}
	return l.layer.Via[l.far(e)] == e
}

// cost is that of the segment between the root and v, spf.Unreachable if there is none that is
// free.
func (l *leg) cost(v topology.Node) uint64 {
	if l.clean {
		return l.layer.Latency[v]
	}
	if l.stamp[v] != l.round {
		l.stamp[v] = l.round
		l.value[v] = l.find(v)
	}
	return l.value[v]
}

func (l *leg) find(v topology.Node) uint64 {
	static := l.layer.Latency[v]
	if v == l.row.Root || static == spf.Unreachable {
		return static
	}
	if l.kind == spf.Worst {
		if l.allFree(v) {
			return static
		}
		return spf.Unreachable
	}
	// Edges in use can only make it worse; so where the best way is free, it is the best.
	via := l.layer.Via[v]
	if near := l.near(via); !l.used.has(via) && l.cost(near) == l.layer.Latency[near] {
		return static
	}
	best := spf.Unreachable
	for _, a := range l.row.Dag(v) {
		if !l.used.has(a.Edge) {
			if c := l.cost(a.Node); c != spf.Unreachable {
				best = min(best, c+a.Cost)
			}
		}
	}
	return best
}

func (l *leg) allFree(v topology.Node) bool {
	return !slices.ContainsFunc(l.row.Dag(v), func(a spf.Arc) bool {
		return l.used.has(a.Edge) || l.cost(a.Node) == spf.Unreachable
	})
}

// near is the end of an edge that is nearer to the root.
func (l *leg) near(e topology.Edge) topology.Node {
	if l.toward {
		return l.engine.ends[e].to
	}
	return l.engine.ends[e].from
}

func (l *leg) far(e topology.Edge) topology.Node {
	if l.toward {
		return l.engine.ends[e].from
	}
	return l.engine.ends[e].to
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
	for _, a := range l.row.Dag(v) {
		if (best == topology.NoEdge || a.Edge < best) && !l.used.has(a.Edge) {
			if c := l.cost(a.Node); c != spf.Unreachable && c+a.Cost == l.cost(v) {
				best = a.Edge
			}
		}
	}
	return best
}
