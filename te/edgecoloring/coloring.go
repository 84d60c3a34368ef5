package edgecoloring

import "fmt"

// ColorsMax bounds the number of colors: those that are free at a vertex are bits of one word.
const ColorsMax = 64

// An Edge is the number of an edge, which the caller gives it: those in use differ, and are small.
type Edge int32

// A Coloring is a bipartite multigraph whose edges have colors. A vertex has a color on at most
// ceil(d/c) of its edges, where c is the number of colors and d the greatest degree that the vertex
// has had. It serves one goroutine.
type Coloring struct {
	colors int
	edges  *[]record      // colorings that share numbers share it
	level  int            // which place and color of a record are this coloring's
	small  *table[uint16] // nil: it does not hold all
	large  *table[uint32] // nil: small holds all
}

// levels is how many colorings an edge can be in at once.
const levels = 2

// A record is what is known of an edge, together, so that a processor finds it by one load: at each
// level its places, by side, and its color. The last two are their network's.
type record struct {
	ends  [levels][2]int32
	color [levels]int8
	group int8
	state uint8
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

// newOf is a coloring without edges, which it keeps at a level of records, maybe beside those of
// others.
func newOf(edges *[]record, level, left, right, colors int) *Coloring {
	return &Coloring{colors: colors, edges: edges, level: level,
		small: newTable[uint16](edges, level, left, right, colors)}
}

// add adds an edge between vertices of the left and of the right side, under a number that is not
// in use, and gives it a color. It panics if there is no such vertex.
func (c *Coloring) add(e Edge, left, right int) {
	if c.small != nil && !c.small.holds(e) {
		c.small, c.large = nil, widened[uint32](c.small)
	}
	if c.small != nil {
		c.small.add(e, left, right)
	} else {
		c.large.add(e, left, right)
	}
}

// remove removes an edge that was added. No other edge changes its color.
func (c *Coloring) remove(e Edge) {
	if c.small != nil {
		c.small.remove(e)
	} else {
		c.large.remove(e)
	}
}

// greatestUse is the greatest number of edges of one color at a vertex.
func (c *Coloring) greatestUse() int {
	if c.small != nil {
		return c.small.greatestUse()
	}
	return c.large.greatestUse()
}

// Moved returns the edges whose colors the last add or remove changed. It is valid until
// the next.
func (c *Coloring) Moved() []Edge {
	if c.small != nil {
		return c.small.moved
	}
	return c.large.moved
}
