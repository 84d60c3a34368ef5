package consistenthash_test

import (
	"slices"
	"testing"

	"sextant/lb/consistenthash"
)

// A member of many that joins, leaves or weighs something else leads where ranking all anew does.
func TestRankingOfManyFollowsOne(t *testing.T) {
	const slots = 500
	members := equalMembers(100)
	r := rank(t, slots, 9, members)
	for step := range 120 {
		members = slices.Clone(members)
		switch i := (step * 37) % len(members); step % 4 {
		case 0:
			members = slices.Delete(members, i, i+1)
		case 1:
			members[i].Weight = uint32(1 + step%7)
		case 2:
			members = append(members, consistenthash.Member{ID: uint16(1000 + step), Weight: 3})
		case 3:
			members[i].Weight = 1 - min(members[i].Weight, 1)
		}
		before := r
		var changed []int32
		var err error
		if r, changed, err = before.Update(members); err != nil {
			t.Fatal(err)
		}
		fresh := rank(t, slots, 9, members)
		for slot := range slots {
			known := r.First(slot)
			if !slices.Equal(known, fresh.All(slot)[:len(known)]) || len(known) < 8 {
				t.Fatalf("step %d, slot %d: %v, ranked anew %v", step, slot, known,
					fresh.First(slot))
			}
			if changed != nil && !slices.Contains(changed, int32(slot)) &&
				!slices.Equal(known, before.First(slot)) {
				t.Fatalf("step %d, slot %d: %v was %v, untold", step, slot, known,
					before.First(slot))
			}
		}
	}
}
