package pool_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

// An order changes in which order candidates come, and nothing else: who they are, who follows
// them, and what comes of later changes are as without.
func TestOrderIsOfCandidatesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := pool.Spec{Buckets: 64, Seed: rapid.Uint64().Draw(t, "seed"), Policy: pool.Offer,
			Candidates: rapid.IntRange(1, 3).Draw(t, "candidates")}
		members := drawSites(t)
		plain, err := pool.New(spec, members, 0)
		if err != nil {
			t.Fatal(err)
		}
		ordered := plain
		for change := range rapid.IntRange(1, 4).Draw(t, "changes") {
			o := pool.Order{}
			for _, m := range members {
				o[m.ID] = rapid.Uint8Range(0, 3).Draw(t, "rank")
			}
			before := ordered
			ordered = ordered.Ordered(o)
			compareOrders(t, plain, ordered, o)
			checkShares(t, ordered, members)
			seen := map[int]bool{}
			for first, last := range ordered.Differing(before) {
				for b := first; b < last; b++ {
					seen[b] = true
				}
			}
			for b := range spec.Buckets {
				if !seen[b] && ordered.Chain(b) != before.Chain(b) {
					t.Fatalf("bucket %d differs, and is not told of", b)
				}
			}
			members = slices.Clone(members)
			m := &members[rapid.IntRange(0, len(members)-1).Draw(t, "who")]
			m.State = rapid.SampledFrom([]pool.State{pool.Up, pool.Draining,
				pool.Down}).Draw(t, "state")
			if plain, err = plain.Next(members, 0); err != nil {
				t.Fatal(err)
			}
			if ordered, err = ordered.Next(members, 0); err != nil {
				t.Fatal(err)
			}
			compareOrders(t, plain, ordered, o)
			if change == 1 { // another process goes on from the chains alone
				ordered, err = pool.Resume(spec, allChains(ordered), members, 0)
				same, err2 := pool.Resume(spec, allChains(plain), members, 0)
				if err != nil || err2 != nil {
					t.Fatal(err, err2)
				}
				compareOrders(t, same, ordered, nil)
				plain = same
			}
		}
	})
}

// checkShares counts bucket by bucket, also for an id that nobody has.
func checkShares(t *rapid.T, g *pool.Generation, members []pool.Backend) {
	t.Helper()
	ids, want := []uint16{999}, []int{0}
	for _, m := range members {
		n := 0
		for b := range g.Buckets() {
			if c := g.Chain(b); c.Candidates > 0 && c.IDs[0] == m.ID {
				n++
			}
		}
		ids, want = append(ids, m.ID), append(want, n)
	}
	if got := g.Shares(ids); !slices.Equal(got, want) {
		t.Fatalf("shares of %v are %v, and by each bucket %v", ids, got, want)
	}
}

func drawSites(t *rapid.T) (members []pool.Backend) {
	for id := range rapid.IntRange(2, 12).Draw(t, "backends") {
		members = append(members, pool.Backend{ID: uint16(id + 1), Weight: 1,
			Site: rapid.Uint16Range(0, 2).Draw(t, "site")})
	}
	return members
}

func compareOrders(t *rapid.T, plain, ordered *pool.Generation, o pool.Order) {
	t.Helper()
	for b := range plain.Buckets() {
		want, got := plain.Chain(b), ordered.Chain(b)
		places := ordered.Places(b)
		for i, id := range got.IDs[:got.Length] {
			if places[i].ID != id {
				t.Fatalf("bucket %d: places %v of chain %v", b, places, got.IDs)
			}
			if i > 0 && i < int(got.Candidates) && o[got.IDs[i-1]] > o[id] {
				t.Fatalf("bucket %d: %v are not in the order %v", b, got.IDs, o)
			}
		}
		slices.Sort(want.IDs[:want.Candidates])
		if slices.Sort(got.IDs[:got.Candidates]); got != want {
			t.Fatalf("bucket %d: %v with an order, %v without", b, got, want)
		}
	}
}

// Candidates are in as many sites as there are, or as candidates; each is the best that is up of
// its site by the order that backends of one site have.
func TestCandidatesBySite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := pool.Spec{Buckets: 64, Seed: rapid.Uint64().Draw(t, "seed"), Policy: pool.Offer,
			Candidates: rapid.IntRange(1, 4).Draw(t, "candidates")}
		members := drawSites(t)
		g, err := pool.New(spec, members, 0)
		if err != nil {
			t.Fatal(err)
		}
		best := map[uint16]*pool.Generation{} // by site, of its backends alone
		for _, m := range members {
			var own []pool.Backend
			for _, other := range members {
				if other.Site == m.Site {
					own = append(own, other)
				}
			}
			alone := spec
			alone.Candidates = 1
			if best[m.Site], err = pool.New(alone, own, 0); err != nil {
				t.Fatal(err)
			}
		}
		for b := range spec.Buckets {
			c := g.Chain(b)
			bests := 0
			for _, id := range c.IDs[:c.Candidates] {
				if best[members[id-1].Site].Chain(b).IDs[0] == id {
					bests++
				}
			}
			if want := min(len(best), spec.Candidates); bests != want {
				t.Fatalf("bucket %d: %d of %v are the best of a site, want %d", b, bests,
					c.IDs[:c.Candidates], want)
			}
		}
	})
}

// Where all are in one site, sites change nothing.
func TestOneSite(t *testing.T) {
	var plain, same []pool.Backend
	for id := range uint16(9) {
		plain = append(plain, pool.Backend{ID: id + 1, Weight: 1})
		same = append(same, pool.Backend{ID: id + 1, Weight: 1, Site: 7})
	}
	spec := pool.Spec{Buckets: 1021, Policy: pool.Offer, Candidates: 2}
	a, err := pool.New(spec, plain, 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := pool.New(spec, same, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(allChains(a), allChains(b)) {
		t.Error("a site that all are in changes chains")
	}
}

func allChains(g *pool.Generation) (chains []pool.Chain) {
	for b := range g.Buckets() {
		chains = append(chains, g.Chain(b))
	}
	return chains
}
