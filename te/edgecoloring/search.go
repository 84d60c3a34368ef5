package edgecoloring

import "math/bits"

// A walk follows edges of two colors in turn from a place that has one of them on an edge and lacks
// the other. To exchange the two on its path makes the first one free where it begins. Here it has
// come to a place of the side that it began at, after an even number of edges.
type walk[N number] struct {
	at    N     // the row of the place
	goal  uint8 // what it makes free
	enter uint8 // the other color
}

// A goal is a color that is to be free at one of two places: the color, and sideBit for the second.
const (
	sideBit   = 1 << 6
	colorBits = sideBit - 1
)

// A search is the memory of exchange.
type search[N number] struct {
	walks, others []walk[N]          // others: of third
	found         [2 * sideBit]int32 // edges of the path to a goal: unknown, or none if it is free
	enter         [2 * sideBit]uint8 // the other color of that path
	best          int                // the least number of edges that makes a color free at both
	color         int                // that color
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
func (t *table[N]) exchange(u, v int32) int {
	s, ends := &t.search, [2]int32{u, v}
	free := [2]uint64{t.free[u], t.free[v]}
	s.best, s.walks = unknown, s.walks[:0]
	for side, at := range ends {
		for colors := free[side]; colors != 0; colors &= colors - 1 {
			s.found[side*sideBit|bits.TrailingZeros64(colors)] = 0
		}
		s.begin(side, at, free[1-side], free[side])
	}
	for edges := 0; s.best > edges; edges += 2 {
		if edges == thirdMin && s.best == unknown && t.hasGaps() {
			t.third(ends, free)
		}
		s.walks = t.advance(s.walks, edges)
	}
	for side, at := range ends {
		if free[side]>>s.color&1 == 0 {
			t.flip(at, s.color, int(s.enter[side*sideBit|s.color]))
		}
	}
	return s.color
}

// begin lets walks begin at a place that make the colors free there, by each that is free.
func (s *search[N]) begin(side int, at int32, colors, free uint64) {
	left := walksMax
	for ; colors != 0; colors &= colors - 1 {
		goal := side*sideBit | bits.TrailingZeros64(colors)
		s.found[goal] = unknown
		for enters := free; enters != 0 && left > 0; enters &= enters - 1 {
			s.walks = append(s.walks, walk[N]{N(at), uint8(goal),
				uint8(bits.TrailingZeros64(enters))})
			left--
		}
	}
}

// hasGaps reports whether a path ends soon as a rule.
func (t *table[N]) hasGaps() bool {
	layers := len(t.free) / (t.sizes[0] + t.sizes[1])
	slots := layers * min(t.sizes[0], t.sizes[1]) * t.colors
	return (slots-t.count)*thirdGaps >= slots
}

// third looks for paths from both places to colors that neither lacks.
func (t *table[N]) third(ends [2]int32, free [2]uint64) {
	s := &t.search
	colors := ^uint64(0) >> (64 - t.colors) &^ (free[0] | free[1])
	direct := s.walks
	s.walks = s.others[:0]
	for side, at := range ends {
		s.begin(side, at, colors, free[side]&-free[side])
	}
	for edges := 0; edges < thirdMax && 2*edges < s.best; edges += 2 {
		s.walks = t.advance(s.walks, edges)
	}
	s.others, s.walks = s.walks, direct
}

// advance lets walks that have come so many edges go two further, and returns those that have.
func (t *table[N]) advance(walks []walk[N], edges int) []walk[N] {
	all, colors := t.at, t.colors
	for i := 0; i < len(walks); {
		w := &walks[i]
		one := int(all[int(w.at)*colors+int(w.goal&colorBits)].to)
		next := all[one*colors+int(w.enter)].to
		if next != 0 {
			w.at = next
			i++
			continue
		}
		length := edges
		if one != 0 {
			length++
		}
		t.search.end(w, length)
		last := len(walks) - 1
		walks[i] = walks[last]
		walks = walks[:last]
	}
	return walks
}

// end notes a walk that has come to its end.
func (s *search[N]) end(w *walk[N], length int) {
	found := &s.found[w.goal&(2*sideBit-1)]
	if length >= int(*found) {
		return
	}
	*found, s.enter[w.goal&(2*sideBit-1)] = int32(length), w.enter
	if sum := length + int(s.found[(w.goal^sideBit)&(2*sideBit-1)]); sum < s.best {
		s.best, s.color = sum, int(w.goal&colorBits)
	}
}
