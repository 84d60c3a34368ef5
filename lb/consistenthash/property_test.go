package consistenthash_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sextant/lb/consistenthash"
)

// drawMembers draws a pool in which ids overlap those of other draws, weights are equal, small, 0
// or far apart, and some members have keys.
func drawMembers(t *rapid.T, label string) []consistenthash.Member {
	weights := rapid.SampledFrom([]*rapid.Generator[uint32]{
		rapid.Just(uint32(1)), rapid.Uint32Range(0, 5), rapid.Uint32(),
	}).Draw(t, label+" kind of weights")
	key := rapid.SampledFrom([]uint64{0, 0, 0, keyOf(1), keyOf(2), keyOf(3)})
	member := rapid.Custom(func(t *rapid.T) consistenthash.Member {
		return consistenthash.Member{ID: rapid.Uint16Range(1, 60).Draw(t, "id"),
			Weight: weights.Draw(t, "weight"), Key: key.Draw(t, "key")}
	})
	return rapid.SliceOfNDistinct(member, 0, 40,
		func(m consistenthash.Member) uint16 { return m.ID }).Draw(t, label)
}

// keyOf is the key of one of many addresses that differ in few bits.
func keyOf(host byte) uint64 { return consistenthash.KeyOf([16]byte{0xfd, 15: host}) }

// drawTable draws a table with a history, or with owners in no proportion.
func drawTable(t *rapid.T) *consistenthash.Table {
	if rapid.Bool().Draw(t, "resumed") {
		ids := rapid.SliceOfN(rapid.Uint16Range(0, 60), 1, 300).Draw(t, "owners")
		table, err := consistenthash.Resume(ids, rapid.Uint64().Draw(t, "seed"))
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	table, err := consistenthash.Build(rapid.IntRange(1, 300).Draw(t, "slots"),
		rapid.Uint64().Draw(t, "seed"), drawMembers(t, "first members"))
	if err != nil {
		t.Fatal(err)
	}
	for range rapid.IntRange(0, 3).Draw(t, "updates") {
		table = mustUpdate(t, table, drawMembers(t, "members in between"))
	}
	return table
}

func mustUpdate(t *rapid.T, table *consistenthash.Table,
	members []consistenthash.Member) *consistenthash.Table {
	next, _, err := table.Update(members)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func totalWeight(members []consistenthash.Member) (total uint64) {
	for _, m := range members {
		total += uint64(m.Weight)
	}
	return total
}

// Each member owns floor or ceil of its exact share, whatever came before, and nobody else owns
// anything.
func TestQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := drawMembers(t, "members")
		table := mustUpdate(t, drawTable(t), members)
		got, total := counts(table), totalWeight(members)
		for _, m := range members {
			if total == 0 {
				break
			}
			share := uint64(table.Slots()) * uint64(m.Weight)
			if n := uint64(got[m.ID]); n != share/total && n != (share+total-1)/total {
				t.Errorf("member %d of weight %d of %d owns %d of %d slots", m.ID, m.Weight, total,
					n, table.Slots())
			}
			delete(got, m.ID)
		}
		if total != 0 && len(got) > 0 {
			t.Errorf("owners that are not members: %v", got)
		}
		if total == 0 && got[0] != table.Slots() {
			t.Errorf("without members, somebody owns slots: %v", got)
		}
	})
}

// leastMoves returns how many slots must move at least to bring the counts into the quota. Counted
// independently of the implementation: all members are at their floor at first, then each slot that
// is left over goes where it costs least.
func leastMoves(slots int, before map[uint16]int, members []consistenthash.Member) int {
	total := totalWeight(members)
	if total == 0 {
		return slots - before[0]
	}
	moves, left, free := 0, slots, 0
	for _, m := range members {
		share := uint64(slots) * uint64(m.Weight)
		floor := int(share / total)
		left -= floor
		moves += max(0, floor-before[m.ID])
		if share%total != 0 && before[m.ID] > floor {
			free++
		}
	}
	return moves + max(0, left-free)
}

// An update moves the fewest slots that the quotas allow, from losers to gainers only: no slot
// moves without need.
func TestMinimalDisruption(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, members := drawTable(t), drawMembers(t, "members")
		after := mustUpdate(t, before, members)
		had, has := counts(before), counts(after)
		gained := 0
		for id, n := range has {
			gained += max(0, n-had[id])
		}
		if got := moved(before, after); got != gained {
			t.Errorf("%d slots moved, but members gained %d", got, gained)
		}
		if want := leastMoves(before.Slots(), had, members); gained != want {
			t.Errorf("%d slots moved, where %d would do", gained, want)
		}
	})
}

// The order of the members does not matter, and the same input gives the same table.
func TestDeterminism(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, members := drawTable(t), drawMembers(t, "members")
		want := owners(mustUpdate(t, before, members))
		if diff := cmp.Diff(want, owners(mustUpdate(t, before,
			rapid.Permutation(members).Draw(t, "permutation")))); diff != "" {
			t.Errorf("another order gives another table (-want +got):\n%s", diff)
		}
	})
}

// Build is an update of the empty table.
func TestBuildIsUpdateOfEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots, seed, members := rapid.IntRange(1, 300).Draw(t, "slots"),
			rapid.Uint64().Draw(t, "seed"), drawMembers(t, "members")
		built, err := consistenthash.Build(slots, seed, members)
		if err != nil {
			t.Fatal(err)
		}
		empty, err := consistenthash.Build(slots, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(owners(built), owners(mustUpdate(t, empty, members))); diff != "" {
			t.Error(diff)
		}
	})
}

// One member added, removed or re-weighted among equals: only slots to or from it move, none
// between the others. With quotas that may be rounded either way this holds too, since the rounding
// follows the present counts.
func TestOneChangeTouchesOneMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 40).Draw(t, "members")
		members := equalMembers(n)
		before, err := consistenthash.Build(rapid.IntRange(n, 2000).Draw(t, "slots"),
			rapid.Uint64().Draw(t, "seed"), members)
		if err != nil {
			t.Fatal(err)
		}
		changed := uint16(rapid.IntRange(1, n).Draw(t, "changed"))
		after := slices.Clone(members)
		switch rapid.SampledFrom([]string{"add", "remove", "heavier", "lighter"}).Draw(t,
			"change") {
		case "add":
			changed = uint16(n + 1)
			after = append(after, consistenthash.Member{ID: changed, Weight: 1})
		case "remove":
			after = slices.Delete(after, int(changed)-1, int(changed))
		case "heavier":
			after[changed-1].Weight = 2
		case "lighter":
			for i := range after {
				after[i].Weight = 2
			}
			after[changed-1].Weight = 1
		}
		next := mustUpdate(t, before, after)
		for slot := range before.Slots() {
			was, is := before.Owner(slot), next.Owner(slot)
			if was != is && was != changed && is != changed {
				t.Fatalf("slot %d moved from %d to %d, but only %d changed", slot, was, is, changed)
			}
		}
	})
}

// Who resumes from a table's owners gets the same tables from then on: edges still agree when one
// of them has started again.
func TestResumedTableFollowsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		table, err := consistenthash.Build(rapid.IntRange(1, 300).Draw(t, "slots"), seed,
			drawMembers(t, "first members"))
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 3).Draw(t, "updates before") {
			table = mustUpdate(t, table, drawMembers(t, "members before"))
		}
		resumed, err := consistenthash.Resume(owners(table), seed)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "updates after") {
			members := drawMembers(t, "members after")
			table, resumed = mustUpdate(t, table, members), mustUpdate(t, resumed, members)
			if diff := cmp.Diff(owners(table), owners(resumed)); diff != "" {
				t.Fatalf("owners (-table +resumed):\n%s", diff)
			}
		}
	})
}
