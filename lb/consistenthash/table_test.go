package consistenthash_test

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"testing"

	"sextant/lb/consistenthash"
)

// equalMembers returns n members of weight 1, with ids from 1.
func equalMembers(n int) []consistenthash.Member {
	members := make([]consistenthash.Member, n)
	for i := range members {
		members[i] = consistenthash.Member{ID: uint16(i + 1), Weight: 1}
	}
	return members
}

func build(t testing.TB, slots int, seed uint64,
	members []consistenthash.Member) *consistenthash.Table {
	t.Helper()
	table, err := consistenthash.Build(slots, seed, members)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func update(t testing.TB, table *consistenthash.Table,
	members []consistenthash.Member) *consistenthash.Table {
	t.Helper()
	next, _, err := table.Update(members)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// owners returns the owners of all slots.
func owners(table *consistenthash.Table) []uint16 {
	ids := make([]uint16, table.Slots())
	for slot := range ids {
		ids[slot] = table.Owner(slot)
	}
	return ids
}

// counts returns how many slots each id owns.
func counts(table *consistenthash.Table) map[uint16]int {
	var owned [1 << 16]int
	for slot := range table.Slots() {
		owned[table.Owner(slot)]++
	}
	n := map[uint16]int{}
	for id, slots := range owned {
		if slots > 0 {
			n[uint16(id)] = slots
		}
	}
	return n
}

// moved returns how many slots have another owner.
func moved(before, after *consistenthash.Table) int {
	n := 0
	for slot := range before.Slots() {
		if before.Owner(slot) != after.Owner(slot) {
			n++
		}
	}
	return n
}

func TestWeightedShares(t *testing.T) {
	members := []consistenthash.Member{{ID: 1, Weight: 2}, {ID: 2, Weight: 13},
		{ID: 3, Weight: 111}, {ID: 4, Weight: 10}}
	got := counts(build(t, 1021, 7, members))
	// 1021 * weight / 136 is 15.01, 97.6, 833.3 and 75.07. The largest fraction gets the slot that
	// is left over.
	for id, want := range map[uint16]int{1: 15, 2: 98, 3: 833, 4: 75} {
		if got[id] != want {
			t.Errorf("member %d owns %d slots, want %d", id, got[id], want)
		}
	}
}

func TestSpreadWithinOnePercent(t *testing.T) {
	const slots, backends = 65537, 1000
	for id, n := range counts(build(t, slots, 1, equalMembers(backends))) {
		if deviation := math.Abs(float64(n)*backends/slots - 1); deviation > 0.01 {
			t.Errorf("member %d owns %d slots, %.2f %% off its share", id, n, 100*deviation)
		}
	}
}

func TestBoundaries(t *testing.T) {
	tests := map[string]struct {
		slots   int
		members []consistenthash.Member
		want    map[uint16]int
	}{
		"no members": {5, nil, map[uint16]int{0: 5}},
		"no weights": {5, []consistenthash.Member{{ID: 1}, {ID: 2}},
			map[uint16]int{0: 5}},
		"weight 0": {5, []consistenthash.Member{{ID: 1}, {ID: 2, Weight: 3}},
			map[uint16]int{2: 5}},
		"highest id": {5, []consistenthash.Member{{ID: math.MaxUint16, Weight: 1}},
			map[uint16]int{math.MaxUint16: 5}},
		"one slot": {1, []consistenthash.Member{{ID: 1, Weight: 1}, {ID: 2, Weight: 2}},
			map[uint16]int{2: 1}},
		"as many as slots": {3, equalMembers(3), map[uint16]int{1: 1, 2: 1, 3: 1}},
		"highest weights": {4, []consistenthash.Member{{ID: 1, Weight: math.MaxUint32},
			{ID: 2, Weight: math.MaxUint32}}, map[uint16]int{1: 2, 2: 2}},
		"a weight that weighs": {5, []consistenthash.Member{{ID: 1, Weight: 1},
			{ID: 2, Weight: math.MaxUint32}}, map[uint16]int{2: 5}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := counts(build(t, test.slots, 3, test.members))
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestMoreMembersThanSlots(t *testing.T) {
	got := counts(build(t, 7, 3, equalMembers(20)))
	if len(got) != 7 || got[0] != 0 {
		t.Errorf("got %v, want 7 members with one slot each", got)
	}
}

func TestLargestTable(t *testing.T) {
	members := []consistenthash.Member{{ID: 1, Weight: math.MaxUint32},
		{ID: 2, Weight: math.MaxUint32 / 3}}
	got := counts(build(t, consistenthash.MaxSlots, 3, members))
	if want := consistenthash.MaxSlots * 3 / 4; got[1] < want || got[1] > want+1 {
		t.Errorf("member 1 owns %d slots, want %d or 1 more", got[1], want)
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]struct {
		slots   int
		members []consistenthash.Member
		want    string
	}{
		"no slots":       {0, nil, "0 slots"},
		"negative slots": {-1, nil, "-1 slots"},
		"too many slots": {consistenthash.MaxSlots + 1, nil, "choose 1 to 16777216"},
		"id 0":           {5, []consistenthash.Member{{ID: 1, Weight: 1}, {Weight: 1}}, "id 0"},
		"id twice": {5, []consistenthash.Member{{ID: 7, Weight: 1}, {ID: 3}, {ID: 7}},
			"id 7 is there twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := consistenthash.Build(test.slots, 1, test.members)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}

// The members that a caller passes stay as they are.
func TestMembersAreNotChanged(t *testing.T) {
	members := []consistenthash.Member{{ID: 3, Weight: 1}, {ID: 1}, {ID: 2, Weight: 5}}
	before := slices.Clone(members)
	build(t, 5, 1, members)
	if !slices.Equal(members, before) {
		t.Errorf("members are now %v, were %v", members, before)
	}
}

func TestUpdateWithoutChangeReturnsTheTable(t *testing.T) {
	table := build(t, 1021, 1, equalMembers(10))
	if update(t, table, equalMembers(10)) != table {
		t.Error("a new table was made")
	}
	doubled := equalMembers(10)
	for i := range doubled {
		doubled[i].Weight = 2
	}
	if update(t, table, doubled) != table {
		t.Error("a new table was made for the same shares in other numbers")
	}
}

func TestOldTableStays(t *testing.T) {
	table := build(t, 1021, 1, equalMembers(10))
	before := owners(table)
	update(t, table, equalMembers(5))
	if fmt.Sprint(before) != fmt.Sprint(owners(table)) {
		t.Error("an update changed the table that it started from")
	}
}

// Everything that has slots returns them when it goes, and gets its share when it comes back.
func TestEmptyAndRefill(t *testing.T) {
	table := build(t, 1021, 1, equalMembers(10))
	empty := update(t, table, nil)
	if n := counts(empty)[0]; n != 1021 {
		t.Fatalf("%d slots of 1021 belong to nobody", n)
	}
	for id, n := range counts(update(t, empty, equalMembers(10))) {
		if n < 102 || n > 103 {
			t.Errorf("member %d owns %d slots, want 102 or 103", id, n)
		}
	}
}

// A table that is made of another one's owners goes on like it.
func TestResume(t *testing.T) {
	table := update(t, build(t, 1021, 1, equalMembers(10)), equalMembers(9))
	resumed, err := consistenthash.Resume(owners(table), 1)
	if err != nil {
		t.Fatal(err)
	}
	if update(t, resumed, equalMembers(9)) != resumed {
		t.Error("slots move although nothing changed")
	}
	if got, want := moved(resumed, update(t, resumed, equalMembers(10))),
		moved(table, update(t, table, equalMembers(10))); got != want {
		t.Errorf("an added member moves %d slots, want %d", got, want)
	}
	for _, ids := range [][]uint16{nil, make([]uint16, consistenthash.MaxSlots+1)} {
		if _, err := consistenthash.Resume(ids, 1); err == nil || !strings.Contains(err.Error(),
			"choose 1 to") {
			t.Errorf("%d slots: error %v", len(ids), err)
		}
	}
}

// The caller's slice is copied.
func TestResumeCopies(t *testing.T) {
	ids := []uint16{1, 2, 3}
	table, err := consistenthash.Resume(ids, 1)
	if err != nil {
		t.Fatal(err)
	}
	if ids[0] = 9; table.Owner(0) != 1 {
		t.Error("table changed with the caller's slice")
	}
}

// A table does not depend on the release or the machine that makes it: edges may run different
// ones.
func TestTableGolden(t *testing.T) {
	table := build(t, 65537, 42, equalMembers(100))
	table = update(t, table, equalMembers(99))
	hash := fnv.New64a()
	for _, id := range owners(table) {
		hash.Write([]byte{byte(id), byte(id >> 8)})
	}
	if got, want := hash.Sum64(), uint64(0x1ba7a2e16b28896e); got != want {
		t.Errorf("FNV-1a of the owners is %#x, want %#x", got, want)
	}
}
