package pool_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

func rendezvous(buckets, candidates int) pool.Spec {
	return pool.Spec{Buckets: buckets, Seed: seed, Candidates: candidates}
}

// Edges that know the same backends choose the same candidates, whatever they saw before: once
// those who wait for a place in a full chain have got it.
func TestRendezvousEdgesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := rendezvous(30, rapid.IntRange(1, 3).Draw(t, "candidates"))
		old, err := pool.New(spec, drawBackends(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		var backends []pool.Backend
		for range rapid.IntRange(1, 4).Draw(t, "generations") {
			backends = drawBackends(t)
			if old, err = old.Next(backends, 0); err != nil {
				t.Fatal(err)
			}
		}
		if old, err = old.Next(backends, 2*time.Minute); err != nil {
			t.Fatal(err)
		}
		fresh, err := pool.New(spec, backends, 0)
		if err != nil {
			t.Fatal(err)
		}
		for bucket := range spec.Buckets {
			if a, b := candidates(old.Chain(bucket)),
				candidates(fresh.Chain(bucket)); !slices.Equal(a, b) {
				t.Fatalf("bucket %d: candidates %v with a past, %v without", bucket, a, b)
			}
		}
	})
}

// An edge that starts now finds the earlier connections, as long as their hosts are alive:
// whoever would have been the candidate with up to four others out of service is in reserve.
func TestRendezvousReserves(t *testing.T) {
	spec := rendezvous(500, 1)
	for _, out := range [][]uint16{{1}, {1, 2}, {3, 5, 7, 8}} {
		then := up(8)
		for _, id := range out {
			then = with(then, id, pool.Draining)
		}
		was, fresh := begin(t, spec, then), begin(t, spec, up(8))
		for bucket := range spec.Buckets {
			owner := was.Chain(bucket).IDs[0]
			if !contains(all(fresh.Chain(bucket)), owner) {
				t.Fatalf("without %v bucket %d was %d's; a fresh edge offers it to %v", out, bucket,
					owner, all(fresh.Chain(bucket)))
			}
		}
	}
}

// A backend that goes moves its own buckets only, and one that comes takes only what is its own.
func TestRendezvousMovesOnlyWhatMust(t *testing.T) {
	g := begin(t, rendezvous(65537, 1), up(1000))
	gone := next(t, g, with(up(1000), 500, pool.Draining))
	back := next(t, gone, up(1000))
	for bucket := range g.Buckets() {
		before, without, after := g.Chain(bucket).IDs[0], gone.Chain(bucket).IDs[0],
			back.Chain(bucket).IDs[0]
		if before != after || before != 500 && without != before {
			t.Fatalf("bucket %d goes from %d to %d to %d", bucket, before, without, after)
		}
	}
}

// All first choices of a bucket may be out of service.
func TestRendezvousFindsTheLastOneUp(t *testing.T) {
	backends := up(40)
	for i := range backends {
		if i != 17 {
			backends[i].State = pool.Maintenance
		}
	}
	g := begin(t, rendezvous(200, 2), backends)
	for bucket := range g.Buckets() {
		if got := candidates(g.Chain(bucket)); !slices.Equal(got, []uint16{18}) {
			t.Fatalf("bucket %d: candidates %v, want 18", bucket, got)
		}
	}
}

func TestDepthBoundsChains(t *testing.T) {
	spec := rendezvous(100, 2)
	spec.Depth = 3
	g := begin(t, spec, up(8))
	for id := range uint16(8) {
		g = next(t, g, with(up(8), id+1, pool.Draining))
	}
	for bucket := range g.Buckets() {
		if n := len(all(g.Chain(bucket))); n != 3 {
			t.Fatalf("bucket %d: chain of %d, want 3", bucket, n)
		}
	}
}

// Previous owners leave one by one when their drain time is over, and not before.
func TestDrainTime(t *testing.T) {
	spec := exact(300, 1)
	spec.Drain = time.Minute
	g := begin(t, spec, up(5))
	advance := func(now time.Duration, backends []pool.Backend) {
		t.Helper()
		var err error
		if g, err = g.Next(backends, now); err != nil {
			t.Fatal(err)
		}
	}
	if at, waits := g.NextAt(); waits {
		t.Errorf("nobody left, but at %v something ends", at)
	}
	advance(10*time.Second, with(up(5), 1, pool.Draining))
	advance(30*time.Second, with(with(up(5), 1, pool.Draining), 2, pool.Draining))
	pasts := func() map[uint16]int {
		count := map[uint16]int{}
		for bucket := range g.Buckets() {
			for _, id := range past(g.Chain(bucket)) {
				count[id]++
			}
		}
		return count
	}
	before := pasts()
	if before[1] != 60 || before[2] != 75 {
		t.Fatalf("previous owners %v, want 1 in 60 and 2 in 75 buckets", before)
	}
	drained := with(with(up(5), 1, pool.Draining), 2, pool.Draining)
	at, waits := g.NextAt()
	if !waits || at != 71*time.Second {
		t.Errorf("next end at %v, %v; want 71 s", at, waits)
	}
	advance(70*time.Second, drained)
	if got := pasts(); got[1] != 60 {
		t.Errorf("at the end of the drain time: %v", got)
	}
	advance(at, drained)
	if got := pasts(); got[1] != 0 || got[2] != 75 {
		t.Errorf("after the drain time of 1: %v, want 2 in 75", got)
	}
	advance(91*time.Second, drained)
	if got := pasts(); len(got) != 0 {
		t.Errorf("after all drain times: %v", got)
	}
	if _, waits := g.NextAt(); waits {
		t.Error("nobody is left, but something ends")
	}
}

// Another edge may know of a drain that this one has not heard of yet: whom it offers a connection
// then is in reserve here, also where weights have changed before.
func TestReserveAfterAnotherWeight(t *testing.T) {
	for name, buckets := range map[string]int{"orders computed": 2000, "orders kept": 60_000} {
		t.Run(name, func(t *testing.T) {
			spec := rendezvous(buckets, 2)
			backends := up(10)
			here := begin(t, spec, backends)
			backends = slices.Clone(backends)
			backends[3].Weight = 7
			here = next(t, here, backends)
			missing := 0
			for _, b := range backends {
				other := begin(t, spec, with(backends, b.ID, pool.Draining))
				for bucket := range buckets {
					for _, id := range candidates(other.Chain(bucket)) {
						if !contains(all(here.Chain(bucket)), id) {
							missing++
						}
					}
				}
			}
			if missing > 0 {
				t.Errorf("%d offers of another edge are not found here", missing)
			}
		})
	}
}
