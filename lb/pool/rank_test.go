package pool_test

import (
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

func TestRank(t *testing.T) {
	far, full := pool.Weight{Path: 20, LeastPath: 10}, pool.Weight{Path: 10003, LeastPath: 3}
	farIdle, little := far, full
	farIdle.Load, farIdle.MeanLoad = 1, 2
	full.EmptyPath, little.EmptyPath, little.Path = 2000, 2000, 203
	tests := map[string]struct {
		weight pool.Weight
		before uint8
		want   uint8
	}{
		"nothing is known":             {pool.Weight{}, 0, 16},
		"twice as far":                 {far, 0, 18},
		"twice as far, half as loaded": {farIdle, 0, 16},
		"four times as loaded":         {pool.Weight{Load: 4, MeanLoad: 1}, 0, 20},
		"in another site, idle":        {pool.Weight{Remote: true, Load: 1, MeanLoad: 1e9}, 0, 33},
		"beyond all bounds":            {pool.Weight{Path: 1e300, LeastPath: 1}, 0, 31},
		"load is not known":            {pool.Weight{MeanLoad: 3}, 0, 16},
		"a little more than before":    {pool.Weight{Load: 1.28, MeanLoad: 1}, 16, 16},
		"more than before":             {pool.Weight{Load: 1.31, MeanLoad: 1}, 16, 17},
		"a little congestion":          {little, 0, 16},
		"a full queue":                 {full, 0, 21},
		"as before, now remote":        {pool.Weight{Remote: true}, 16, 48},
	}
	for name, test := range tests {
		if got := test.weight.Rank(test.before); got != test.want {
			t.Errorf("%s: rank %d, want %d", name, got, test.want)
		}
	}
}

// A rank never falls while a weight grows, all of the own site come before all others, and what
// trembles by a quarter of a rank does not move it.
func TestRankFollowsWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := pool.Weight{LeastPath: 1, MeanLoad: 1,
			Path: rapid.Float64Range(1, 1e6).Draw(t, "path"),
			Load: rapid.Float64Range(0.01, 1e4).Draw(t, "load")}
		rank, more := w.Rank(0), w
		more.Load *= 1 + rapid.Float64Range(0, 100).Draw(t, "more")
		if more.Rank(0) < rank {
			t.Errorf("%+v has rank %d, %+v rank %d", w, rank, more, more.Rank(0))
		}
		trembles := w
		trembles.Load *= rapid.Float64Range(0.92, 1.09).Draw(t, "trembles")
		if trembles.Rank(rank) != rank {
			t.Errorf("%+v moves rank %d to %d", trembles, rank, trembles.Rank(rank))
		}
		remote := pool.Weight{Remote: true, LeastPath: 1, Path: 1}
		if remote.Rank(0) <= rank {
			t.Errorf("a server of another site comes before %+v", w)
		}
	})
}
