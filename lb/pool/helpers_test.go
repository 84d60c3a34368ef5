package pool_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

// up returns n backends of weight 1 that are up, with ids from 1.
func up(n int) []pool.Backend {
	backends := make([]pool.Backend, n)
	for i := range backends {
		backends[i] = pool.Backend{ID: uint16(i + 1), Weight: 1}
	}
	return backends
}

// with returns the backends with one in another state.
func with(backends []pool.Backend, id uint16, state pool.State) []pool.Backend {
	changed := slices.Clone(backends)
	for i := range changed {
		if changed[i].ID == id {
			changed[i].State = state
		}
	}
	return changed
}

// exact is the spec of most tests: shares without chance.
func exact(buckets, candidates int) pool.Spec {
	return pool.Spec{Buckets: buckets, Seed: seed, Method: pool.Exact, Candidates: candidates}
}

func first(t testing.TB, buckets, candidates int, backends []pool.Backend) *pool.Generation {
	t.Helper()
	return begin(t, exact(buckets, candidates), backends)
}

func begin(t testing.TB, spec pool.Spec, backends []pool.Backend) *pool.Generation {
	t.Helper()
	g, err := pool.New(spec, backends, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func next(t testing.TB, g *pool.Generation, backends []pool.Backend) *pool.Generation {
	t.Helper()
	following, err := g.Next(backends, 0)
	if err != nil {
		t.Fatal(err)
	}
	return following
}

// checkBothOrders checks with orders that are computed, and with kept ones.
func checkBothOrders(t *testing.T, check func(*rapid.T)) {
	t.Run("orders computed", func(t *testing.T) { rapid.Check(t, check) })
	t.Run("orders kept", func(t *testing.T) {
		defer pool.KeepOrders()()
		rapid.Check(t, check)
	})
}

// candidates returns the current candidates of a chain, past the owners before, all both.
func candidates(c pool.Chain) []uint16 { return c.IDs[:c.Candidates] }
func past(c pool.Chain) []uint16       { return c.IDs[c.Candidates:c.Length] }
func all(c pool.Chain) []uint16        { return c.IDs[:c.Length] }

func contains(ids []uint16, id uint16) bool { return slices.Contains(ids, id) }

// chains returns the chains of all buckets.
func chains(g *pool.Generation) []pool.Chain {
	result := make([]pool.Chain, g.Buckets())
	for bucket := range result {
		result[bucket] = g.Chain(bucket)
	}
	return result
}
