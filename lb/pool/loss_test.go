package pool_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"sextant/lb/pool"
	"sextant/packet/flow"
)

// The share that is told is that of connections which are opened at candidates by one table and
// looked for by the other, one by one.
func TestLostIsWhatFlowsLose(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	before := begin(t, pool.Spec{Buckets: 257, Seed: 1, Candidates: 2}, up(9))
	gone := up(9)[1:]
	offer := pool.Spec{Buckets: 257, Seed: 1, Candidates: 2}
	resumed := func(spec pool.Spec, backends []pool.Backend) *pool.Generation {
		g, err := pool.Resume(spec, chains(before), backends, 0)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	ecmp, shadow, exact := offer, offer, offer
	ecmp.Policy, shadow.Policy, exact.Method = pool.ECMP, pool.Shadow, pool.Exact
	for _, c := range []struct {
		name     string
		after    *pool.Generation
		rehashed bool
		none     bool
	}{
		{"more buckets", begin(t, pool.Spec{Buckets: 1021, Seed: 1, Candidates: 2}, up(9)), false,
			false},
		{"fewer buckets", begin(t, pool.Spec{Buckets: 61, Seed: 1, Candidates: 2}, up(9)), false,
			false},
		{"another secret", begin(t, pool.Spec{Buckets: 257, Seed: 2, Candidates: 2}, up(9)), true,
			false},
		{"a backend is gone", next(t, before, gone), false, false},
		{"a backend drains", next(t, before, with(up(9), 1, pool.Draining)), false, true},
		{"ecmp", resumed(ecmp, up(9)), false, false},
		{"shadow", resumed(shadow, up(9)), false, false},
		{"exact", resumed(exact, up(9)), false, true},
		{"nothing", before, false, true},
	} {
		same := func(id uint16) uint16 {
			if c.name == "a backend is gone" && id == 1 {
				return 0
			}
			return id
		}
		got := pool.Lost(chains(before), chains(c.after), c.rehashed, same)
		const flows = 200_000
		lost := 0
		for range flows {
			hash := random.Uint64()
			owners := candidates(before.Chain(int(flow.Bucket(hash, 257))))
			owner := same(owners[random.IntN(len(owners))])
			if c.rehashed {
				hash = random.Uint64()
			}
			chain := c.after.Chain(int(flow.Bucket(hash, uint32(c.after.Buckets()))))
			if !contains(all(chain), owner) && (owner == 0 || chain.Shadow != owner) {
				lost++
			}
		}
		if want := float64(lost) / flows; math.Abs(got-want) > 0.01 || (got == 0) != c.none {
			t.Errorf("%s: %.4f, and %.4f of the flows", c.name, got, want)
		}
	}
}
