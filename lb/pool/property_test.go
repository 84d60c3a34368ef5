package pool_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

// drawBackends draws a pool in which ids overlap those of other draws.
func drawBackends(t *rapid.T) []pool.Backend {
	backend := rapid.Custom(func(t *rapid.T) pool.Backend {
		return pool.Backend{
			ID:     rapid.Uint16Range(1, 25).Draw(t, "id"),
			Weight: rapid.SampledFrom([]uint32{0, 1, 1, 2, 50, 1 << 31}).Draw(t, "weight"),
			State: rapid.SampledFrom([]pool.State{pool.Up, pool.Up, pool.Draining, pool.Down,
				pool.Maintenance}).Draw(t, "state"),
		}
	})
	return rapid.SliceOfNDistinct(backend, 0, 20,
		func(b pool.Backend) uint16 { return b.ID }).Draw(t, "backends")
}

// usable returns who may be a candidate, and who may be in a chain.
func usable(backends []pool.Backend) (eligible, alive []uint16) {
	for _, b := range backends {
		if b.State == pool.Up && b.Weight > 0 {
			eligible = append(eligible, b.ID)
		}
		if b.State != pool.Down {
			alive = append(alive, b.ID)
		}
	}
	return eligible, alive
}

// expectedPast is the rule for previous owners, written down once more: the chain before, without
// those that are candidates or gone.
func expectedPast(before, after pool.Chain, alive []uint16) []uint16 {
	result := []uint16{}
	for _, id := range all(before) {
		if slices.Contains(alive, id) && !contains(candidates(after), id) {
			result = append(result, id)
		}
	}
	return result[:min(len(result), pool.MaxChain-int(after.Candidates))]
}

// checkSuccession checks that every chain follows the one before by the rules, for the backends as
// they are.
func checkSuccession(t *rapid.T, before, after *pool.Generation, asked int,
	backends []pool.Backend) {
	eligible, alive := usable(backends)
	for bucket := range before.Buckets() {
		was, is := before.Chain(bucket), after.Chain(bucket)
		if int(is.Candidates) != min(asked, len(eligible)) {
			t.Fatalf("bucket %d: %d candidates of %d backends, asked for %d", bucket, is.Candidates,
				len(eligible), asked)
		}
		for i, id := range is.IDs {
			if i >= int(is.Length) && id != 0 {
				t.Fatalf("bucket %d: id behind the end of %+v", bucket, is)
			}
		}
		for i, id := range candidates(is) {
			if !slices.Contains(eligible, id) || slices.Contains(is.IDs[:i], id) {
				t.Fatalf("bucket %d: candidate %d of %+v is not eligible or there twice", bucket,
					id, is)
			}
		}
		if want := expectedPast(was, is, alive); !slices.Equal(past(is), want) {
			t.Fatalf("bucket %d: past of %+v after %+v, want %v", bucket, is, was, want)
		}
	}
}

// Whatever happens to a pool, each chain keeps the rules.
func TestChainInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		asked := rapid.IntRange(1, pool.MaxChain).Draw(t, "candidates")
		g, err := pool.New(pool.Spec{
			Buckets: rapid.IntRange(1, 60).Draw(t, "buckets"), Seed: rapid.Uint64().Draw(t, "seed"),
			Method: pool.Exact, Candidates: asked,
		}, drawBackends(t), 0)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 6).Draw(t, "generations") {
			backends := drawBackends(t)
			following, err := g.Next(backends, 0)
			if err != nil {
				t.Fatal(err)
			}
			checkSuccession(t, g, following, asked, backends)
			g = following
		}
	})
}

// The order in which backends are listed does not matter.
func TestDeterminism(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := exact(40, 3)
		spec.Seed = rapid.Uint64().Draw(t, "seed")
		spec.Method = rapid.SampledFrom([]pool.Method{pool.Exact, pool.Rendezvous}).Draw(t, "table")
		one, two := drawBackends(t), drawBackends(t)
		run := func(one, two []pool.Backend) []pool.Chain {
			g, err := pool.New(spec, one, 0)
			if err != nil {
				t.Fatal(err)
			}
			if g, err = g.Next(two, 0); err != nil {
				t.Fatal(err)
			}
			return chains(g)
		}
		shuffled := run(rapid.Permutation(one).Draw(t, "one, shuffled"),
			rapid.Permutation(two).Draw(t, "two, shuffled"))
		if !slices.Equal(run(one, two), shuffled) {
			t.Error("another order gives other chains")
		}
	})
}
