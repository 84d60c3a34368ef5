package spf

import (
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"sextant/te/topology"
)

// Change gives an edge another cost; 0 switches it off.
type Change struct {
	Edge topology.Edge
	Cost uint64
}

// Effect is what a change did to one row: the nodes that another set of edges now leads to, in
// ascending order. A node whose distance changed, but which the same edges lead to, is not among
// them.
type Effect struct {
	Root    topology.Node
	Toward  bool // the row is one of Table.To
	Touched []topology.Node
}

// Apply changes costs and mends the rows that exist: each in time that grows with what changes in
// it, not with its size (Ramalingam and Reps, "An incremental algorithm for a generalization of the
// shortest-path problem", 1996). It returns the effects on rows with touched nodes, rows of From
// first, by root. Nothing else may use the table meanwhile.
//
// Higher costs are applied before lower ones, each kind at once; so a row mends a failed node in
// one go.
func (t *Table) Apply(changes ...Change) []Effect {
	final := map[topology.Edge]uint64{}
	for _, c := range changes {
		final[c.Edge] = c.Cost
		t.most = max(t.most, c.Cost)
	}
	var higher, lower []topology.Edge
	for _, c := range changes {
		now, cost := t.cost[c.Edge], final[c.Edge]
		switch {
		case cost == now:
		case now == 0 || cost != 0 && cost < now:
			lower = append(lower, c.Edge)
		default:
			higher = append(higher, c.Edge)
		}
	}
	rows := t.rows()
	touched := make([][]topology.Node, len(rows))
	t.phase(unique(higher), final, rows, touched, (*mender).raise)
	t.phase(unique(lower), final, rows, touched, (*mender).lower)
	var effects []Effect
	for i, r := range rows {
		if nodes := sorted(touched[i]); len(nodes) > 0 {
			effects = append(effects, Effect{Root: r.Root, Toward: r.back == &t.out,
				Touched: nodes})
		}
	}
	return effects
}

// rows lists the rows that exist, and drops those that have passed.
func (t *Table) rows() []*Row {
	var rows []*Row
	for _, slots := range [][]atomic.Pointer[Row]{t.from, t.to} {
		for i := range slots {
			switch r := slots[i].Load(); {
			case r == nil:
			case !r.held.Load() && r.asked.Load() != t.change:
				t.drop(&slots[i])
			default:
				rows = append(rows, r)
			}
		}
	}
	t.change++
	return rows
}

// phase applies changes that all go in one direction.
func (t *Table) phase(
	edges []topology.Edge, cost map[topology.Edge]uint64, rows []*Row, touched [][]topology.Node,
	mend func(*mender, []topology.Edge),
) {
	if len(edges) == 0 {
		return
	}
	for _, e := range edges {
		t.cost[e] = cost[e]
		t.out.list[t.out.at[e]].Cost = cost[e]
		t.in.list[t.in.at[e]].Cost = cost[e]
	}
	t.forEach(rows, func(i int, w *work) {
		m := mender{Row: rows[i], work: w}
		if !m.concerns(edges) {
			return
		}
		m.begin()
		mend(&m, edges)
		m.finish(edges)
		touched[i] = append(touched[i], w.touched...)
	})
	for _, e := range edges {
		t.was[e] = t.cost[e]
	}
}

// forEach shares rows out between goroutines when there are enough; each row is mended by one, from
// what it alone holds.
func (t *Table) forEach(rows []*Row, mend func(i int, w *work)) {
	workers := min(runtime.GOMAXPROCS(0), len(rows)/rowsPerWorker+1)
	var group errgroup.Group
	for k := range workers {
		group.Go(func() error {
			w := t.scratch.Get().(*work)
			defer t.scratch.Put(w)
			for i := k; i < len(rows); i += workers {
				mend(i, w)
			}
			return nil
		})
	}
	_ = group.Wait() // none of them fails
}

// rowsPerWorker is how many rows are worth a goroutine.
const rowsPerWorker = 32
