package pool_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/lb/consistenthash"
	"sextant/lb/pool"
)

// Through changes of any kind, candidates are those who come first when all who may be one are put
// in turn: the best of each site, then the second of each.
func TestCandidatesBySiteFollow(t *testing.T) { checkBothOrders(t, candidatesFollow) }

func candidatesFollow(t *rapid.T) {
	spec := pool.Spec{Buckets: 100, Seed: rapid.Uint64().Draw(t, "seed"), Drain: time.Second,
		Candidates: rapid.IntRange(1, 5).Draw(t, "candidates")}
	site := rapid.Uint16Range(0, rapid.Uint16Range(0, 6).Draw(t, "last site"))
	if rapid.Bool().Draw(t, "one has most") {
		site = rapid.SampledFrom([]uint16{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 1, 2})
	}
	state := rapid.SampledFrom([]pool.State{pool.Up, pool.Up, pool.Draining, pool.Down})
	var backends []pool.Backend
	for id := range rapid.IntRange(1, 60).Draw(t, "backends") {
		backends = append(backends, pool.Backend{ID: uint16(id + 1), Weight: 1,
			Site: site.Draw(t, "site")})
	}
	g, err := pool.New(spec, backends, 0)
	for step := range rapid.IntRange(1, 8).Draw(t, "steps") {
		if err != nil {
			t.Fatal(err)
		}
		ranking := rank(t, spec, backends)
		for bucket := range spec.Buckets {
			want := inTurn(ranking, bucket, spec.Candidates, backends)
			if got := candidates(g.Chain(bucket)); !slices.Equal(got, want) {
				t.Fatalf("step %d, bucket %d: candidates %v, want %v of %v", step, bucket, got,
					want, backends)
			}
		}
		backends = slices.Clone(backends)
		which := &backends[rapid.IntRange(0, len(backends)-1).Draw(t, "which")]
		switch what := rapid.IntRange(0, 9).Draw(t, "change"); what {
		case 0:
			which.Site = site.Draw(t, "site")
		case 1:
			which.Weight = rapid.Uint32Range(0, 3).Draw(t, "weight")
		case 2:
			backends = append(backends, pool.Backend{ID: uint16(100 + step), Weight: 1,
				Site: site.Draw(t, "site")})
		case 3, 4: // a site goes, or comes
			now := state.Draw(t, "state")
			for i := range backends {
				if backends[i].Site == which.Site {
					backends[i].State = now
				}
			}
		case 5, 6: // one is all that is left, and goes or comes
			for i := range backends {
				if backends[i].Site == which.Site && backends[i].State == pool.Up &&
					backends[i].ID != which.ID {
					backends[i].State = pool.Draining
				}
			}
			which.State = pool.Up + pool.Draining - min(which.State, pool.Draining)
		default:
			which.State = state.Draw(t, "state")
		}
		// An hour later nobody waits for a place any more.
		if g, err = g.Next(backends, time.Duration(2*step+1)*time.Hour); err == nil {
			g, err = g.Next(backends, time.Duration(2*step+2)*time.Hour)
		}
	}
}

// The only one of its site is a candidate everywhere as soon as it may be one, also in buckets in
// whose order it comes late.
func TestSiteComesWithOne(t *testing.T) {
	defer pool.KeepOrders()()
	backends := up(60)
	backends[59].Site = 1
	spec := pool.Spec{Buckets: 300, Seed: seed, Candidates: 2}
	g := next(t, begin(t, spec, with(backends, 60, pool.Draining)), backends)
	for bucket := range spec.Buckets {
		if c := candidates(g.Chain(bucket)); !contains(c, 60) {
			t.Fatalf("bucket %d: candidates %v, none of site 1", bucket, c)
		}
	}
}

// inTurn puts all who may be candidates of a bucket in turn.
func inTurn(ranking *consistenthash.Ranking, bucket, candidates int, backends []pool.Backend) (
	ids []uint16) {
	site := map[uint16]uint16{}
	for _, b := range backends {
		if b.State == pool.Up {
			site[b.ID] = b.Site
		}
	}
	turns, taken := map[uint16]int{}, map[uint16]int{}
	for _, id := range ranking.All(bucket) {
		if at, is := site[id]; is {
			ids = append(ids, id)
			turns[id] = taken[at]
			taken[at]++
		}
	}
	slices.SortStableFunc(ids, func(a, b uint16) int { return cmp.Compare(turns[a], turns[b]) })
	return ids[:min(len(ids), candidates)]
}

func rank(t *rapid.T, spec pool.Spec, backends []pool.Backend) *consistenthash.Ranking {
	var members []consistenthash.Member
	for _, b := range backends {
		members = append(members, consistenthash.Member{ID: b.ID, Weight: b.Weight})
	}
	ranking, err := consistenthash.Rank(spec.Buckets, spec.Seed, members)
	if err != nil {
		t.Fatal(err)
	}
	return ranking
}

// BenchmarkSites changes one backend of 1,000 in three sites, and takes a whole site away; or one
// where two sites have ten each.
func BenchmarkSites(b *testing.B) {
	spread := func(without uint16) []pool.Backend {
		members := up(1000)
		for i := range members {
			if members[i].Site = uint16(i%3) + 1; members[i].Site == without {
				members[i].State = pool.Down
			}
		}
		return members
	}
	all, uneven := spread(0), up(1000)
	for i := range uneven[:20] {
		uneven[i].Site = uint16(i%2) + 1
	}
	for _, change := range []struct {
		name          string
		before, after []pool.Backend
	}{
		{"drain", all, with(spread(0), 500, pool.Draining)},
		{"site-goes", all, spread(2)},
		{"drain-uneven", uneven, with(uneven, 500, pool.Draining)},
		{"drain-after-that", spread(2), with(spread(2), 499, pool.Draining)},
	} {
		b.Run(change.name, func(b *testing.B) {
			g := begin(b, pool.Spec{Buckets: buckets, Seed: seed, Candidates: 3}, change.before)
			for b.Loop() {
				next(b, g, change.after)
			}
		})
	}
}
