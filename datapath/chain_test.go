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
