package spf

import (
	"math"
	"sync"
	"sync/atomic"

	"sextant/te/topology"
)

// Unreachable is the distance of a node that cannot be reached.
const Unreachable uint64 = math.MaxUint64

// Arc is an edge as seen from one of its ends.
type Arc struct {
	Cost uint64        // 0: the edge is off
	Node topology.Node // the other end
	Edge topology.Edge
}

// Table is the shortest paths of a graph under one cost. Rows may be asked for by many goroutines
// at once; Apply must be alone.
type Table struct {
	graph    *topology.Graph
	latency  []uint64 // per edge: what layers add up
	cost     []uint64 // per edge, 0 when off
	was      []uint64 // while Apply runs: cost before
	most     uint64   // no edge costs more
	out, in  arcs
	from, to []atomic.Pointer[Row]
	scratch  sync.Pool
	passing  atomic.Int64 // how many rows are held that only Passing returned
	change   uint32       // how often Apply has run
}

// arcs lists the arcs of node v in list[first[v]:first[v+1]].
type arcs struct {
	first []int32
	list  []Arc
	at    []int32 // where each edge is in list
}

func (a *arcs) of(v topology.Node) []Arc { return a.list[a.first[v]:a.first[v+1]] }

// New makes a table of the edges that are on in the view. The cost of an edge must be at least 1,
// and all costs together less than 2^64; latency is what layers add up along the DAGs of this
// table, and must obey the same.
func New(view topology.View, cost, latency func(topology.Edge) uint64) *Table {
	t := &Table{
		graph:   view.Graph,
		cost:    make([]uint64, view.Edges()),
		latency: make([]uint64, view.Edges()),
		from:    make([]atomic.Pointer[Row], view.Nodes()),
		to:      make([]atomic.Pointer[Row], view.Nodes()),
	}
	for e := range topology.Edge(view.Edges()) {
		t.latency[e] = latency(e)
		if view.Up(e) {
			t.cost[e] = cost(e)
			t.most = max(t.most, t.cost[e])
		}
	}
	t.was = append([]uint64(nil), t.cost...)
	t.out = t.arcs(view.Out, view.To)
	t.in = t.arcs(view.In, view.From)
	t.scratch.New = func() any { return newWork(view.Nodes()) }
	return t
}

func (t *Table) arcs(of func(topology.Node) []topology.Edge,
	end func(topology.Edge) topology.Node) arcs {
	a := arcs{
		first: make([]int32, t.graph.Nodes()+1), list: make([]Arc, 0, t.graph.Edges()),
		at: make([]int32, t.graph.Edges()),
	}
	for v := range topology.Node(t.graph.Nodes()) {
		for _, e := range of(v) {
			a.at[e] = int32(len(a.list))
			a.list = append(a.list, Arc{Cost: t.cost[e], Node: end(e), Edge: e})
		}
		a.first[v+1] = int32(len(a.list))
	}
	return a
}

// Graph is the graph of the table.
func (t *Table) Graph() *topology.Graph { return t.graph }

// Cost is what edge e costs, 0 when it is off.
func (t *Table) Cost(e topology.Edge) uint64 { return t.cost[e] }

// Most is a cost that no edge exceeds.
func (t *Table) Most() uint64 { return t.most }

// Out lists the arcs that leave v, those that are off among them. The caller must not change them.
func (t *Table) Out(v topology.Node) []Arc { return t.out.of(v) }

// In lists the arcs that enter v, those that are off among them. The caller must not change them.
func (t *Table) In(v topology.Node) []Arc { return t.in.of(v) }

// From is the row of the shortest paths that begin at root. It is held from then on.
func (t *Table) From(root topology.Node) *Row {
	return t.hold(t.row(&t.from[root], root, false, true))
}

// To is the row of the shortest paths that end at root. It is held from then on.
func (t *Table) To(root topology.Node) *Row { return t.hold(t.row(&t.to[root], root, true, true)) }

// Passing is From, or To if toward is set, for a row that the caller needs for a moment. Such rows
// are held while there is room for them, and until an Apply finds that they were not asked for
// since the one before.
func (t *Table) Passing(root topology.Node, toward bool) *Row {
	slot := &t.from[root]
	if toward {
		slot = &t.to[root]
	}
	r := t.row(slot, root, toward, t.passing.Load()*int64(t.graph.Nodes()) < passingNodes)
	r.asked.Store(t.change)
	return r
}

// passingNodes is how many nodes the passing rows of a table may have together: 12 bytes each.
const passingNodes = 20_000_000

func (t *Table) hold(r *Row) *Row {
	if !r.held.Load() && r.held.CompareAndSwap(false, true) {
		t.passing.Add(-1)
	}
	return r
}

// Forget drops the row from root, for callers that walk over many roots and need each once.
func (t *Table) Forget(root topology.Node) { t.drop(&t.from[root]) }

func (t *Table) drop(slot *atomic.Pointer[Row]) {
	if r := slot.Swap(nil); r != nil && !r.held.Load() {
		t.passing.Add(-1)
	}
}

func (t *Table) row(slot *atomic.Pointer[Row], root topology.Node, toward, store bool) *Row {
	if r := slot.Load(); r != nil {
		return r
	}
	// Two goroutines may compute the same row; both get the same numbers, and the first one's row
	// is kept.
	r := t.compute(root, toward)
	if !store {
		return r
	}
	if slot.CompareAndSwap(nil, r) {
		t.passing.Add(1)
		return r
	}
	return slot.Load()
}
