package consistenthash_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sextant/lb/consistenthash"
)

func rank(t testing.TB, slots int, seed uint64,
	members []consistenthash.Member) *consistenthash.Ranking {
	t.Helper()
	r, err := consistenthash.Rank(slots, seed, members)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Nodes that number members each in its own way have the same orders of their keys.
func TestRankingByKeys(t *testing.T) {
	const slots, members = 2000, 30
	weights := [members]uint32{}
	for i := range weights {
		weights[i] = 1 + uint32(i%3)
	}
	node := func(number func(i int) uint16) (all []consistenthash.Member, host [100]int) {
		for i, weight := range weights {
			id := number(i)
			all = append(all, consistenthash.Member{ID: id, Weight: weight, Key: keyOf(byte(i))})
			host[id] = i
		}
		return all, host
	}
	one, hostsOfOne := node(func(i int) uint16 { return uint16(i + 1) })
	other, hostsOfOther := node(func(i int) uint16 { return uint16(90 - (i*7)%members) })
	kept := rank(t, slots, 5, one)
	computed, err := consistenthash.Compute(5, other)
	if err != nil {
		t.Fatal(err)
	}
	firsts := [members]int{}
	for slot := range slots {
		here, there := kept.All(slot), computed.All(slot)
		for place := range here {
			if hostsOfOne[here[place]] != hostsOfOther[there[place]] {
				t.Fatalf("slot %d, place %d: member %d, at the other node %d", slot, place,
					hostsOfOne[here[place]], hostsOfOther[there[place]])
			}
		}
		firsts[hostsOfOne[here[0]]]++
	}
	for i, n := range firsts {
		share := slots * float64(weights[i]) / (2 * members)
		if math.Abs(float64(n)-share) > 5*math.Sqrt(share) {
			t.Errorf("member %d is first in %d slots, want some %.0f", i, n, share)
		}
	}
}

// Whatever the way, the same members give the same orders: this is what lets edges agree without
// talking.
func TestRankingForgetsThePast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots, seed := rapid.IntRange(1, 40).Draw(t, "slots"), rapid.Uint64().Draw(t, "seed")
		r, err := consistenthash.Rank(slots, seed, drawMembers(t, "first"))
		if err != nil {
			t.Fatal(err)
		}
		var members []consistenthash.Member
		for range rapid.IntRange(1, 5).Draw(t, "updates") {
			members = drawMembers(t, "members")
			before := r
			var changed []int32
			if r, changed, err = r.Update(members); err != nil {
				t.Fatal(err)
			}
			for slot := int32(0); changed != nil && slot < int32(slots); slot++ {
				if !slices.Contains(changed, slot) && !slices.Equal(before.First(int(slot)),
					r.First(int(slot))) {
					t.Fatalf("slot %d changed from %v to %v, untold", slot, before.First(int(slot)),
						r.First(int(slot)))
				}
			}
		}
		for _, m := range members {
			holding := r.Holding(m.ID)
			for slot := range slots {
				if slices.Contains(holding, int32(slot)) != slices.Contains(r.First(slot), m.ID) {
					t.Fatalf("slot %d has %v, but member %d is held by %v", slot, r.First(slot),
						m.ID, holding)
				}
			}
		}
		fresh, err := consistenthash.Rank(slots, seed, members)
		if err != nil {
			t.Fatal(err)
		}
		for slot := range slots {
			got, all := r.First(slot), fresh.All(slot)
			if diff := cmp.Diff(all[:len(got)], append([]uint16{}, got...)); diff != "" {
				t.Fatalf("slot %d (-all +first):\n%s", slot, diff)
			}
			if len(got) < min(8, len(all)) {
				t.Fatalf("slot %d: only %d of %d members are known", slot, len(got), len(all))
			}
		}
	})
}

// One member more or less leaves the order of all others as it is.
func TestRankingMovesOnlyWhatMust(t *testing.T) {
	members := equalMembers(1000)
	with, without := rank(t, 4096, 3, members), rank(t, 4096, 3, members[:999])
	for slot := range 4096 {
		order := slices.Clone(with.First(slot))
		order = slices.DeleteFunc(order, func(id uint16) bool { return id == members[999].ID })
		if !slices.Equal(order, without.First(slot)[:len(order)]) {
			t.Fatalf("slot %d: %v without member 1000, %v with it", slot, without.First(slot),
				with.First(slot))
		}
	}
}

// Members come first, and second, in proportion to their weights.
func TestRankingShares(t *testing.T) {
	members := []consistenthash.Member{{ID: 3, Weight: 1}, {ID: 4, Weight: 2}, {ID: 9, Weight: 5}}
	const slots = 200_000
	r := rank(t, slots, 5, members)
	first, second := map[uint16]int{}, map[uint16]int{}
	for slot := range slots {
		first[r.First(slot)[0]]++
		second[r.First(slot)[1]]++
	}
	for _, m := range members {
		want := float64(m.Weight) / 8 * slots
		if got := float64(first[m.ID]); math.Abs(got-want) > 5*math.Sqrt(want) {
			t.Errorf("member %d of weight %d comes first in %.0f slots, want about %.0f", m.ID,
				m.Weight, got, want)
		}
	}
	// The share of 3 in the second places: sum over the others of their share times 1 / (8 - their
	// weight).
	want := (2.0/8/6 + 5.0/8/3) * slots
	if got := float64(second[3]); math.Abs(got-want) > 5*math.Sqrt(want) {
		t.Errorf("member 3 comes second in %.0f slots, want about %.0f", got, want)
	}
}

// A ranking is the same in every release and on every machine.
func TestRankingIsFixed(t *testing.T) {
	r := rank(t, 3, 42, []consistenthash.Member{{ID: 1, Weight: 1}, {ID: 2, Weight: 3},
		{ID: 7, Weight: 1}, {ID: 65535, Weight: 2}})
	want := [][]uint16{{65535, 7, 1, 2}, {2, 65535, 7, 1}, {2, 7, 65535, 1}}
	for slot := range want {
		if got := r.All(slot); !slices.Equal(got, want[slot]) {
			t.Errorf("slot %d: %v, want %v", slot, got, want[slot])
		}
	}
}

func BenchmarkRank(b *testing.B) {
	for _, size := range []struct{ slots, members int }{
		{benchSlots, benchMembers}, {6_421, 100}, {64_007, 1_000}, {640_007, 10_000},
	} {
		b.Run(fmt.Sprintf("%dof%d", size.slots, size.members), func(b *testing.B) {
			for b.Loop() {
				rank(b, size.slots, 1, equalMembers(size.members))
			}
		})
	}
}

func BenchmarkRankingUpdate(b *testing.B) {
	for name, members := range map[string][]consistenthash.Member{
		"add one":    equalMembers(benchMembers + 1),
		"remove one": equalMembers(benchMembers - 1),
	} {
		b.Run(name, func(b *testing.B) {
			r := rank(b, benchSlots, 1, equalMembers(benchMembers))
			for b.Loop() {
				if _, _, err := r.Update(members); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
