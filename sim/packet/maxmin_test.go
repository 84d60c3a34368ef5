package packet

import (
	"math"
	"testing"
)

// Packets come near what the same paths give when each subflow has its max-min fair rate: Fluid
// shares no code with queues, losses and windows.
func TestChosenPathsNearMaxMin(t *testing.T) {
	n := htsimNetwork(t, 8)
	for _, subflows := range []int{2, 4, 8} {
		mean, _, s := goodput(t, n, Config{Transport: htsimTransport(),
			Paths: Paths{Scheme: Greedy, Capped: true}, Seed: 1}, subflows, Second)
		capacity := make([]float64, len(s.links))
		for l := range capacity {
			capacity[l] = 1
		}
		fluid, sum := NewFluid(capacity), 0.0
		var flows []int32
		for i := range s.subflows {
			at := s.subflows[i].path.forward
			end := at
			for s.routes[end] != none {
				end++
			}
			flows = append(flows, fluid.Add(s.routes[at:end]))
		}
		for _, f := range flows {
			sum += fluid.Rate(f)
		}
		shared := sum / float64(len(n.Hosts))
		t.Logf("%d subflows: packets %.1f %%, max-min %.1f %%", subflows, 100*mean, 100*shared)
		if math.Abs(mean-shared) > 0.04 {
			t.Errorf("%d subflows fill %.1f %% of the hosts' links, max-min fair rates on the "+
				"same paths %.1f %%", subflows, 100*mean, 100*shared)
		}
	}
}
