package pool_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

// Looking only at the buckets that a change may concern gives the same chains as looking at all;
// and where the chains differ from those before, Differing says so.
func TestSomeBucketsAreEnough(t *testing.T) { checkBothOrders(t, someBucketsAreEnough) }

func someBucketsAreEnough(t *rapid.T) {
	const buckets = 300
	spec := pool.Spec{
		Buckets: buckets, Seed: rapid.Uint64().Draw(t, "seed"),
		Candidates: rapid.IntRange(1, 3).Draw(t, "candidates"),
		Method: rapid.SampledFrom([]pool.Method{pool.Rendezvous, pool.Exact}).Draw(t,
			"method"),
		Drain: time.Duration(rapid.SampledFrom([]int{0, 0, 3}).Draw(t,
			"drain")) * time.Second,
	}
	backends := up(rapid.SampledFrom([]int{3, 14, 40}).Draw(t, "backends"))
	lastSite := rapid.SampledFrom([]uint16{0, 0, 1, 2, 5}).Draw(t, "last site")
	site := rapid.Uint16Range(0, lastSite)
	for i := range backends {
		backends[i].Site = site.Draw(t, "site")
	}
	some, err := pool.New(spec, backends, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := pool.Whole(some)
	now, earlier := time.Duration(0), some
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		now += time.Duration(rapid.SampledFrom([]int{0, 0, 1, 20}).Draw(t,
			"pause")) * time.Second
		backends = slices.Clone(backends)
		for range rapid.SampledFrom([]int{0, 1, 1, 1, 2, 12}).Draw(t, "changes") {
			switch i := rapid.IntRange(0, len(backends)).Draw(t, "which"); {
			case i == len(backends):
				backends = append(backends,
					pool.Backend{ID: uint16(100 + i + int(now/time.Second)), Weight: 1,
						Site: site.Draw(t, "site")})
			case rapid.IntRange(0, 9).Draw(t, "leaves") == 0:
				backends = slices.Delete(backends, i, i+1)
			case rapid.IntRange(0, 9).Draw(t, "site goes") == 0: // or all that are left come
				state := rapid.SampledFrom([]pool.State{pool.Up, pool.Down}).Draw(t, "state")
				for j := range backends {
					if backends[j].Site == backends[i].Site {
						backends[j].State = state
					}
				}
			default:
				backends[i].State = rapid.SampledFrom([]pool.State{pool.Up, pool.Up,
					pool.Draining, pool.Down}).Draw(t, "state")
				backends[i].Suspect = rapid.IntRange(0, 4).Draw(t, "suspect") == 0
				backends[i].Weight = rapid.SampledFrom([]uint32{1, 1, 1, 2, 0}).Draw(t,
					"weight")
			}
		}
		slices.SortFunc(backends, func(a, b pool.Backend) int { return int(a.ID) - int(b.ID) })
		backends = slices.CompactFunc(backends,
			func(a, b pool.Backend) bool { return a.ID == b.ID })
		before := some
		if some, err = some.Next(backends, now); err != nil {
			t.Fatal(err)
		}
		if all, err = all.Next(backends, now); err != nil {
			t.Fatal(err)
		}
		mustTell(t, some, before)
		mustTell(t, some, earlier)
		mustTell(t, before, some)
		if rapid.IntRange(0, 3).Draw(t, "looks") == 0 {
			earlier = before
		}
		for b := range buckets {
			if some.Chain(b) != all.Chain(b) || !slices.Equal(some.Places(b), all.Places(b)) {
				t.Fatalf("bucket %d: %v, and %v if all are looked at", b, some.Places(b),
					all.Places(b))
			}
		}
	}
}

// mustTell fails if a bucket differs between generations, and Differing does not say so.
func mustTell(t *rapid.T, g, other *pool.Generation) {
	differs := make([]bool, g.Buckets())
	for first, last := range g.Differing(other) {
		for b := first; b < last; b++ {
			differs[b] = true
		}
	}
	for b, told := range differs {
		if g.Chain(b) != other.Chain(b) && !told {
			t.Fatalf("bucket %d was %v, is %v, and is not told of", b, other.Chain(b), g.Chain(b))
		}
	}
}

// A change of one of many backends leaves nearly all pages of the table common to both generations.
func TestOneChangeSharesTheRest(t *testing.T) {
	spec := pool.Spec{Buckets: buckets, Seed: seed, Candidates: 2}
	before := begin(t, spec, up(1000))
	after := next(t, before, with(up(1000), 500, pool.Draining))
	told := 0
	for first, last := range after.Differing(before) {
		told += last - first
	}
	if told == 0 || told > buckets/10 {
		t.Errorf("%d of %d buckets may differ", told, buckets)
	}
}
