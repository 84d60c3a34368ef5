package pool_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sextant/lb/pool"
)

// Where orders are computed, and where they are kept, candidates and previous owners are the same,
// whatever happens: a backend of weight 0, which is in no chain, makes the difference here.
// Reserves may differ, as a Ranking that is kept knows 8 to 12 of an order; at the beginning they
// do not.
func TestComputedOrdersAreTheKept(t *testing.T) {
	for _, n := range []int{40, 60} { // without an index, and with one
		buckets := (1<<19)/n - 1
		random := rand.New(rand.NewPCG(uint64(n), 1))
		backends := up(n)
		spec := pool.Spec{Buckets: buckets, Seed: seed, Candidates: 2, Drain: 5 * time.Second}
		idle := pool.Backend{ID: 999}
		computed, kept := begin(t, spec, backends),
			begin(t, spec, append(slices.Clone(backends), idle))
		if few, many := spec.Footprint(n), spec.Footprint(n+1); many < 2*few {
			t.Fatalf("%d and %d bytes: both keep the orders, or none does", few, many)
		}
		for b := range buckets {
			if computed.Chain(b) != kept.Chain(b) {
				t.Fatalf("%d backends, bucket %d: computed %v, kept %v", n, b, computed.Chain(b),
					kept.Chain(b))
			}
		}
		for step := range 25 {
			backends = slices.Clone(backends)
			which := &backends[random.IntN(n)]
			if slices.ContainsFunc(backends,
				func(b pool.Backend) bool { return b.State == pool.Down }) {
				for i := range backends {
					// who was down is back, draining
					backends[i].State = min(backends[i].State, pool.Draining)
				}
			} else {
				which.State = pool.State(random.IntN(3))
			}
			if step%5 == 4 {
				which.Weight = 1 + uint32(random.IntN(3))
			}
			now := time.Duration(step) * 2 * time.Second
			var err error
			if computed, err = computed.Next(backends, now); err != nil {
				t.Fatal(err)
			}
			if kept, err = kept.Next(append(slices.Clone(backends), idle), now); err != nil {
				t.Fatal(err)
			}
			for b := range buckets {
				if is, want := owners(computed, b), owners(kept, b); !slices.Equal(is, want) {
					t.Fatalf("%d backends, step %d, bucket %d: computed %v, kept %v", n, step, b,
						is, want)
				}
			}
		}
	}
}

// owners are the places of a bucket without reserves.
func owners(g *pool.Generation, bucket int) []pool.Place {
	return slices.DeleteFunc(g.Places(bucket),
		func(p pool.Place) bool { return p.Role == pool.Reserve })
}
