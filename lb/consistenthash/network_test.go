package consistenthash

import (
	"slices"
	"testing"
)

// A network orders whatever it is given if it orders zeros and ones.
func TestNetworksOrder(t *testing.T) {
	for _, network := range []struct {
		sort  func(*[Depth]uint64)
		draws int
	}{{sortSix, 6}, {sortTwelve, 12}} {
		for ones := range 1 << network.draws {
			var d [Depth]uint64
			for i := range network.draws {
				d[i] = uint64(ones >> i & 1)
			}
			want := slices.Sorted(slices.Values(d[:network.draws]))
			slices.Reverse(want)
			if network.sort(&d); !slices.Equal(d[:network.draws], want) {
				t.Fatalf("%d draws: %0*b becomes %v", network.draws, network.draws, ones, d)
			}
		}
	}
}
