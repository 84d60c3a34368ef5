package consistenthash

import (
	"math"
	"slices"
)

// A member is looked for in all slots by its draws. Nearly all are too low for a place among the
// best of their slot: one comparison with what the slot's bound is at most tells, rounded so that a
// table of it is small and lies in one piece. For the others the logarithm decides.

// scanSlots is how many slots are looked at in one go: a multiple of what is compared at once.
const scanSlots = 1024

// reachOf is a score as the upper half of a float32, rounded up.
func reachOf(score float64) uint16 {
	const infinite = 0x7f80
	return min(uint16(math.Float32bits(float32(score))>>16)+1, infinite)
}

// widen keeps the bound of a slot within its reach.
func (r *Ranking) widen(slot int, score float64) {
	if r.scorer.prefers.large() {
		r.worst = max(r.worst, score)
		return
	}
	to := reachOf(score)
	if to <= r.reach[slot] {
		return
	}
	if r.lent {
		r.reach, r.lent = slices.Clone(r.reach), false
	}
	r.reach[slot] = to
}

// sought is a member that is looked for. Where it is known, the complement of its draw is at most
// reach * scale + slack: -log2(p) is at least (1-p) / ln 2, and the table's logarithm, which is
// interpolated, at most 2 units below that.
type sought struct {
	seed, key    uint64
	scale, slack float32
}

func (s *scorer) sought(id uint16) sought {
	const (
		draws    = 1 << 64
		rounding = 1 + 1.0/64 // more than what single precision loses
		unit     = draws * math.Ln2 / (1 << logScale) * rounding
	)
	m := s.known[id]
	return sought{s.seed, m.key, float32(unit / m.inverse), 2 * unit}
}

// within returns the slots in which a member stands before the bound, in ascending order.
func (r *Ranking) within(id uint16) (slots []int32) {
	if r.scorer.prefers.large() {
		return r.withinLarge(id)
	}
	var hits [scanSlots]int32
	who := r.scorer.sought(id)
	for first := 0; first < len(r.reach); first += scanSlots {
		reach := r.reach[first:min(first+scanSlots, len(r.reach))]
		for _, hit := range hits[:who.scan(first, reach, &hits)] {
			slot := int(hit)
			if slot < r.slots && r.scorer.standing(slot, id).before(r.at(slot).bound) {
				slots = append(slots, hit)
			}
		}
	}
	return slots
}

// scanPlain writes the slots from first on in which the member may be known, and returns how many.
func (w sought) scanPlain(first int, reach []uint16, hits *[scanSlots]int32) (n int) {
	for i, r := range reach {
		draw := drawOf(w.seed, first+i, w.key)
		most := math.Float32frombits(uint32(r)<<16)*w.scale + w.slack
		if 2*float32(int64(^draw>>1)) <= most {
			hits[n%scanSlots] = int32(first + i)
			n++
		}
	}
	return n
}
