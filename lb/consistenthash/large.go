package consistenthash

import (
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
)

// A large table is ranked along the preferences of its members: few of each are looked at, and none
// of the slots in which it is far behind.

// stepEntries is by how many members, in the mean, a slot's order grows in a step of fillRange: so
// few that nearly all come behind those of the steps before.
const stepEntries = 1.0 / 4

// mostLacking is one of how many slots may know too few members when fillRange looks at each of
// those slots by itself.
const mostLacking = 4096

// fillLarge finds the best members of all slots of a new ranking. Each processor has a range of the
// slots, and looks at all preferences for it, which is the smaller part of the work.
func (r *Ranking) fillLarge() {
	var filling sync.WaitGroup
	parts := min(runtime.GOMAXPROCS(0), mostParts)
	worst := make([]float64, parts)
	for part := range parts {
		first, end := part*len(r.pages)/parts, (part+1)*len(r.pages)/parts
		filling.Go(func() {
			worst[part] = r.fillRange(first*pageSlots, min(end*pageSlots, r.slots))
		})
	}
	filling.Wait()
	r.worst = slices.Max(worst)
}

// mostParts is how many ranges there are at most: each has all preferences looked at once more.
const mostParts = 4

// fillRange fills the slots from first to before end, and returns the highest score of a bound. In
// each step it enters, of all members, those slots in which they score up to a limit, which rises.
func (r *Ranking) fillRange(first, end int) (worst float64) {
	f := climbing{scorer: r.scorer, members: r.members, next: make([]uint64, len(r.members)),
		first: first, orders: make([]climbingOrder, end-first), lacking: end - first,
		waiting: make([]entry, 0, entriesAtOnce)}
	for f.lacking > len(f.orders)/mostLacking && f.rise() {
		for i := range r.members {
			f.climb(i)
		}
		f.enterAll()
	}
	for slot := first; slot < end; slot++ {
		o := r.at(slot)
		f.end(slot, o)
		if o.known < rankingKeep && o.bound != everybody {
			r.findBest(slot, o)
		}
		worst = max(worst, o.bound.score)
	}
	return worst
}

// climbing is the state of fillRange.
type climbing struct {
	scorer  *scorer
	members []Member
	next    []uint64 // by member: the best preference that was not looked at
	first   int      // slot
	orders  []climbingOrder
	lacking int     // slots in which fewer than rankingKeep members are known
	limit   float64 // all members are known where they score up to it
	step    uint8
	waiting []entry
	touched uint8 // the sum of what was read, so that it is
}

// climbingOrder is an order of a slot with the best of those behind it.
type climbingOrder struct {
	ids   [rankingDepth + 1]uint16
	known uint8   // ids in use
	step  uint8   // in which the last one came
	_     [4]byte // an order lies in one line of the cache
}

// entry is a member that is to be entered into the order of a slot. Slots are far apart in memory:
// the processor reads those of some entries at once.
type entry struct {
	slot int
	here standing
}

const (
	entriesAtOnce     = 32
	preferencesAtOnce = 8
)

// rate is how many members come into a slot, in the mean, if the limit rises by 1.
func (f *climbing) rate() (sum float64) {
	const perUnit = math.Ln2 / (1 << logScale)
	for i, m := range f.members {
		if f.next[i] < f.scorer.prefers.many() {
			weight := float64(m.Weight) * perUnit
			sum += weight * math.Exp(-f.limit*weight)
		}
	}
	return sum
}

// rise raises the limit for the next step; false if all members are in all slots.
func (f *climbing) rise() bool {
	rate := f.rate()
	if rate == 0 {
		f.limit = everybody.score
		return false
	}
	f.limit += stepEntries / rate
	f.step++
	return true
}

// climb enters a member where it scores up to the limit.
func (f *climbing) climb(member int) {
	slots := f.scorer.best(f.members[member].ID, &f.next[member], f.first, f.first+len(f.orders))
	for slot, here := range slots {
		if here.score > f.limit {
			return
		}
		f.waiting = append(f.waiting, entry{slot, here})
		if len(f.waiting) == cap(f.waiting) {
			f.enterAll()
		}
	}
}

func (f *climbing) enterAll() {
	for i := range f.waiting {
		f.touched += f.orders[f.waiting[i].slot-f.first].known
	}
	for i := range f.waiting {
		f.enter(f.waiting[i])
	}
	f.waiting = f.waiting[:0]
}

// enter puts a member into an order. All that are in it score lower, but those of the same step.
func (f *climbing) enter(e entry) {
	o := &f.orders[e.slot-f.first]
	place := int(o.known)
	if o.step == f.step { // or 256 steps before
		for place > 0 && e.here.before(f.scorer.standing(e.slot, o.ids[place-1])) {
			place--
		}
	}
	if place == len(o.ids) {
		return
	}
	if o.known < uint8(len(o.ids)) {
		if o.known++; o.known == rankingKeep {
			f.lacking--
		}
	}
	copy(o.ids[place+1:o.known], o.ids[place:])
	o.ids[place], o.step = e.here.id, f.step
}

// end writes the order of a slot.
func (f *climbing) end(slot int, to *order) {
	from := &f.orders[slot-f.first]
	to.known = min(from.known, rankingDepth)
	copy(to.ids[:to.known], from.ids[:])
	to.bound = standing{f.limit, math.MaxUint32, math.MaxUint16}
	if from.known > rankingDepth {
		to.bound = f.scorer.standing(slot, from.ids[rankingDepth])
	}
}

// best yields the slots of a large table from first to before end, and a member's standings there,
// from a preference on, the best first. What was yielded last is the next one still if the loop
// ends early.
func (s *scorer) best(id uint16, next *uint64, first, end int) iter.Seq2[int, standing] {
	type preferred struct {
		slot       int
		preference uint64
	}
	return func(yield func(int, standing) bool) {
		order, many := s.orderOf(id), s.prefers.many()
		var some [preferencesAtOnce]preferred
		for *next < many {
			n, after := 0, min(*next+preferencesAtOnce, many)
			for p := *next; p < after; p++ {
				slot := s.prefers.slot(order, p)
				some[n%preferencesAtOnce] = preferred{slot, p}
				// no branch, which a processor would guess wrong
				n += int((uint64(uint32(slot-first)) - uint64(end-first)) >> 63)
			}
			for _, p := range some[:n] {
				*next = p.preference
				if !yield(p.slot, s.preferred(p.slot, id, p.preference)) {
					return
				}
			}
			*next = after
		}
	}
}

// withinLarge is within for a large table.
func (r *Ranking) withinLarge(id uint16) (slots []int32) {
	var next uint64
	for slot, here := range r.scorer.best(id, &next, 0, r.slots) {
		if here.score > r.worst {
			break
		}
		if here.before(r.at(slot).bound) {
			slots = append(slots, int32(slot))
		}
	}
	slices.Sort(slots)
	return slots
}
