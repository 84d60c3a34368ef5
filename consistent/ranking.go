package consistent

import (
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
	members []Member // of positive weight, by ascending id
	ranked  []uint16 // rankingDepth ids per slot, best first
	known   []uint8  // how many of them are in use
}

// Rank makes the orders of slots slots for the members. Members of weight 0 are left out.
func Rank(slots int, seed uint64, members []Member) (*Ranking, error) {
	if err := checkSlots(slots); err != nil {
		return nil, err
	}
	sorted, err := normalize(members)
	if err != nil {
		return nil, err
	}
	r := &Ranking{seed: seed, members: sorted, ranked: make([]uint16, slots*rankingDepth), known: make([]uint8, slots)}
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
	if len(joined) > len(sorted)/4 {
		return Rank(r.Slots(), r.seed, sorted)
	}
	next := &Ranking{seed: r.seed, members: sorted, ranked: slices.Clone(r.ranked), known: slices.Clone(r.known)}
	next.remove(left, len(r.members))
	s := newScorer(r.seed, sorted)
	stayed := len(sorted) - len(joined)
	for _, m := range joined {
		next.insert(m, s, stayed)
		stayed++
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
	type scored struct {
		id    uint16
		score float64
	}
	all := make([]scored, len(r.members))
	for i, m := range r.members {
		all[i] = scored{m.ID, s.score(slot, m.ID)}
	}
	slices.SortStableFunc(all, func(a, b scored) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return 0
	})
	ids := make([]uint16, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	return ids
}

// fill finds the best members of a slot among all.
func (r *Ranking) fill(slot int, s *scorer) {
	var scores [rankingDepth]float64
	order := r.ranked[slot*rankingDepth:][:rankingDepth]
	known := 0
	for _, m := range r.members {
		score := s.score(slot, m.ID)
		if known == rankingDepth && score >= scores[known-1] {
			continue
		}
		known = min(known+1, rankingDepth)
		i := known - 1
		for ; i > 0 && score < scores[i-1]; i-- {
			scores[i], order[i] = scores[i-1], order[i-1]
		}
		scores[i], order[i] = score, m.ID
	}
	r.known[slot] = uint8(known)
}

// remove takes the members who left out of all slots. Slots of which too little is known then are filled anew, from those who
// stayed: r.members may have others already, who are inserted later and are found again.
func (r *Ranking) remove(left []Member, members int) {
	if len(left) == 0 {
		return
	}
	var gone [1 << 16 / 64]uint64
	for _, m := range left {
		gone[m.ID/64] |= 1 << (m.ID % 64)
	}
	var s *scorer
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
		if kept < min(rankingKeep, members-len(left)) {
			if s == nil {
				s = newScorer(r.seed, r.members)
			}
			r.fill(slot, s)
		}
	}
}

// insert puts m into all slots. Before, the ranking had this many members.
func (r *Ranking) insert(m Member, s *scorer, members int) {
	for slot := range r.known {
		order := r.First(slot)
		if slices.Contains(order, m.ID) {
			continue // filled anew
		}
		score := s.score(slot, m.ID)
		known := len(order)
		if known < members && known > 0 && !s.better(slot, score, m.ID, order[known-1]) {
			continue // behind those that are known
		}
		place := known
		for place > 0 && s.better(slot, score, m.ID, order[place-1]) {
			place--
		}
		if place == rankingDepth {
			continue
		}
		known = min(known+1, rankingDepth)
		r.known[slot] = uint8(known)
		order = r.First(slot)
		copy(order[place+1:], order[place:known-1])
		order[place] = m.ID
	}
}

// scorer gives each member its score in a slot; the lowest is the best.
type scorer struct {
	seed    uint64
	inverse []float64 // by id: 1 / weight
}

func newScorer(seed uint64, members []Member) *scorer {
	s := &scorer{seed: mix(seed)}
	if len(members) > 0 {
		s.inverse = make([]float64, int(members[len(members)-1].ID)+1)
	}
	for _, m := range members {
		s.inverse[m.ID] = 1 / float64(m.Weight)
	}
	return s
}

// score is exponentially distributed with the member's weight as its rate, so the lowest score of several is a member's with a
// probability in proportion to its weight. It is computed so that every machine gets the same number.
func (s *scorer) score(slot int, id uint16) float64 {
	u := mix(s.seed ^ mix(uint64(slot)<<16|uint64(id)))
	return float64(negativeLog2(u)) * s.inverse[id]
}

// better tells whether a score of id stands before other in a slot. Equal scores stand by ascending id.
func (s *scorer) better(slot int, score float64, id, other uint16) bool {
	o := s.score(slot, other)
	return score < o || score == o && id < other
}

// logBits is the precision of the logarithm's table: 2^12 steps, read with linear interpolation; logScale that of the result.
const (
	logBits  = 12
	logScale = 26
)

// negativeLog2 returns -log2((u+1) / 2^64) in units of 2^-26, from 0 to 64 * 2^26.
func negativeLog2(u uint64) uint64 {
	zeros := bits.LeadingZeros64(u | 1)
	mantissa := (u | 1) << zeros << 1 // the bits behind the leading one
	index := mantissa >> (64 - logBits)
	rest := mantissa << logBits >> (64 - logScale)
	table := logTable()
	low, high := uint64(table[index]), uint64(table[index+1])
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
