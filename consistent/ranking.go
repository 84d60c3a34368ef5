package consistent

import (
	"math"
	"math/bits"
	"slices"
	"sync"
)

// rankingDepth is how many members of each slot's order a Ranking holds ready; rankingKeep is how many it is content with before
// it looks at all members again, so that a member that leaves costs one pass over its slots and rarely more.
const (
	rankingDepth = 12
	rankingKeep  = 8
)

// Ranking is an order of the members for each slot: weighted rendezvous hashing (Thaler and Ravishankar, "Using Name-Based
// Mappings to Increase Hit Rates", 1998; weights as in Schindelhauer and Schomaker, "Weighted Distributed Hash Tables", 2005).
// A member comes first in its share of the slots, up to chance: about 1/sqrt(slots of the member). A change moves the fewest slots
// possible. Other than a Table, a Ranking depends on its members and seed alone, not on the past: whoever knows the same
// members has the same order. It never changes.
type Ranking struct {
	seed    uint64
	members []Member   // of positive weight, by ascending id
	ranked  []uint16   // rankingDepth ids per slot, best first
	known   []uint8    // how many of them are in use
	bounds  []standing // per slot: whoever is not known stands behind this
}

// standing is a member's place in the order of a slot: by score, and by id where scores are equal.
type standing struct {
	score float64
	id    uint16
}

func (a standing) before(b standing) bool {
	return a.score < b.score || a.score == b.score && a.id < b.id
}

// everybody is the bound of a slot of which all members are known.
var everybody = standing{score: math.Inf(1)}

// Rank makes the orders of slots slots for the members. Members of weight 0 are left out.
func Rank(slots int, seed uint64, members []Member) (*Ranking, error) {
	if err := checkSlots(slots); err != nil {
		return nil, err
	}
	sorted, err := normalize(members)
	if err != nil {
		return nil, err
	}
	r := &Ranking{
		seed: seed, members: sorted,
		ranked: make([]uint16, slots*rankingDepth), known: make([]uint8, slots), bounds: make([]standing, slots),
	}
	s := newScorer(seed, sorted)
	for slot := range slots {
		r.fill(slot, s)
	}
	return r, nil
}

// Update returns the ranking of the members: the same that Rank would make, in less time if few members changed. It returns r
// itself if none did.
func (r *Ranking) Update(members []Member) (*Ranking, error) {
	sorted, err := normalize(members)
	if err != nil {
		return nil, err
	}
	if slices.Equal(sorted, r.members) {
		return r, nil
	}
	left, joined := difference(r.members, sorted)
	if len(joined) > len(sorted)/4 { // it would be as much work
		return Rank(r.Slots(), r.seed, sorted)
	}
	next := &Ranking{
		seed: r.seed, members: sorted,
		ranked: slices.Clone(r.ranked), known: slices.Clone(r.known), bounds: slices.Clone(r.bounds),
	}
	scorer := newScorer(r.seed, sorted)
	next.remove(left, scorer)
	for _, m := range joined {
		next.insert(m, scorer)
	}
	return next, nil
}

// difference returns who of before is not in after with the same weight, and who of after is not in before so. Both are
// sorted by id.
func difference(before, after []Member) (left, joined []Member) {
	for _, m := range before {
		if i, ok := search(after, m.ID); !ok || after[i] != m {
			left = append(left, m)
		}
	}
	for _, m := range after {
		if i, ok := search(before, m.ID); !ok || before[i] != m {
			joined = append(joined, m)
		}
	}
	return left, joined
}

func search(members []Member, id uint16) (int, bool) {
	return slices.BinarySearchFunc(members, id, func(m Member, id uint16) int { return int(m.ID) - int(id) })
}

// Slots returns the number of slots.
func (r *Ranking) Slots() int { return len(r.known) }

// First returns the best members of a slot, best first: all, or at least 8. The caller must not change the slice.
func (r *Ranking) First(slot int) []uint16 {
	return r.ranked[slot*rankingDepth:][:r.known[slot]]
}

// All returns all members in the slot's order. It looks at each of them: First is for every day.
func (r *Ranking) All(slot int) []uint16 {
	s := newScorer(r.seed, r.members)
	all := make([]standing, len(r.members))
	for i, m := range r.members {
		all[i] = s.standing(slot, m.ID)
	}
	slices.SortFunc(all, func(a, b standing) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	ids := make([]uint16, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	return ids
}

// fill finds the best members of a slot among all.
func (r *Ranking) fill(slot int, s *scorer) {
	var best [rankingDepth]standing // members come by ascending id, so equal scores keep their order
	order := r.ranked[slot*rankingDepth:][:rankingDepth]
	known, bound := 0, everybody
	for _, m := range r.members {
		here := s.standing(slot, m.ID)
		if known == rankingDepth {
			if !here.before(best[known-1]) {
				if here.before(bound) {
					bound = here
				}
				continue
			}
			if best[known-1].before(bound) {
				bound = best[known-1]
			}
		}
		known = min(known+1, rankingDepth)
		i := known - 1
		for ; i > 0 && here.before(best[i-1]); i-- {
			best[i], order[i] = best[i-1], order[i-1]
		}
		best[i], order[i] = here, m.ID
	}
	r.known[slot], r.bounds[slot] = uint8(known), bound
}

// remove takes the members who left out of all slots. Slots of which too little is known then are filled anew.
func (r *Ranking) remove(left []Member, s *scorer) {
	if len(left) == 0 {
		return
	}
	var gone [1 << 16 / 64]uint64
	for _, m := range left {
		gone[m.ID/64] |= 1 << (m.ID % 64)
	}
	for slot := range r.known {
		order := r.First(slot)
		kept := 0
		for _, id := range order {
			if gone[id/64]&(1<<(id%64)) == 0 {
				order[kept] = id
				kept++
			}
		}
		r.known[slot] = uint8(kept)
		if kept < rankingKeep && r.bounds[slot] != everybody {
			r.fill(slot, s)
		}
	}
}

// insert puts m into all slots.
func (r *Ranking) insert(m Member, s *scorer) {
	for slot := range r.known {
		here := s.standing(slot, m.ID)
		if !here.before(r.bounds[slot]) {
			continue // behind those that are known
		}
		order := r.First(slot)
		if slices.Contains(order, m.ID) {
			continue // filled anew
		}
		place := len(order)
		for place > 0 && here.before(s.standing(slot, order[place-1])) {
			place--
		}
		r.insertAt(slot, place, here, s)
	}
}

func (r *Ranking) insertAt(slot, place int, here standing, s *scorer) {
	if place == rankingDepth {
		r.bounds[slot] = here
		return
	}
	if r.known[slot] == rankingDepth {
		r.bounds[slot] = s.standing(slot, r.ranked[slot*rankingDepth+rankingDepth-1])
	} else {
		r.known[slot]++
	}
	order := r.First(slot)
	copy(order[place+1:], order[place:])
	order[place] = here.id
}

// scorer gives each member its score in a slot; the lowest is the best.
type scorer struct {
	seed    uint64
	inverse []float64 // by id: 1 / weight
	logs    *[1<<logBits + 1]uint32
}

func newScorer(seed uint64, members []Member) *scorer {
	s := &scorer{seed: mix(seed), logs: logTable()}
	if len(members) > 0 {
		s.inverse = make([]float64, int(members[len(members)-1].ID)+1)
	}
	for _, m := range members {
		s.inverse[m.ID] = 1 / float64(m.Weight)
	}
	return s
}

// standing is a member's in a slot. The score is exponentially distributed with the member's weight as its rate, so the lowest
// score of several is a member's with a probability in proportion to its weight. Every machine gets the same number.
func (s *scorer) standing(slot int, id uint16) standing {
	u := mix(s.seed ^ mix(uint64(slot)<<16|uint64(id)))
	return standing{float64(negativeLog2(u, s.logs)) * s.inverse[id], id}
}

// logBits is the precision of the logarithm's table: 2^12 steps, read with linear interpolation; logScale that of the result.
const (
	logBits  = 12
	logScale = 26
)

// negativeLog2 returns -log2((u+1) / 2^64) in units of 2^-26, from 0 to 64 * 2^26.
func negativeLog2(u uint64, logs *[1<<logBits + 1]uint32) uint64 {
	zeros := bits.LeadingZeros64(u | 1)
	mantissa := (u | 1) << zeros << 1 // the bits behind the leading one
	index := mantissa >> (64 - logBits)
	rest := mantissa << logBits >> (64 - logScale)
	low, high := uint64(logs[index]), uint64(logs[index+1])
	return uint64(zeros+1)<<logScale - (low + (high-low)*rest>>logScale)
}

// logTable holds log2(1 + i/4096) in units of 2^-26. It is found by squaring, in integers, because the logarithms of the
// standard library need not agree in the last bit on all machines.
var logTable = sync.OnceValue(func() *[1<<logBits + 1]uint32 {
	var table [1<<logBits + 1]uint32
	for i := range table {
		x := uint64(1)<<62 + uint64(i)<<(62-logBits) // 1 + i/4096, as a fraction of 2^62
		var y uint32
		if i == 1<<logBits {
			table[i] = 1 << logScale
			continue
		}
		for range logScale {
			high, low := bits.Mul64(x, x)
			x = high<<2 | low>>62
			y <<= 1
			if x >= 1<<63 {
				x >>= 1
				y |= 1
			}
		}
		table[i] = y
	}
	return &table
})
