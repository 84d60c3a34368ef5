package datapath

import (
	"math/rand/v2"
	"testing"

	"sextant/lb/pool"
)

// What programs read has the same length and ids as what package pool made, and comes back as that.
func TestChainsInBothOrders(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		c := pool.Chain{Length: uint8(random.IntN(pool.MaxChain + 1)),
			Shadow: uint16(random.Uint32())}
		c.Candidates = uint8(random.IntN(int(c.Length) + 1))
		for i := range c.Length {
			c.IDs[i] = uint16(random.Uint32())
		}
		want := chain{Length: c.Length, Candidates: c.Candidates, Shadow: bigEndian(c.Shadow)}
		for i, id := range c.IDs {
			want.IDs[i] = bigEndian(id)
		}
		if got := chainOf(c); got != want {
			t.Fatalf("%+v became %+v, not %+v", c, got, want)
		}
		if back := inHostOrder([]chain{want})[0]; back != c {
			t.Fatalf("%+v came back as %+v", c, back)
		}
	}
}

// What is written of a generation is the same whether its chains are kept or not.
func TestChainsAreWritten(t *testing.T) {
	for _, spec := range []pool.Spec{{Buckets: 6421, Seed: 3, Candidates: 2},
		{Buckets: 1021, Seed: 4, Candidates: 1, Depth: 3},
		{Buckets: 67, Policy: pool.Shadow}} {
		for backends := range 9 {
			var list []pool.Backend
			for i := range backends {
				list = append(list, pool.Backend{ID: uint16(1 + 300*i), Key: uint64(i), Weight: 1})
			}
			g, err := pool.New(spec, list, 0)
			if err != nil {
				t.Fatal(err)
			}
			ordered := g.Ordered(pool.Order{301: 3})
			for _, g := range []*pool.Generation{g, ordered} {
				wire := make([]chain, spec.Buckets)
				writeChains(wire, g)
				for b := range wire {
					if want := chainOf(g.Chain(b)); wire[b] != want {
						t.Fatalf("%d backends, bucket %d: %+v, want %+v", backends, b, wire[b],
							want)
					}
				}
			}
		}
	}
}
