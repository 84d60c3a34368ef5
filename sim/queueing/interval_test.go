package queueing_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"sextant/sim/queueing"
)

func TestMeanInterval(t *testing.T) {
	type replicates = []queueing.Replicate
	tests := []struct {
		name       string
		level      float64
		replicates replicates
		want       queueing.Interval
	}{
		// t(0.975, 4) = 2.77645, s = sqrt(2.5)
		{"equal counts", 0.95, replicates{{10, 1}, {10, 2}, {10, 3}, {10, 4}, {10, 5}},
			queueing.Interval{Mean: 3, HalfWidth: 2.77645 * math.Sqrt(2.5/5)}},
		// t(0.95, 1) = 6.31375
		{"two replicates", 0.9, replicates{{1, 1}, {1, 3}},
			queueing.Interval{Mean: 2, HalfWidth: 6.31375}},
		// deviations 3 * -1.5 and 1 * 4.5; t(0.975, 1) = 12.70620
		{"a replicate weighs its requests", 0.95, replicates{{3, 2}, {1, 8}},
			queueing.Interval{Mean: 3.5, HalfWidth: 12.70620 * math.Sqrt(2*(4.5*4.5+4.5*4.5)) / 4}},
		{"a replicate without requests says nothing", 0.9, replicates{{1, 1}, {0, 99}, {1, 3}},
			queueing.Interval{Mean: 2, HalfWidth: 6.31375}},
		{"no spread", 0.95, replicates{{5, 7}, {5, 7}, {9, 7}},
			queueing.Interval{Mean: 7, HalfWidth: 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := queueing.MeanInterval(test.level, test.replicates)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Mean-test.want.Mean) > 1e-9 ||
				math.Abs(got.HalfWidth-test.want.HalfWidth) > 1e-3 {
				t.Errorf("MeanInterval = %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestMeanIntervalRefuses(t *testing.T) {
	two := []queueing.Replicate{{Count: 1, Mean: 1}, {Count: 1, Mean: 2}}
	tests := []struct {
		name       string
		level      float64
		replicates []queueing.Replicate
	}{
		{"level 0", 0, two},
		{"level 1", 1, two},
		{"level is not a number", math.NaN(), two},
		{"nothing", 0.95, nil},
		{"one replicate", 0.95, two[:1]},
		{"one replicate with requests", 0.95, []queueing.Replicate{{Count: 1, Mean: 1},
			{Count: 0, Mean: 2}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, err := queueing.MeanInterval(test.level, test.replicates); err == nil {
				t.Errorf("MeanInterval = %+v, want an error", got)
			}
		})
	}
}

func TestIntervalContains(t *testing.T) {
	interval := queueing.Interval{Mean: 10, HalfWidth: 2}
	for x, want := range map[float64]bool{7.9: false, 8: true, 10: true, 12: true, 12.1: false} {
		if got := interval.Contains(x); got != want {
			t.Errorf("%+v contains %g: %v, want %v", interval, x, got, want)
		}
	}
}

// TestMeanIntervalCoverage draws replicates whose true mean is known: 95 % of
// the intervals at level 0.95 must hold it.
func TestMeanIntervalCoverage(t *testing.T) {
	const trials, servers, truth = 4000, 12, 44.3
	random := rand.New(rand.NewPCG(1, 2))
	hits := 0
	for range trials {
		replicates := make([]queueing.Replicate, servers)
		for i := range replicates {
			replicates[i] = queueing.Replicate{
				Count: uint64(3400 + random.IntN(200)),
				Mean:  truth + 10*random.NormFloat64(),
			}
		}
		interval, err := queueing.MeanInterval(0.95, replicates)
		if err != nil {
			t.Fatal(err)
		}
		if interval.Contains(truth) {
			hits++
		}
	}
	if share := float64(hits) / trials; math.Abs(share-0.95) > 0.01 {
		t.Errorf("%.1f %% of the intervals hold the true mean, want 95 %%", 100*share)
	}
}
