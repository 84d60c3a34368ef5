package edgecoloring

import "math/bits"

// A walk is the path of edges of two colors in turn from a place that has one of them on an edge
// and lacks the other. To exchange the two makes the first one free where it begins.
type walk struct {
	from         int32
	side         int8 // where it begins
	leave, enter int8 // the color of its first edge, and the other
}

// A walker is how far a walk has come: after an even number of edges, so on the side that it began.
type walker[N number] struct {
	at           N
	leave, enter int8
}

// A search is the memory of exchange: what makes each color free at either end, by side.
type search[N number] struct {
	walkers [2][]walker[N]
	found   [2][ColorsMax]int32 // edges of the path to exchange: unknown, or none if it is free
	enter   [2][ColorsMax]int8  // the other color of that path
	memory  [2][]walker[N]      // of third
	best    int                 // the least number of edges that makes a color free at both ends
	color   int                 // that color
}

const (
	unknown = 1 << 30 // more edges than any path has
	// walksMax bounds the walks of a side.
	walksMax = 32
	// When walks have thirdMin edges, colors are tried that are free at neither place, by thirdMax
	// edges from each; not where fewer than one of thirdGaps places of edges is empty, as paths
	// from both are rarely short then.
	thirdMin, thirdMax, thirdGaps = 30, 24, 128
)

// exchange exchanges colors on paths so that one is free at both places, the left u and the right
// v, and returns it. It walks all paths in step, and takes the color that changes the fewest edges.
// Those that begin at u with a color that v lacks come to places of the right side by such edges,
// so they never come to v, and the other way round. Where these paths are long, others are walked
// from both places to colors that neither lacks. Two such paths may meet: the second one is then
// another one than was found, but still one whose exchange makes the color free.
func (c *table[N]) exchange(u, v int32) int {
	s, ends := &c.search, [2]int32{u, v}
	free := [2]uint64{c.sides[0].free[u], c.sides[1].free[v]}
	neither := ^uint64(0) >> (64 - c.colors) &^ (free[0] | free[1])
	s.best = unknown
	for side := range ends {
		s.walkers[side] = s.walkers[side][:0]
		s.begin(side, ends[side], free[1-side], free[side])
		for colors := free[side]; colors != 0; colors &= colors - 1 {
			s.found[side][bits.TrailingZeros64(colors)] = 0
		}
	}
	for edges := 0; s.best > edges; edges += 2 {
		if edges == thirdMin && s.best == unknown && c.hasGaps() {
			c.third(ends, free, neither)
		}
		for side := range ends {
			c.advance(side, edges)
		}
	}
	for side, at := range ends {
		if free[side]>>s.color&1 == 0 {
			c.flip(walk{at, int8(side), int8(s.color), s.enter[side][s.color]})
		}
	}
	return s.color
}

// begin lets walks begin at a place that make the colors free there, by each that is free.
func (s *search[N]) begin(side int, at int32, colors, free uint64) {
	for ; colors != 0; colors &= colors - 1 {
		leave := bits.TrailingZeros64(colors)
		s.found[side][leave] = unknown
		for enters := free; enters != 0 && len(s.walkers[side]) < walksMax; enters &= enters - 1 {
			s.walkers[side] = append(s.walkers[side], walker[N]{N(at), int8(leave),
				int8(bits.TrailingZeros64(enters))})
		}
	}
}

// hasGaps reports whether a path ends soon as a rule.
func (c *table[N]) hasGaps() bool {
	slots := min(len(c.sides[0].at), len(c.sides[1].at))
	return (slots-c.count)*thirdGaps >= slots
}

// third looks for paths from both places to colors that neither lacks.
func (c *table[N]) third(ends [2]int32, free [2]uint64, colors uint64) {
	s := &c.search
	direct := s.walkers
	for side, at := range ends {
		s.walkers[side] = s.memory[side][:0]
		s.begin(side, at, colors, free[side]&-free[side])
	}
	for edges := 0; edges < thirdMax && 2*edges < s.best; edges += 2 {
		for side := range ends {
			c.advance(side, edges)
		}
	}
	s.memory, s.walkers = s.walkers, direct
}

// advance lets the walks of a side, which have come so many edges, go two further.
func (c *table[N]) advance(side, edges int) {
	s := &c.search
	walkers, kept, colors := s.walkers[side], 0, c.colors
	here, there := c.sides[side].at, c.sides[1-side].at
	for _, w := range walkers {
		length := edges
		slot := here[int(w.at)*colors+int(w.leave)]
		if slot.edge != noEdge[N]() {
			length++
			slot = there[int(slot.to)*colors+int(w.enter)]
		}
		if slot.edge != noEdge[N]() {
			w.at = slot.to
			walkers[kept] = w
			kept++
			continue
		}
		if found := &s.found[side][w.leave]; length < int(*found) {
			*found, s.enter[side][w.leave] = int32(length), w.enter
			if sum := length + int(s.found[1-side][w.leave]); sum < s.best {
				s.best, s.color = sum, int(w.leave)
			}
		}
	}
	s.walkers[side] = walkers[:kept]
}
