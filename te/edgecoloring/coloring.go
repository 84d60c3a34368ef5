package edgecoloring

import (
	"fmt"
	"math/bits"
)

// ColorsMax bounds the number of colors: those that are free at a vertex are bits of one word.
const ColorsMax = 64

// An Edge is the number of an edge in its Coloring. Numbers of removed edges are used again.
type Edge int32

const none Edge = -1

// A Coloring is a bipartite multigraph whose edges have colors. A vertex has a color on at most
// ceil(d/c) of its edges, where c is the number of colors and d the greatest degree that the vertex
// has had. It serves one goroutine.
type Coloring struct {
	colors int
	edges  []edge
	unused []Edge
	sides  [2]side
	moved  []Edge
	walks  []walk // memory of shortest
}

type edge struct {
	ends  [2]int32 // by side, places in its tables
	color int8
}

// A side has tables with a place for each vertex. A vertex of more edges than colors has several
// places, each a vertex of its own for the coloring: place layer*vertices+v.
type side struct {
	vertices int
	free     []uint64 // colors, by place
	at       []Edge   // by place and color
}

// New returns a coloring without edges.
func New(left, right, colors int) (*Coloring, error) {
	if colors < 1 || colors > ColorsMax {
		return nil, fmt.Errorf("%d colors: there can be 1 to %d", colors, ColorsMax)
	}
	if left < 1 || right < 1 {
		return nil, fmt.Errorf("%d and %d vertices: each side needs one", left, right)
	}
	c := &Coloring{colors: colors}
	c.sides[0].vertices, c.sides[1].vertices = left, right
	for i := range c.sides {
		c.sides[i].addLayer(colors)
	}
	return c, nil
}

func (s *side) addLayer(colors int) {
	for range s.vertices {
		s.free = append(s.free, ^uint64(0)>>(64-colors))
		for range colors {
			s.at = append(s.at, none)
		}
	}
}

// place returns the first place of the vertex that has a color left.
func (s *side) place(vertex, colors int) int32 {
	for at := vertex; ; at += s.vertices {
		if at >= len(s.free) {
			s.addLayer(colors)
		}
		if s.free[at] != 0 {
			return int32(at)
		}
	}
}

// Add adds an edge between vertices of the left and of the right side, and gives it a color. It
// panics if there is no such vertex.
func (c *Coloring) Add(left, right int) Edge {
	c.moved = c.moved[:0]
	u, v := c.sides[0].place(left, c.colors), c.sides[1].place(right, c.colors)
	freeU, freeV := c.sides[0].free[u], c.sides[1].free[v]
	color := bits.TrailingZeros64(freeU & freeV)
	if freeU&freeV == 0 {
		w := c.shortest(u, v)
		color = int(w.leave)
		c.flip(w)
	}
	e := Edge(len(c.edges))
	if n := len(c.unused); n > 0 {
		e, c.unused = c.unused[n-1], c.unused[:n-1]
	} else {
		c.edges = append(c.edges, edge{})
	}
	c.edges[e] = edge{ends: [2]int32{u, v}, color: int8(color)}
	c.set(e)
	return e
}

// A walk follows the edges of two colors in turn from a place that has one of them on an edge and
// lacks the other.
type walk struct {
	from, at     int32
	side, on     int8 // where it began, and where it is
	leave, enter int8 // the color that it began with, and the other
	next         int8 // color
}

// step goes one edge further. It returns none at the end of the path.
func (c *Coloring) step(w *walk) Edge {
	e := c.sides[w.on].at[int(w.at)*c.colors+int(w.next)]
	if e != none {
		w.on, w.next = 1-w.on, w.leave+w.enter-w.next
		w.at = c.edges[e].ends[w.on]
	}
	return e
}

// walksMax bounds the paths that are compared.
const walksMax = 32

// shortest compares paths whose colors, when exchanged, leave one color free at both places, the
// left u and the right v: for each color that u lacks and each that v lacks, the path that begins
// at u and that which begins at v. Those from u come to places of the right side by a color that v
// lacks, so they never come to v, and the other way round. All are walked in step until one ends.
func (c *Coloring) shortest(u, v int32) walk {
	walks := c.walks[:0]
	for freeU := c.sides[0].free[u]; freeU != 0; freeU &= freeU - 1 {
		a := int8(bits.TrailingZeros64(freeU))
		for freeV := c.sides[1].free[v]; freeV != 0 && len(walks) < walksMax; freeV &= freeV - 1 {
			b := int8(bits.TrailingZeros64(freeV))
			walks = append(walks,
				walk{from: u, at: u, side: 0, on: 0, leave: b, enter: a, next: b},
				walk{from: v, at: v, side: 1, on: 1, leave: a, enter: b, next: a})
		}
	}
	c.walks = walks
	for {
		for i := range walks {
			if c.step(&walks[i]) == none {
				return walks[i]
			}
		}
	}
}

// flip exchanges the colors on the path of a walk, so that its first color is free where it began.
func (c *Coloring) flip(w walk) {
	begin := len(c.moved)
	w.at, w.on, w.next = w.from, w.side, w.leave
	for e := c.step(&w); e != none; e = c.step(&w) {
		c.moved = append(c.moved, e)
	}
	path := c.moved[begin:]
	for _, e := range path {
		c.clear(e)
	}
	for _, e := range path {
		c.edges[e].color = w.leave + w.enter - c.edges[e].color
		c.set(e)
	}
}

func (c *Coloring) set(e Edge) {
	color := int(c.edges[e].color)
	for i, at := range c.edges[e].ends {
		c.sides[i].at[int(at)*c.colors+color] = e
		c.sides[i].free[at] &^= 1 << color
	}
}

func (c *Coloring) clear(e Edge) {
	color := int(c.edges[e].color)
	for i, at := range c.edges[e].ends {
		c.sides[i].at[int(at)*c.colors+color] = none
		c.sides[i].free[at] |= 1 << color
	}
}

// Remove removes an edge that Add returned. No other edge changes its color.
func (c *Coloring) Remove(e Edge) {
	c.moved = c.moved[:0]
	c.clear(e)
	c.unused = append(c.unused, e)
}

// Color returns the color of an edge, from 0.
func (c *Coloring) Color(e Edge) int { return int(c.edges[e].color) }

// greatestUse is the greatest number of edges of one color at a vertex.
func (c *Coloring) greatestUse() int {
	most := 0
	for _, s := range c.sides {
		for at := range s.vertices * c.colors {
			uses := 0
			for ; at < len(s.at); at += s.vertices * c.colors {
				if s.at[at] != none {
					uses++
				}
			}
			most = max(most, uses)
		}
	}
	return most
}

// Moved returns the edges whose colors the last call of Add or Remove changed. It is valid until
// the next.
func (c *Coloring) Moved() []Edge { return c.moved }
