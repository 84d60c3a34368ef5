package consistenthash_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/consistenthash"
)

// A Computed has the orders of the Ranking of the same members.
func TestComputedIsTheRanking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots, seed := rapid.IntRange(1, 40).Draw(t, "slots"), rapid.Uint64().Draw(t, "seed")
		members := drawMembers(t, "members")
		kept, err := consistenthash.Rank(slots, seed, members)
		if err != nil {
			t.Fatal(err)
		}
		computed, err := consistenthash.Compute(seed, members)
		if err != nil {
			t.Fatal(err)
		}
		for slot := range slots {
			var space [consistenthash.Depth]uint16
			if got, want := computed.First(slot, &space),
				kept.First(slot); !slices.Equal(got, want) {
				t.Fatalf("slot %d: %v first, in the ranking %v", slot, got, want)
			}
			if got, want := computed.All(slot), kept.All(slot); !slices.Equal(got, want) {
				t.Fatalf("slot %d: %v, in the ranking %v", slot, got, want)
			}
		}
	})
}

func BenchmarkComputedFirst(b *testing.B) {
	c, err := consistenthash.Compute(1, equalMembers(20))
	if err != nil {
		b.Fatal(err)
	}
	var space [consistenthash.Depth]uint16
	slot := 0
	for b.Loop() {
		c.First(slot, &space)
		slot++
	}
}

// Of members of equal weight the draws decide, where they are far enough from one another.
func TestComputedOfEqualMembers(t *testing.T) {
	for _, members := range []int{1, 2, 5, 6, 7, 11, 12, 13, 40} {
		const slots = 20_000
		kept := rank(t, slots, 7, equalMembers(members))
		computed, err := consistenthash.Compute(7, equalMembers(members))
		if err != nil {
			t.Fatal(err)
		}
		for slot := range slots {
			var space [consistenthash.Depth]uint16
			if got, want := computed.First(slot, &space),
				kept.First(slot); !slices.Equal(got, want) {
				t.Fatalf("slot %d of %d members: %v first, in the ranking %v", slot, members, got,
					want)
			}
		}
	}
}
