package edgecoloring

import (
	"strings"
	"testing"
)

// In pods of different size, and in leaves with spines, no link carries two flows while no leaf has
// more of them than links, and no pod more than links to the core.
func TestClos(t *testing.T) {
	for _, shape := range []struct {
		pods                []int
		aggregations, cores int
		hosts               int // flows that a leaf sends and receives
	}{{[]int{0, 0, 0, 0, 0, 0, 0}, 3, 0, 3}, {[]int{0, 1, 1, 2, 2, 2}, 4, 3, 4},
		{[]int{0, 1, 0, 1}, 1, 2, 1}, {[]int{0}, 1, 0, 1}} {
		rng := newRand(uint64(len(shape.pods)))
		for range 50 {
			net, err := NewClos(shape.pods, shape.aggregations, shape.cores)
			if err != nil {
				t.Fatal(err)
			}
			var ends []Ends
			for src, dst := range rng.Perm(len(shape.pods) * shape.hosts) {
				ends = append(ends, Ends{src / shape.hosts, dst / shape.hosts})
			}
			var flows []Flow
			for _, e := range ends {
				added, err := net.Add(e)
				if err != nil {
					t.Fatal(err)
				}
				flows = append(flows, added[0])
			}
			type link struct {
				kind    string
				at, way int
			}
			used := map[link]bool{}
			use := func(l link) {
				if used[l] {
					t.Fatalf("%+v: %+v carries two flows", shape, l)
				}
				used[l] = true
			}
			for i, f := range flows {
				p, src, dst := net.Path(f), ends[i].Src, ends[i].Dst
				if (p.Aggregation < 0) != (src == dst) ||
					(p.Core < 0) != (shape.pods[src] == shape.pods[dst]) {
					t.Fatalf("%+v: from %d to %d by %+v", shape, src, dst, p)
				}
				if p.Aggregation >= 0 {
					use(link{"up", src, p.Aggregation})
					use(link{"down", dst, p.Aggregation})
				}
				if core := p.Aggregation*shape.cores + p.Core; p.Core >= 0 {
					use(link{"core up", shape.pods[src], core})
					use(link{"core down", shape.pods[dst], core})
				}
			}
		}
	}
	for want, bad := range map[string][]int{"pod 2": {0, 2}, "nothing connects": {0, 1}} {
		if _, err := NewClos(bad, 2, 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", bad, err, want)
		}
	}
	if _, err := NewClos([]int{0}, 65, 0); err == nil {
		t.Error("65 aggregation switches are no colors")
	}
	net, _ := NewClos([]int{0, 0}, 2, 0)
	if _, err := net.Add(Ends{0, 2}); err == nil || !strings.Contains(err.Error(), "0 to 1") {
		t.Errorf("a leaf that is not there: %v", err)
	}
}
