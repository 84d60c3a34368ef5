package srpolicy

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Lists are drawn by their weights, and of two the one is taken on whose way fewer flows began.
func TestOfTwo(t *testing.T) {
	shares := Shares([]uint32{1, 2, 5})
	random := rand.New(rand.NewPCG(1, 2))
	const flows = 100000
	var even, least [3]float64
	for range flows {
		hash := random.Uint64()
		even[OfTwo(shares, hash, func(int) uint32 { return 0 })]++
		least[OfTwo(shares, hash, func(list int) uint32 { return uint32(list) })]++
	}
	for i, want := range []float64{1. / 8, 2. / 8, 5. / 8} {
		if got := even[i] / flows; math.Abs(got-want) > 0.01 {
			t.Errorf("list %d gets %.3f of the flows, not %.3f", i, got, want)
		}
	}
	// The least number of two: 1-(7/8)^2, (7/8)^2-(5/8)^2, (5/8)^2.
	for i, want := range []float64{15. / 64, 24. / 64, 25. / 64} {
		if got := least[i] / flows; math.Abs(got-want) > 0.01 {
			t.Errorf("list %d gets %.3f of the flows, not %.3f", i, got, want)
		}
	}
}
