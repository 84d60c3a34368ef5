package edgecoloring

import "math/bits"

// number is what edges and places are counted with: as few octets as do, so that the tables of a
// large network stay in a processor's cache.
type number interface{ ~uint16 | ~uint32 }

// A table colors edges. It has a row for each place of a vertex: a vertex of more edges than colors
// has several, each a vertex of its own for the coloring. Row 0 stands for no place; then come rows
// of the left side and of the right side, and as many of both for each layer more. With both sides
// in one table, a walk goes on without a look at the side that it has come to.
type table[N number] struct {
	colors int
	edges  *[]record
	level  int
	sizes  [2]int    // vertices of each side
	free   []uint64  // colors, by row
	at     []slot[N] // by row and color
	count  int       // edges
	moved  []Edge
	search search[N]
}

// A slot is the edge of a color at a place: paths are walked by one load for each edge. Where there
// is none, it leads to row 0, which has none.
type slot[N number] struct{ to, edge N } // to: the row of the place at its other end

func newTable[N number](edges *[]record, level, left, right, colors int) *table[N] {
	t := &table[N]{colors: colors, edges: edges, level: level, sizes: [2]int{left, right},
		free: make([]uint64, 1)}
	t.addLayer()
	return t
}

// holds reports whether an edge of that number, and one more layer, can be counted.
func (t *table[N]) holds(e Edge) bool {
	return int(e) <= int(^N(0)) && len(t.free)+t.sizes[0]+t.sizes[1] <= int(^N(0))
}

// widened is the table with other numbers.
func widened[N, M number](from *table[M]) *table[N] {
	t := &table[N]{colors: from.colors, edges: from.edges, level: from.level, sizes: from.sizes,
		free: from.free, at: make([]slot[N], len(from.at)), count: from.count, moved: from.moved}
	for i, one := range from.at {
		t.at[i] = slot[N]{N(one.to), N(one.edge)}
	}
	return t
}

func (t *table[N]) addLayer() {
	for range t.sizes[0] + t.sizes[1] {
		t.free = append(t.free, ^uint64(0)>>(64-t.colors))
	}
	t.at = append(t.at, make([]slot[N], len(t.free)*t.colors-len(t.at))...)
}

// place returns the row of the first place of the vertex that has a color left.
func (t *table[N]) place(side, vertex int) int32 {
	for row := 1 + side*t.sizes[0] + vertex; ; row += t.sizes[0] + t.sizes[1] {
		if row >= len(t.free) {
			t.addLayer()
		}
		if t.free[row] != 0 {
			return int32(row)
		}
	}
}

// add colors an edge between vertices, under a number that is not in use.
func (t *table[N]) add(e Edge, left, right int) {
	t.moved = t.moved[:0]
	u, v := t.place(0, left), t.place(1, right)
	both := t.free[u] & t.free[v]
	color := bits.TrailingZeros64(both)
	if both == 0 {
		color = t.makeFree(u, v)
	}
	it := &(*t.edges)[e]
	it.ends[t.level], it.color[t.level] = [2]int32{u, v}, int8(color)
	t.row(u)[color] = slot[N]{N(v), N(e)}
	t.free[u] &^= 1 << color
	t.row(v)[color] = slot[N]{N(u), N(e)}
	t.free[v] &^= 1 << color
	t.count++
}

// makeFree changes colors of other edges so that one is free at both places, the left u and the
// right v, which have none in common. It returns that color.
func (t *table[N]) makeFree(u, v int32) int {
	if color, ok := t.moveOne(u, v); ok {
		return color
	}
	if color, ok := t.moveTwo(u, v); ok {
		return color
	}
	return t.exchange(u, v)
}

// moveOne frees a color that one of the places lacks, if the edge that has it at the other one can
// take a color that is free at both its ends.
func (t *table[N]) moveOne(u, v int32) (int, bool) {
	free := t.free
	freeU, freeV, rowU, rowV := free[u], free[v], t.row(u), t.row(v)
	for lacks := freeV; lacks != 0; lacks &= lacks - 1 {
		color := bits.TrailingZeros64(lacks)
		if both := freeU & free[rowU[color].to]; both != 0 {
			t.flip(u, color, bits.TrailingZeros64(both))
			return color, true
		}
	}
	for lacks := freeU; lacks != 0; lacks &= lacks - 1 {
		color := bits.TrailingZeros64(lacks)
		if both := freeV & free[rowV[color].to]; both != 0 {
			t.flip(v, color, bits.TrailingZeros64(both))
			return color, true
		}
	}
	return 0, false
}

// moveTwo does the same with a color that neither place lacks, and two edges.
func (t *table[N]) moveTwo(u, v int32) (int, bool) {
	free := t.free
	freeU, freeV, rowU, rowV := free[u], free[v], t.row(u), t.row(v)
	for rest := ^uint64(0) >> (64 - t.colors) &^ (freeU | freeV); rest != 0; rest &= rest - 1 {
		color := bits.TrailingZeros64(rest)
		bothU, bothV := freeU&free[rowU[color].to], freeV&free[rowV[color].to]
		if (bothU|-bothU)&(bothV|-bothV)>>63 != 0 { // neither is 0: one branch that is foreseen
			t.flip(u, color, bits.TrailingZeros64(bothU))
			t.flip(v, color, bits.TrailingZeros64(bothV))
			return color, true
		}
	}
	return 0, false
}

// row is the edges at a place, by color.
func (t *table[N]) row(row int32) []slot[N] { return t.at[int(row)*t.colors:][:t.colors] }

// flip exchanges two colors on the path that begins at a place with an edge of the first, which is
// free there then.
func (t *table[N]) flip(row int32, leave, enter int) {
	edges, moved, all, colors, level := *t.edges, t.moved, t.at, t.colors, t.level&1
	at, x, y := int(row), leave, enter
	t.free[at] ^= 1<<x | 1<<y
	for {
		s, other := &all[at*colors+x], &all[at*colors+y]
		one := *s // the edge by which the path goes on
		*s, *other = *other, one
		if one.to == 0 {
			t.free[at] ^= 1<<x | 1<<y
			t.moved = moved
			return
		}
		edges[one.edge].color[level] = int8(y)
		moved = append(moved, Edge(one.edge))
		x, y, at = y, x, int(one.to)
	}
}

// remove takes an edge out.
func (t *table[N]) remove(e Edge) {
	t.count--
	t.moved = t.moved[:0]
	it := &(*t.edges)[e]
	color := it.color[t.level]
	for _, row := range it.ends[t.level] {
		t.row(row)[color] = slot[N]{}
		t.free[row] |= 1 << color
	}
}

// greatestUse is the greatest number of edges of one color at a vertex.
func (t *table[N]) greatestUse() int {
	most, layer := 0, t.sizes[0]+t.sizes[1]
	for first := 1; first <= layer; first++ {
		for color := range t.colors {
			uses := 0
			for row := first; row < len(t.free); row += layer {
				if t.row(int32(row))[color].to != 0 {
					uses++
				}
			}
			most = max(most, uses)
		}
	}
	return most
}
