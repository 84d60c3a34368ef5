package consistenthash_test

import (
	"math"
	"testing"

	"sextant/lb/consistenthash"
)

// deviation returns how many standard deviations the chi-square statistic of the observed numbers
// is off its mean, if all should be about equal.
func deviation(observed []int) float64 {
	total := 0
	for _, n := range observed {
		total += n
	}
	expected := float64(total) / float64(len(observed))
	chiSquare := 0.0
	for _, n := range observed {
		chiSquare += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	freedom := float64(len(observed) - 1)
	return (chiSquare - freedom) / math.Sqrt(2*freedom)
}

// The slots of a removed member go to all others in equal parts, and lie all over the table.
func TestLostSlotsSpread(t *testing.T) {
	const n, slots, parts = 11, 110_000, 20
	before := build(t, slots, 5, equalMembers(n))
	after := update(t, before, equalMembers(n-1))
	heirs, places := make([]int, n-1), make([]int, parts)
	for slot := range slots {
		if before.Owner(slot) == n {
			heirs[after.Owner(slot)-1]++
			places[slot*parts/slots]++
		}
	}
	for i, got := range heirs {
		if got != slots/n/(n-1) {
			t.Errorf("member %d inherits %d slots, want %d", i+1, got, slots/n/(n-1))
		}
	}
	if d := deviation(places); d > 5 {
		t.Errorf("places of the moved slots: %v (%.1f standard deviations off)", places, d)
	}
}

// The slots that an added member takes lie all over the table, and who owns the next slot does not
// matter.
func TestTakenSlotsSpread(t *testing.T) {
	const n, slots, parts = 10, 110_000, 20
	before := build(t, slots, 5, equalMembers(n))
	after := update(t, before, equalMembers(n+1))
	places, neighbours := make([]int, parts), make([]int, n)
	for slot := range slots - 1 {
		if after.Owner(slot) == n+1 {
			places[slot*parts/slots]++
			neighbours[before.Owner(slot+1)-1]++
		}
	}
	if d := deviation(places); d > 5 {
		t.Errorf("places of the moved slots: %v (%.1f standard deviations off)", places, d)
	}
	if d := deviation(neighbours); d > 5 {
		t.Errorf("owners of the slots after the moved ones: %v (%.1f standard deviations off)",
			neighbours, d)
	}
}

// agreement returns how many standard deviations the number of slots with the same owner in both
// tables is off the number that chance gives for n equal members.
func agreement(a, b *consistenthash.Table, n int) float64 {
	same := float64(a.Slots() - moved(a, b))
	p := 1 / float64(n)
	return (same - float64(a.Slots())*p) / math.Sqrt(float64(a.Slots())*p*(1-p))
}

// Tables of different seeds are independent, of adjacent seeds too.
func TestSeedsAreIndependent(t *testing.T) {
	const n = 10
	first := build(t, 65537, 0, equalMembers(n))
	for _, seed := range []uint64{1, 2, 1 << 63, math.MaxUint64} {
		if d := agreement(first, build(t, 65537, seed, equalMembers(n)), n); math.Abs(d) > 5 {
			t.Errorf("seeds 0 and %d: agreement is %.1f standard deviations off chance", seed, d)
		}
	}
}

// One update after the other does not hit the same slots again and again: a member that comes and
// goes takes others each time.
func TestUpdatesAreIndependent(t *testing.T) {
	const n, slots, times = 10, 11_000, 40
	table := build(t, slots, 5, equalMembers(n))
	hits := make([]int, slots)
	for range times {
		next := update(t, table, equalMembers(n+1))
		for slot := range slots {
			if next.Owner(slot) != table.Owner(slot) {
				hits[slot]++
			}
		}
		table = update(t, next, equalMembers(n))
	}
	if d := deviation(hits); math.Abs(d) > 8 {
		t.Errorf("moves per slot are %.1f standard deviations off an even spread", d)
	}
}

// Members of equal weight get the larger share equally often over many tables: no id is favoured.
func TestRoundingFavoursNobody(t *testing.T) {
	const n, slots, tables = 10, 105, 2000
	larger := make([]int, n)
	for seed := range uint64(tables) {
		for id, owned := range counts(build(t, slots, seed, equalMembers(n))) {
			larger[id-1] += owned - slots/n
		}
	}
	if d := deviation(larger); d > 5 {
		t.Errorf("times that each member was rounded up: %v (%.1f standard deviations off)", larger,
			d)
	}
}

// Probes of a slot name each member in proportion to its share, and do not depend on who owns the
// slot.
func TestProbe(t *testing.T) {
	members := []consistenthash.Member{{ID: 1, Weight: 1}, {ID: 2, Weight: 2}, {ID: 3, Weight: 5}}
	table := build(t, 8000, 9, members)
	var hits [3][3]int // by owner, by probe
	for slot := range table.Slots() {
		for attempt := range 10 {
			hits[table.Owner(slot)-1][table.Probe(slot, attempt)-1]++
		}
	}
	for owner, row := range hits {
		for probed, got := range row {
			weights := float64(members[owner].Weight) * float64(members[probed].Weight)
			if want := 10_000 * weights / 8; math.Abs(float64(got)/want-1) > 0.06 {
				t.Errorf("slots of %d: probes name %d %d times, want about %.0f", owner+1, probed+1,
					got, want)
			}
		}
	}
}
