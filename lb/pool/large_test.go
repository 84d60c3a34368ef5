package pool_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sextant/lb/consistenthash"
	"sextant/lb/pool"
)

// A service with a large table that is taken over by another process, between any changes and
// pauses, has the candidates of one that never stopped, and nobody who owned a bucket is lost who
// is in the other's chain.
func TestLargeTableRestarts(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 1))
	const many = 60
	spec := pool.Spec{Buckets: consistenthash.LargeTable + 3, Seed: seed, Candidates: 2,
		Drain: 5 * time.Second}
	backends := up(many)
	kept, now := begin(t, spec, backends), time.Duration(0)
	for step := range 6 {
		restarted, err := pool.Resume(spec, chains(kept), backends, now)
		if err != nil {
			t.Fatal(err)
		}
		sameOwners(t, step, kept, restarted)
		backends = slices.Clone(backends)
		which := &backends[random.IntN(many)]
		which.State, which.Weight = pool.State(random.IntN(3)), 1+random.Uint32N(2)
		now += time.Duration(random.IntN(4)) * 2 * time.Second
		if kept, err = kept.Next(backends, now); err != nil {
			t.Fatal(err)
		}
		if restarted, err = restarted.Next(backends, now); err != nil {
			t.Fatal(err)
		}
		sameOwners(t, step, kept, restarted)
	}
}

func sameOwners(t *testing.T, step int, kept, restarted *pool.Generation) {
	t.Helper()
	for bucket, was := range chains(kept) {
		is := restarted.Chain(bucket)
		if !slices.Equal(candidates(is), candidates(was)) {
			t.Fatalf("step %d, bucket %d: %v after a restart, %v without", step, bucket, is, was)
		}
		for _, place := range owners(kept, bucket) {
			if !contains(all(is), place.ID) {
				t.Fatalf("step %d, bucket %d: %d is lost: %v after a restart, %v without", step,
					bucket, place.ID, is, was)
			}
		}
	}
}
