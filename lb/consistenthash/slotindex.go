package consistenthash

import "slices"

// slotIndex tells in which slots a member is known, as it was when the index was made, and what
// must be looked at besides because it has happened since. So the slots of a member of many are
// found without looking at all.
type slotIndex struct {
	slots [][]int32 // by id
	// members who came since, or weigh something else: the index says nothing about them
	joined   []uint16
	refilled []int32 // slots that were filled anew since: any member may have come in
}

// fewMembers are known in so large a part of the slots that an index saves nothing.
const fewMembers = 4 * rankingDepth

func newSlotIndex(r *Ranking) *slotIndex {
	x := &slotIndex{}
	if len(r.members) <= fewMembers {
		return x
	}
	counts := make([]int, int(r.members[len(r.members)-1].ID)+1)
	total := 0
	for slot := range r.slots {
		for _, id := range r.First(slot) {
			counts[id]++
			total++
		}
	}
	room := make([]int32, total)
	x.slots = make([][]int32, len(counts))
	for id, n := range counts {
		x.slots[id], room = room[:0:n], room[n:]
	}
	for slot := range r.slots {
		for _, id := range r.First(slot) {
			x.slots[id] = append(x.slots[id], int32(slot))
		}
	}
	return x
}

// following returns the index for a ranking that differs by those who join.
func (x *slotIndex) following(joined []Member) *slotIndex {
	next := &slotIndex{slots: x.slots, joined: slices.Clone(x.joined),
		refilled: slices.Clone(x.refilled)}
	for _, m := range joined {
		if !slices.Contains(next.joined, m.ID) {
			next.joined = append(next.joined, m.ID)
		}
	}
	return next
}

// Bounds of what may have happened since an index was made.
const (
	manyJoined   = 256
	manyRefilled = 8 // one slot in so many
)

// renew makes the index of the ranking anew if it says too little.
func (x *slotIndex) renew(r *Ranking) {
	if len(x.joined) > manyJoined || len(x.refilled) > r.slots/manyRefilled {
		*x = *newSlotIndex(r)
	}
}

// lookUp returns the slots in which a member may be known, in ascending order; false if the index
// does not know.
func (x *slotIndex) lookUp(id uint16) ([]int32, bool) {
	if int(id) >= len(x.slots) || slices.Contains(x.joined, id) {
		return nil, false
	}
	if len(x.refilled) == 0 {
		return x.slots[id], true
	}
	all := slices.Concat(x.slots[id], x.refilled)
	slices.Sort(all)
	return slices.Compact(all), true
}
