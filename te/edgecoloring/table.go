package edgecoloring

import "math/bits"

// number is what edges and places are counted with: as few octets as do, so that the tables of a
// large network stay in a processor's cache.
type number interface{ ~uint16 | ~uint32 }

// A table colors edges. A vertex of more edges than colors has several places, each a vertex of its
// own for the coloring: place layer*vertices+v.
type table[N number] struct {
	colors int
	edges  *[]record
	level  int
	sides  [2]side[N]
	count  int // edges
	moved  []Edge
	search search[N]
}

// A side has a place for each vertex, and more where vertices have more edges than colors.
type side[N number] struct {
	vertices int
	free     []uint64  // colors, by place
	at       []slot[N] // by place and color
}

// A slot is the edge of a color at a place: paths are walked by one load for each edge.
type slot[N number] struct{ edge, to N } // to: the place at its other end

// noEdge stands for none; it is the greatest number.
func noEdge[N number]() N { return ^N(0) }

func newTable[N number](edges *[]record, level, left, right, colors int) *table[N] {
	t := &table[N]{colors: colors, edges: edges, level: level}
	t.sides[0].vertices, t.sides[1].vertices = left, right
	for i := range t.sides {
		t.sides[i].addLayer(colors)
	}
	return t
}

// holds reports whether an edge of that number, and one more layer of each side, can be counted.
func (t *table[N]) holds(e Edge) bool {
	most := int(noEdge[N]())
	return int(e) < most && len(t.sides[0].free)+t.sides[0].vertices <= most &&
		len(t.sides[1].free)+t.sides[1].vertices <= most
}

// widened is the table with other numbers.
func widened[N, M number](from *table[M]) *table[N] {
	t := &table[N]{colors: from.colors, edges: from.edges, level: from.level,
		count: from.count, moved: from.moved}
	for i, s := range from.sides {
		to := &t.sides[i]
		to.vertices, to.free, to.at = s.vertices, s.free, make([]slot[N], len(s.at))
		for j, one := range s.at {
			if to.at[j] = (slot[N]{N(one.edge), N(one.to)}); one.edge == noEdge[M]() {
				to.at[j].edge = noEdge[N]()
			}
		}
	}
	return t
}

func (s *side[N]) addLayer(colors int) {
	for range s.vertices {
		s.free = append(s.free, ^uint64(0)>>(64-colors))
		for range colors {
			s.at = append(s.at, slot[N]{edge: noEdge[N]()})
		}
	}
}

// place returns the first place of the vertex that has a color left.
func (s *side[N]) place(vertex, colors int) int32 {
	for at := vertex; ; at += s.vertices {
		if at >= len(s.free) {
			s.addLayer(colors)
		}
		if s.free[at] != 0 {
			return int32(at)
		}
	}
}

// add colors an edge between vertices, under a number that is not in use.
func (c *table[N]) add(e Edge, left, right int) {
	c.moved = c.moved[:0]
	u, v := c.sides[0].place(left, c.colors), c.sides[1].place(right, c.colors)
	freeU, freeV := c.sides[0].free[u], c.sides[1].free[v]
	color := bits.TrailingZeros64(freeU & freeV)
	if freeU&freeV == 0 {
		color = c.makeFree(u, v)
	}
	it := &(*c.edges)[e]
	it.ends[c.level], it.color[c.level] = [2]int32{u, v}, int8(color)
	c.sides[0].at[int(u)*c.colors+color] = slot[N]{N(e), N(v)}
	c.sides[0].free[u] &^= 1 << color
	c.sides[1].at[int(v)*c.colors+color] = slot[N]{N(e), N(u)}
	c.sides[1].free[v] &^= 1 << color
	c.count++
}

// makeFree changes colors of other edges so that one is free at both places, the left u and the
// right v, which have none in common. It returns that color.
func (c *table[N]) makeFree(u, v int32) int {
	if color, ok := c.moveOne(u, v); ok {
		return color
	}
	if color, ok := c.moveTwo(u, v); ok {
		return color
	}
	return c.exchange(u, v)
}

// moveOne frees a color that one of the places lacks, if the edge that has it at the other one can
// take a color that is free at both its ends.
func (c *table[N]) moveOne(u, v int32) (int, bool) {
	left, right := c.sides[0].free, c.sides[1].free
	freeU, freeV, rowU, rowV := left[u], right[v], c.row(0, u), c.row(1, v)
	for lacks := freeV; lacks != 0; lacks &= lacks - 1 {
		color := bits.TrailingZeros64(lacks)
		if both := freeU & right[rowU[color].to]; both != 0 {
			c.flip(recolor(0, u, color, both))
			return color, true
		}
	}
	for lacks := freeU; lacks != 0; lacks &= lacks - 1 {
		color := bits.TrailingZeros64(lacks)
		if both := freeV & left[rowV[color].to]; both != 0 {
			c.flip(recolor(1, v, color, both))
			return color, true
		}
	}
	return 0, false
}

// moveTwo does the same with a color that neither place lacks, and two edges.
func (c *table[N]) moveTwo(u, v int32) (int, bool) {
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
func (c *table[N]) row(side int, at int32) []slot[N] {
	return c.sides[side].at[int(at)*c.colors:][:c.colors]
}

// recolor is the path of one edge: to the first of the colors that are free at both its ends.
func recolor(side int, at int32, from int, free uint64) walk {
	return walk{from: at, side: int8(side), leave: int8(from),
		enter: int8(bits.TrailingZeros64(free))}
}

// flip exchanges the colors on the path of a walk, so that its first color is free where it began.
func (c *table[N]) flip(w walk) {
	edges, moved, colors, level := *c.edges, c.moved, c.colors, c.level
	here, there := &c.sides[w.side], &c.sides[1-w.side]
	at, x, y := int(w.from), w.leave, w.enter
	here.free[at] ^= 1<<x | 1<<y
	for {
		row := here.at[at*colors:][:colors]
		s := row[x] // the edge by which the path goes on
		row[x], row[y] = row[y], s
		if s.edge == noEdge[N]() {
			here.free[at] ^= 1<<x | 1<<y
			c.moved = moved
			return
		}
		edges[s.edge].color[level] = y
		moved = append(moved, Edge(s.edge))
		x, y, at, here, there = y, x, int(s.to), there, here
	}
}

// remove takes an edge out.
func (c *table[N]) remove(e Edge) {
	c.count--
	c.moved = c.moved[:0]
	it := &(*c.edges)[e]
	color := it.color[c.level]
	for i, at := range it.ends[c.level] {
		c.sides[i].at[int(at)*c.colors+int(color)].edge = noEdge[N]()
		c.sides[i].free[at] |= 1 << color
	}
}

// greatestUse is the greatest number of edges of one color at a vertex.
func (c *table[N]) greatestUse() int {
	most := 0
	for _, s := range c.sides {
		for at := range s.vertices * c.colors {
			uses := 0
			for ; at < len(s.at); at += s.vertices * c.colors {
				if s.at[at].edge != noEdge[N]() {
					uses++
				}
			}
			most = max(most, uses)
		}
	}
	return most
}
