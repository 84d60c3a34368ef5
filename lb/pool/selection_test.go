package pool_test

import (
	"math"
	"testing"

	"sextant/lb/pool"
)

const buckets = 65537

// shares returns how many buckets each backend is the candidate of, at a place.
func shares(g *pool.Generation, place int) map[uint16]int {
	n := map[uint16]int{}
	for _, c := range chains(g) {
		n[c.IDs[place]]++
	}
	return n
}

// First candidates are shared exactly, by weight, whatever the second ones are.
func TestFirstCandidatesAreExact(t *testing.T) {
	weights := []uint32{1, 2, 4, 8, 100}
	backends := make([]pool.Backend, len(weights))
	for i, w := range weights {
		backends[i] = pool.Backend{ID: uint16(i + 1), Weight: w}
	}
	got := shares(first(t, buckets, 2, backends), 0)
	for i, w := range weights {
		exact := float64(buckets) * float64(w) / 115
		if n := float64(got[uint16(i+1)]); math.Abs(n-exact) >= 1 {
			t.Errorf("backend of weight %d is first candidate of %v buckets, want %.1f", w, n,
				exact)
		}
	}
}

// The pairs of first and second candidate are spread almost evenly over all ordered pairs: the
// chi-square statistic of the pairs stays within 5 standard deviations above its mean. Then the
// load that a backend refuses, or leaves when it fails, goes to all others alike.
func TestPairsAreSpread(t *testing.T) {
	for _, n := range []int{2, 3, 5, 12, 40} {
		pairs := map[[2]uint16]float64{}
		for _, c := range chains(first(t, buckets, 2, up(n))) {
			pairs[[2]uint16{c.IDs[0], c.IDs[1]}]++
		}
		if len(pairs) != n*(n-1) {
			t.Errorf("%d backends: %d pairs occur, want %d", n, len(pairs), n*(n-1))
		}
		expected, chiSquare := float64(buckets)/float64(n*(n-1)), 0.0
		for _, got := range pairs {
			chiSquare += (got - expected) * (got - expected) / expected
		}
		freedom := float64(n*(n-1) - 1)
		if deviation := (chiSquare - freedom) / math.Sqrt(2*freedom); deviation > 5 {
			t.Errorf("%d backends: chi-square of the pairs is %.1f standard deviations above its "+
				"mean", n, deviation)
		}
	}
}

// Second candidates are shared nearly as exactly as first ones: only where both tables name the
// same backend, in 1 of 1,000 buckets, chance decides.
func TestSecondCandidatesAreNearlyExact(t *testing.T) {
	const n = 1000
	for id, got := range shares(first(t, buckets, 2, up(n)), 1) {
		if got < buckets/n-5 || got > buckets/n+6 {
			t.Errorf("backend %d is second candidate of %d buckets, want 65 or 66 and few more "+
				"or less", id, got)
		}
	}
}

// Later places are spread evenly too, up to as many candidates as a chain holds.
func TestLaterPlacesAreSpread(t *testing.T) {
	for _, n := range []int{6, 7, 20} {
		g := first(t, buckets, pool.MaxChain, up(n))
		for place := range pool.MaxChain {
			for id, got := range shares(g, place) {
				// 5 standard deviations of a binomial distribution.
				p := 1 / float64(n)
				if d := (float64(got) - buckets*p) / math.Sqrt(buckets*p*(1-p)); math.Abs(d) > 5 {
					t.Errorf("%d backends, place %d: backend %d in %d buckets, %.1f standard "+
						"deviations off", n, place, id, got, d)
				}
			}
		}
	}
}

// Behind a backend that has nearly all the weight, the others share the second place by their
// weights.
func TestSecondPlaceBehindAGiant(t *testing.T) {
	g := first(t, buckets, 2, []pool.Backend{{ID: 1, Weight: 10_000}, {ID: 2, Weight: 30},
		{ID: 3, Weight: 10}})
	second := map[uint16]int{}
	for _, c := range chains(g) {
		if c.IDs[0] == 1 {
			second[c.IDs[1]]++
		}
	}
	if ratio := float64(second[2]) / float64(second[3]); ratio < 2.8 || ratio > 3.2 {
		t.Errorf("second candidates behind backend 1: %v, want 3 to 1", second)
	}
}

// A change of one backend among many touches few buckets: those where it is or becomes a candidate,
// and nothing else.
func TestDisruption(t *testing.T) {
	const n = 100
	before := first(t, buckets, 2, up(n))
	for name, backends := range map[string][]pool.Backend{
		"drain": with(up(n), 50, pool.Draining), "fail": with(up(n), 50, pool.Down),
		"remove": up(n - 1), "add": up(n + 1),
	} {
		t.Run(name, func(t *testing.T) {
			after, touched := next(t, before, backends), 0
			for bucket, was := range chains(before) {
				if after.Chain(bucket) != was {
					touched++
				}
			}
			// Two places, each of which concerns 1 in 100 buckets; the spare table adds less than a
			// tenth of that.
			if limit := buckets * 22 / 1000; touched > limit {
				t.Errorf("%d of %d buckets touched, want at most %d", touched, buckets, limit)
			}
		})
	}
}
