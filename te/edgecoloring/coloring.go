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
	edges  *[]colored // colorings that share numbers share it: an edge is in one of them
	unused []Edge
	sides  [2]side
	moved  []Edge
	walks  []walk // memory of shortest
}

// A colored edge.
type colored struct {
	ends  [2]int32 // by side: places in its tables
	color int8
}

// A side has tables with a place for each vertex. A vertex of more edges than colors has several
// places, each a vertex of its own for the coloring: place layer*vertices+v.
type side struct {
	vertices int
	free     []uint64 // colors, by place
	at       []slot   // by place and color
}

// A slot is the edge of a color at a place: paths are walked by one load for each edge.
type slot struct {
	edge Edge
	to   int32 // the place at its other end
}

// New returns a coloring without edges.
func New(left, right, colors int) (*Coloring, error) {
	if err := check(left, right, colors); err != nil {
		return nil, err
	}
	return newOf(new([]colored), left, right, colors), nil
}

func check(left, right, colors int) error {
	if colors < 1 || colors > ColorsMax {
		return fmt.Errorf("%d colors: there can be 1 to %d", colors, ColorsMax)
	}
	if left < 1 || right < 1 {
		return fmt.Errorf("%d and %d vertices: each side needs one", left, right)
	}
	return nil
}

// newOf is a coloring whose edges are in a table of others, too.
func newOf(edges *[]colored, left, right, colors int) *Coloring {
	c := &Coloring{colors: colors, edges: edges}
	c.sides[0].vertices, c.sides[1].vertices = left, right
	for i := range c.sides {
		c.sides[i].addLayer(colors)
	}
	return c
}

func (s *side) addLayer(colors int) {
	for range s.vertices {
		s.free = append(s.free, ^uint64(0)>>(64-colors))
		for range colors {
			s.at = append(s.at, slot{edge: none})
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
	e := Edge(len(*c.edges))
	if n := len(c.unused); n > 0 {
		e, c.unused = c.unused[n-1], c.unused[:n-1]
	} else {
		*c.edges = append(*c.edges, colored{})
	}
	c.add(e, left, right)
	return e
}

// add is Add with a number that is not in use.
func (c *Coloring) add(e Edge, left, right int) {
	c.moved = c.moved[:0]
	u, v := c.sides[0].place(left, c.colors), c.sides[1].place(right, c.colors)
	freeU, freeV := c.sides[0].free[u], c.sides[1].free[v]
	color := bits.TrailingZeros64(freeU & freeV)
	if freeU&freeV == 0 {
		color = c.makeFree(u, v)
	}
	(*c.edges)[e] = colored{[2]int32{u, v}, int8(color)}
	c.sides[0].at[int(u)*c.colors+color] = slot{e, v}
	c.sides[0].free[u] &^= 1 << color
	c.sides[1].at[int(v)*c.colors+color] = slot{e, u}
	c.sides[1].free[v] &^= 1 << color
}

// makeFree changes colors of other edges so that one is free at both places, the left u and the
// right v, which have none in common. It returns that color.
func (c *Coloring) makeFree(u, v int32) int {
	if color, ok := c.moveOne(u, v); ok {
		return color
	}
	if color, ok := c.moveTwo(u, v); ok {
		return color
	}
	w := c.shortest(u, v)
	c.flip(w)
	return int(w.leave)
}

// moveOne frees a color that one of the places lacks, if the edge that has it at the other one can
// take a color that is free at both its ends.
func (c *Coloring) moveOne(u, v int32) (int, bool) {
	for side, ends := range [2][2]int32{{u, v}, {v, u}} {
		free, here := c.sides[side].free[ends[0]], c.row(side, ends[0])
		for lacks := c.sides[1-side].free[ends[1]]; lacks != 0; lacks &= lacks - 1 {
			color := bits.TrailingZeros64(lacks)
			if both := free & c.sides[1-side].free[here[color].to]; both != 0 {
				c.flip(recolor(side, ends[0], color, both))
				return color, true
			}
		}
	}
	return 0, false
}

// moveTwo does the same with a color that neither place lacks, and two edges.
func (c *Coloring) moveTwo(u, v int32) (int, bool) {
	left, right := &c.sides[0], &c.sides[1]
	freeU, freeV, rowU, rowV := left.free[u], right.free[v], c.row(0, u), c.row(1, v)
	for rest := ^uint64(0) >> (64 - c.colors) &^ (freeU | freeV); rest != 0; rest &= rest - 1 {
		color := bits.TrailingZeros64(rest)
		bothU := freeU & right.free[rowU[color].to]
		if bothU == 0 {
			continue
		}
		if bothV := freeV & left.free[rowV[color].to]; bothV != 0 {
			c.flip(recolor(0, u, color, bothU))
			c.flip(recolor(1, v, color, bothV))
			return color, true
		}
	}
	return 0, false
}

// row is the edges at a place, by color.
func (c *Coloring) row(side int, at int32) []slot {
	return c.sides[side].at[int(at)*c.colors:][:c.colors]
}

// recolor is the path of one edge: to the first of the colors that are free at both its ends.
func recolor(side int, at int32, from int, free uint64) walk {
	return walk{from: at, side: int8(side), leave: int8(from),
		enter: int8(bits.TrailingZeros64(free))}
}

// A walk follows the edges of two colors in turn from a place that has one of them on an edge and
// lacks the other.
type walk struct {
	from, at     int32
	side, on     int8 // where it began, and where it is
	leave, enter int8 // the color that it began with, and the other
	next         int8 // color
}

// step goes one edge further. It returns false at the end of the path.
func (c *Coloring) step(w *walk) bool {
	s := c.sides[w.on].at[int(w.at)*c.colors+int(w.next)]
	w.on, w.next, w.at = 1-w.on, w.leave+w.enter-w.next, s.to
	return s.edge != none
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
			if !c.step(&walks[i]) {
				return walks[i]
			}
		}
	}
}

// flip exchanges the colors on the path of a walk, so that its first color is free where it began.
func (c *Coloring) flip(w walk) {
	x, y, at, side, edges := w.leave, w.enter, w.from, w.side, *c.edges
	c.sides[side].free[at] ^= 1<<x | 1<<y
	for {
		row := c.row(int(side), at)
		s := row[x] // the edge by which the path goes on
		row[w.leave], row[w.enter] = row[w.enter], row[w.leave]
		if s.edge == none {
			c.sides[side].free[at] ^= 1<<x | 1<<y
			return
		}
		edges[s.edge].color = y
		c.moved = append(c.moved, s.edge)
		x, y, at, side = y, x, s.to, 1-side
	}
}

// Remove removes an edge that Add returned. No other edge changes its color.
func (c *Coloring) Remove(e Edge) {
	c.moved = c.moved[:0]
	c.remove(e)
	c.unused = append(c.unused, e)
}

// remove leaves the number to the caller.
func (c *Coloring) remove(e Edge) {
	it := (*c.edges)[e]
	for i, at := range it.ends {
		c.sides[i].at[int(at)*c.colors+int(it.color)].edge = none
		c.sides[i].free[at] |= 1 << it.color
	}
}

// Color returns the color of an edge, from 0.
func (c *Coloring) Color(e Edge) int { return int((*c.edges)[e].color) }

// greatestUse is the greatest number of edges of one color at a vertex.
func (c *Coloring) greatestUse() int {
	most := 0
	for _, s := range c.sides {
		for at := range s.vertices * c.colors {
			uses := 0
			for ; at < len(s.at); at += s.vertices * c.colors {
				if s.at[at].edge != none {
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
