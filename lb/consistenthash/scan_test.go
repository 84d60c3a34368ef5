package consistenthash_test

import (
	"slices"
	"testing"

	"sextant/lb/consistenthash"
)

// However a member's slots are looked for, those are found in which it is known, and hardly any
// other is looked at closely.
func TestSlotsOfOneThatJoins(t *testing.T) {
	const slots = 4003
	members := equalMembers(200)
	members[100].Weight, members[150].Weight = 40, 200_000
	for _, joins := range []int{199, 100, 150} {
		id := members[joins].ID
		others := slices.Delete(slices.Clone(members), joins, joins+1)
		consistenthash.EachWay(t, func(t *testing.T) {
			r, _, err := rank(t, slots, 7, others).Update(members)
			if err != nil {
				t.Fatal(err)
			}
			known := 0
			for slot := range slots {
				if got, all := r.First(slot), r.All(slot); !slices.Equal(got, all[:len(got)]) {
					t.Fatalf("member %d, slot %d: %v of %v", id, slot, got, all)
				}
				if slices.Contains(r.First(slot), id) {
					known++
				}
			}
			if holding := r.Holding(id); len(holding) != known {
				t.Errorf("member %d is known in %d slots, and %d are told", id, known, len(holding))
			}
			if n := r.Sought(id); known < slots && (n < known || n > known+known/5) {
				t.Errorf("member %d is known in %d slots, and %d are looked at", id, known, n)
			}
		})
	}
}
