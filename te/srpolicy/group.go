package srpolicy

import (
	"slices"
	"time"
)

// draws is of how many lists a flow that begins takes one.
const draws = 8

// drawStep is what the hash grows by from two draws to the next.
const drawStep = 0x9e3779b97f4a7c15

// Choose returns which segment list of a group a flow that begins takes, and keeps: of lists that
// its hash draws by Shares, the first one over whose first segment the least goes out now. Weights
// say how the network was some time ago, as far as it is seen from there.
func Choose(shares []uint32, hash uint64, goesOut func(list int) uint64) (list int) {
	var least uint64
	for i := range draws {
		half := uint32(hash)
		if i%2 == 0 {
			hash = Mix(hash + drawStep)
			half = uint32(hash >> 32)
		}
		drawn := ofHash(shares, half)
		if rate := goesOut(drawn); i == 0 || rate < least {
			least, list = rate, drawn
		}
	}
	return list
}

const (
	wayMemory     = 500 * time.Microsecond
	wayMemoryMost = time.Second
)

// WayMemory is the time constant of the [Meter] of what goes out over a first segment, where flows
// choose again after pauses that are longer than flowlet; 0: they keep their lists.
func WayMemory(flowlet time.Duration) time.Duration {
	if flowlet == 0 {
		return wayMemory
	}
	return min(flowlet/2, wayMemoryMost)
}

func ofHash(shares []uint32, hash uint32) int {
	list, _ := slices.BinarySearch(shares, hash)
	return min(list, len(shares)-1)
}

// Mix spreads a number over all bits: splitmix64 (Steele et al., "Fast splittable pseudorandom
// number generators", 2014).
func Mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
