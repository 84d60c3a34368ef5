package topology

import "slices"

// View is a Graph with some of its edges switched off. It is a value: deriving one leaves the other
// as it was.
type View struct {
	*Graph
	off []uint64 // a bit an edge; nil when all are on
}

// All is the view with every edge switched on.
func (g *Graph) All() View { return View{Graph: g} }

// Up tells whether edge e is switched on.
func (v View) Up(e Edge) bool {
	return v.off == nil || v.off[e>>6]&(1<<(uint(e)&63)) == 0
}

// Without is the view with these edges switched off as well.
func (v View) Without(edges ...Edge) View {
	off := slices.Clone(v.off)
	if off == nil {
		off = make([]uint64, (v.Edges()+63)/64)
	}
	for _, e := range edges {
		off[e>>6] |= 1 << (uint(e) & 63)
	}
	return View{Graph: v.Graph, off: off}
}
