package pool_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sextant/lb/pool"
)

// TestBeginIsWhatFollowsNothing: the first generation is the one that follows empty chains bucket
// by bucket, and goes on as that does.
func TestBeginIsWhatFollowsNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 5))
	methods := []pool.Method{pool.Rendezvous, pool.Exact, pool.Modulo}
	for round := range 200 {
		spec := pool.Spec{Buckets: 61 + r.IntN(9), Seed: r.Uint64(),
			Policy: pool.Policy(r.IntN(3)), Method: methods[r.IntN(len(methods))],
			Candidates: 1 + r.IntN(3), Depth: 3 + r.IntN(4), Drain: time.Minute}
		if spec.Policy == pool.Offer && spec.Method == pool.Modulo {
			continue
		}
		var backends []pool.Backend
		for i := range r.IntN(12) {
			backends = append(backends, pool.Backend{ID: uint16(1 + i), Weight: uint32(r.IntN(3)),
				State: pool.State(r.IntN(4)), Site: uint16(r.IntN(2))})
		}
		g := begin(t, spec, backends)
		other, err := pool.Resume(spec, make([]pool.Chain, spec.Buckets), backends, 0)
		if err != nil {
			t.Fatal(err)
		}
		for step := range 5 {
			if !slices.Equal(chains(g), chains(other)) {
				t.Fatalf("round %d: after %d changes the chains of %+v differ", round, step, spec)
			}
			if len(backends) == 0 {
				break
			}
			backends = changedAtRandom(r, backends)
			now := time.Duration(step+1) * 20 * time.Second
			if g, err = g.Next(backends, now); err != nil {
				t.Fatal(err)
			}
			if other, err = other.Next(backends, now); err != nil {
				t.Fatal(err)
			}
		}
	}
}
