package pool_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/pool"
)

// Whatever backend is to be in front, the chain keeps all that it had, and their order.
func TestWithFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfNDistinct(rapid.Uint16Range(1, 9), 0, pool.MaxChain,
			rapid.ID[uint16]).Draw(t, "ids")
		chain := pool.Chain{Length: uint8(len(ids)), Candidates: uint8(len(ids) / 2)}
		copy(chain.IDs[:], ids)
		front := rapid.Uint16Range(0, 9).Draw(t, "front")
		got, ok := chain.WithFront(front)
		if in := slices.Contains(ids, front); in != ok {
			t.Fatalf("%v, front %d: %v", ids, front, ok)
		}
		if !ok {
			if got != chain {
				t.Fatalf("%v, front %d: became %v", ids, front, got)
			}
			return
		}
		rest := slices.DeleteFunc(slices.Clone(ids), func(id uint16) bool { return id == front })
		if want := append([]uint16{front}, rest...); !slices.Equal(got.IDs[:got.Length], want) ||
			got.Candidates != chain.Candidates {
			t.Fatalf("%v, front %d: became %v", ids, front, got)
		}
	})
}
