package proof

import (
	"cmp"
	"slices"
	"sync/atomic"

	"sextant/te/segment"
	"sextant/te/spf"
	"sextant/te/topology"
)

// space is all that segment lists of one model can express on one view of a network. Many
// goroutines may use it.
type space struct {
	view  topology.View
	table *spf.Table // by IGP weight
	model segment.Model
	sids  int // the most SIDs in a list
	from  []atomic.Pointer[[]arc]
	to    []atomic.Pointer[[]arc]
}

// arc is an edge that a SID can lead over. In a list, all arcs into a node come before those out of
// it, as seen from the root.
type arc struct {
	near, far topology.Node // far is the end away from the root
	edge      topology.Edge
}

func newSpace(view topology.View, table *spf.Table, model segment.Model, sids int) *space {
	return &space{
		view: view, table: table, model: model, sids: sids,
		from: make([]atomic.Pointer[[]arc], view.Nodes()),
		to:   make([]atomic.Pointer[[]arc], view.Nodes()),
	}
}

// onlyForced tells whether a SID counts only where one shortest path leads to it.
func (s *space) onlyForced() bool {
	return s.model == segment.Forced || s.model == segment.ForcedAdjacency
}

// arcsFrom are the arcs by which one node SID leads on from root.
func (s *space) arcsFrom(root topology.Node) []arc {
	return s.arcs(&s.from[root], func() *spf.Row { return s.table.From(root) })
}

// arcsTo are the arcs by which the node SID of root leads to it, nearest to root first.
func (s *space) arcsTo(root topology.Node) []arc {
	return s.arcs(&s.to[root], func() *spf.Row { return s.table.To(root) })
}

func (s *space) arcs(slot *atomic.Pointer[[]arc], row func() *spf.Row) []arc {
	if arcs := slot.Load(); arcs != nil {
		return *arcs
	}
	r := row()
	var arcs []arc
	for v := range topology.Node(s.view.Nodes()) {
		if v == r.Root || r.Dist[v] == spf.Unreachable || s.onlyForced() &&
			r.Via[v] == spf.Several {
			continue
		}
		for _, a := range r.Back(v) {
			if r.TightBack(v, a) {
				arcs = append(arcs, arc{near: a.Node, far: v, edge: a.Edge})
			}
		}
	}
	slices.SortFunc(arcs, func(a, b arc) int {
		return cmp.Or(cmp.Compare(r.Dist[a.far], r.Dist[b.far]), cmp.Compare(a.far, b.far),
			cmp.Compare(a.edge, b.edge))
	})
	slot.CompareAndSwap(nil, &arcs)
	return *slot.Load()
}

// usable marks the edges that any segment list can contain: all with End.X SIDs; else those on a
// shortest path, which is then a shortest path between their own ends.
func (s *space) usable() []bool {
	usable := make([]bool, s.view.Edges())
	for e := range topology.Edge(s.view.Edges()) {
		row := s.table.From(s.view.From(e))
		switch {
		case !s.view.Up(e):
		case s.model == segment.ForcedAdjacency:
			usable[e] = true
		case s.model == segment.Forced:
			usable[e] = row.Via[s.view.To(e)] == e
		default:
			usable[e] = row.Tight(e)
		}
	}
	return usable
}
