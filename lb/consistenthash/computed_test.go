package consistenthash_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/consistenthash"
)

// A Computed has the orders of the Ranking of the same members.
func TestComputedIsTheRanking(t *testing.T) {
	consistenthash.EachWay(t, rapid.MakeCheck(func(t *rapid.T) {
		slots, seed := rapid.IntRange(1, 40).Draw(t, "slots"), rapid.Uint64().Draw(t, "seed")
		kept, computed := sameFirst(t, slots, seed, drawMembers(t, "members"))
		for slot := range slots {
			if got, want := computed.All(slot), kept.All(slot); !slices.Equal(got, want) {
				t.Fatalf("slot %d: %v, in the ranking %v", slot, got, want)
			}
		}
	}))
}

// sameFirst sees that the best of the slots are those of the kept ranking.
func sameFirst(t rapid.TB, slots int, seed uint64, members []consistenthash.Member) (
	kept *consistenthash.Ranking, computed *consistenthash.Computed) {
	t.Helper()
	kept, err := consistenthash.Rank(slots, seed, members)
	if err != nil {
		t.Fatal(err)
	}
	if computed, err = consistenthash.Compute(seed, members); err != nil {
		t.Fatal(err)
	}
	var near consistenthash.Near
	for slot := range slots {
		var space [consistenthash.Depth]uint16
		want := kept.First(slot)
		if got := computed.First(slot, &space); !slices.Equal(got, want) {
			t.Fatalf("slot %d: %v first, in the ranking %v", slot, got, want)
		}
		if got := computed.FirstNear(slot, &near, space[:]); !slices.Equal(got, want) {
			t.Fatalf("slot %d: %v first with those near, in the ranking %v", slot, got, want)
		}
	}
	return kept, computed
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

func BenchmarkComputedFirstNear(b *testing.B) {
	for _, members := range []int{5, 10, 20, 80} {
		for kind, of := range map[string][]consistenthash.Member{"alike": equalMembers(members),
			"weighted": weighted(members, 1, 4)} {
			c, err := consistenthash.Compute(1, of)
			if err != nil {
				b.Fatal(err)
			}
			var space [consistenthash.Depth]uint16
			var near consistenthash.Near
			for _, bench := range []struct {
				name  string
				first func(slot int)
			}{{"one", func(slot int) { c.First(slot, &space) }},
				{"near", func(slot int) { c.FirstNear(slot, &near, space[:]) }}} {
				b.Run(fmt.Sprintf("%d/%s/%s", members, kind, bench.name), func(b *testing.B) {
					slot := 0
					for b.Loop() {
						bench.first(slot)
						slot++
					}
				})
			}
		}
	}
}

// weighted are members with weights of a range.
func weighted(n int, least, most uint32) []consistenthash.Member {
	members := equalMembers(n)
	random := rand.New(rand.NewPCG(uint64(n), 1))
	for i := range members {
		members[i].Weight = least + random.Uint32N(most-least+1)
	}
	return members
}

// Of members of equal weight the draws decide, and of others the scores, where they are far enough
// from one another.
func TestComputedNear(t *testing.T) {
	consistenthash.EachWay(t, computedNear)
}

func computedNear(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 40, 1023, 1024, 1025} {
		slots := 20_000
		if n > 100 {
			slots = 500
		}
		for kind, members := range map[string][]consistenthash.Member{"alike": equalMembers(n),
			"weighted": weighted(n, 1, 4), "far apart": weighted(n, 1, 1<<32-1)} {
			t.Run(fmt.Sprintf("%d %s", n, kind), func(t *testing.T) {
				t.Parallel()
				sameFirst(t, slots, 7, members)
			})
		}
	}
}

// Draws that are too close to decide are found in eight slots at once as in one.
func TestCloseDraws(t *testing.T) {
	consistenthash.EachWay(t, closeDraws)
}

func closeDraws(t *testing.T) {
	if consistenthash.OneByOne() {
		return
	}
	for _, members := range []int{1, 7, 12, 13, 100} {
		computed, err := consistenthash.Compute(7, equalMembers(members))
		if err != nil {
			t.Fatal(err)
		}
		var near consistenthash.Near
		found := 0
		for slot := range 8_000_000 / max(2, members) {
			alone, atOnce := computed.Close(slot, &near)
			if alone != atOnce {
				t.Fatalf("slot %d of %d members: close %v, at once %v", slot, members, alone,
					atOnce)
			}
			if alone {
				found++
			}
		}
		if members >= 12 && found == 0 {
			t.Errorf("no draws of %d members are close: nothing is shown", members)
		}
	}
}
