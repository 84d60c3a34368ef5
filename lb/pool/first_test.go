package pool_test

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"sextant/lb/pool"
)

// TestFirstChainsAreThoseKept: a generation whose chains are computed each time says in all ways
// what one says that keeps them, which was made bucket by bucket from empty chains; so do those
// that follow a suspicion, an order or a change.
func TestFirstChainsAreThoseKept(t *testing.T) {
	r := rand.New(rand.NewPCG(20, 7))
	begun := map[bool]int{} // with computed chains, by whether they are in several sites
	for round := range 150 {
		spec := pool.Spec{Buckets: 61 + r.IntN(40), Seed: r.Uint64(), Candidates: 1 + r.IntN(3),
			Depth: 3 + r.IntN(4)}
		backends := up(1 + r.IntN(16))
		if round%4 == 0 {
			backends[0].Weight++
		}
		inSites(r, backends)
		computed := begin(t, spec, backends)
		kept, err := pool.Resume(spec, make([]pool.Chain, spec.Buckets), backends, 0)
		if err != nil {
			t.Fatal(err)
		}
		if computed.WriteFirst(make([]pool.Chain, spec.Buckets), turned) {
			begun[sitesIn(backends) > 1]++
		}
		for step := range 4 {
			compareGenerations(t, computed, kept, backends)
			before := computed
			switch backends = slices.Clone(backends); {
			case step == 1 && round%2 == 0:
				backends[r.IntN(len(backends))].Suspect = true
			case step == 0:
				order := pool.Order{backends[0].ID: uint8(r.IntN(9)), 1: 3}
				computed, kept = computed.Ordered(order), kept.Ordered(order)
			default:
				backends = changedAtRandom(r, backends)
			}
			computed, kept = next(t, computed, backends), next(t, kept, backends)
			compareDiffering(t, computed, before)
			compareDiffering(t, before, computed)
		}
	}
	if begun[false] < 40 || begun[true] < 40 {
		t.Errorf("%d began with computed chains in one site, %d in several", begun[false],
			begun[true])
	}
}

// inSites spreads backends over up to four sites.
func inSites(r *rand.Rand, backends []pool.Backend) {
	sites := 1 + r.IntN(4)
	for i := range backends {
		backends[i].Site = uint16(r.IntN(sites))
	}
}

func sitesIn(backends []pool.Backend) int {
	sites := map[uint16]bool{}
	for _, b := range backends {
		sites[b.Site] = true
	}
	return len(sites)
}

func compareGenerations(t *testing.T, computed, kept *pool.Generation, backends []pool.Backend) {
	t.Helper()
	want := chains(kept)
	if !slices.Equal(chains(computed), want) {
		t.Fatal("chains differ")
	}
	for b, c := range computed.Chains() {
		if c != want[b] {
			t.Fatalf("bucket %d: %v of all chains, want %v", b, c, want[b])
		}
		if got, want := computed.Places(b), kept.Places(b); !slices.Equal(got, want) {
			t.Fatalf("bucket %d: places %v, want %v", b, got, want)
		}
	}
	if written := make([]pool.Chain, len(want)); computed.WriteFirst(written, turned) {
		for b, c := range want {
			for i, id := range c.IDs {
				c.IDs[i] = turned(id)
			}
			if written[b] != c {
				t.Fatalf("bucket %d: %v is written, want %v", b, written[b], c)
			}
		}
	}
	if !slices.Equal(computed.Record(), kept.Record()) {
		t.Fatal("records differ")
	}
	own := func(id uint16) bool { return id%3 == 0 }
	if !slices.Equal(computed.RecordWithout(own), kept.RecordWithout(own)) {
		t.Fatal("records without some differ")
	}
	var ids []uint16
	counts := map[uint16]int{}
	for _, b := range backends {
		ids = append(ids, b.ID)
	}
	for _, c := range want {
		if c.Candidates > 0 {
			counts[c.IDs[0]]++
		}
	}
	for i, n := range computed.Shares(ids) {
		if n != counts[ids[i]] {
			t.Fatalf("backend %d has %d buckets, want %d", ids[i], n, counts[ids[i]])
		}
	}
}

func turned(id uint16) uint16 { return bits.ReverseBytes16(id) }

// compareDiffering sees that chains differ in the ranges alone that are told.
func compareDiffering(t *testing.T, is, was *pool.Generation) {
	t.Helper()
	told := make([]bool, is.Buckets())
	for first, last := range is.Differing(was) {
		for b := first; b < last; b++ {
			told[b] = true
		}
	}
	for b := range told {
		if !told[b] && is.Chain(b) != was.Chain(b) {
			t.Fatalf("bucket %d differs, and that is not told", b)
		}
	}
}

// TestFirstChainsTakeNoMemory: that is what they are computed for.
func TestFirstChainsTakeNoMemory(t *testing.T) {
	spec := pool.Spec{Buckets: 6421, Seed: seed, Candidates: 2}
	for sites := range 3 {
		backends, order := up(10), pool.Order{}
		for i := range backends {
			backends[i].Site = uint16(i % (1 + sites))
			if backends[i].Site > 0 {
				order[backends[i].ID] = 1
			}
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		g := begin(t, spec, backends).Ordered(order)
		for range g.Chains() {
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(spec.Buckets) {
			t.Errorf("chains of %d buckets took %d bytes", spec.Buckets, took)
		}
	}
}
