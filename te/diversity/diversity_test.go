package diversity_test

import (
	"slices"
	"strings"
	"testing"

	"sextant/te/diversity"
	"sextant/te/spf"
	"sextant/te/topology"
	"sextant/te/topology/generate"
)

func table(g *topology.Graph) *spf.Table {
	one := func(topology.Edge) uint64 { return 1 }
	return spf.New(g.All(), one, one)
}

// hosts are the nodes whose names begin so.
func hosts(g *topology.Graph, prefix string) []topology.Node {
	var found []topology.Node
	for v := range topology.Node(g.Nodes()) {
		if strings.HasPrefix(g.Node(v).Name, prefix) {
			found = append(found, v)
		}
	}
	return found
}

// In a fat tree, hosts of one switch have one path, of one pod k/2, of different pods (k/2)².
func TestFatTree(t *testing.T) {
	g, err := generate.FatTree(4)
	if err != nil {
		t.Fatal(err)
	}
	counts := diversity.Between(table(g), hosts(g, "host"), nil)
	tally := map[uint64]int{}
	for _, c := range counts {
		tally[c]++
	}
	// 16 hosts: 1 in the same rack, 2 in the same pod, 12 elsewhere.
	if tally[1] != 16 || tally[2] != 32 || tally[4] != 192 || len(tally) != 3 {
		t.Errorf("pairs by number of paths: %v", tally)
	}
	if got := diversity.Share(counts, 2); got != 224.0/240 {
		t.Errorf("%v of the pairs have two paths", got)
	}
	// An edge switch has two ways up, an aggregation switch of another pod too, a core switch one
	// way down.
	hops := diversity.NextHops(table(g), hosts(g, "host0-0-0"), false)
	if slices.Max(hops) != 2 || slices.Min(hops) != 1 {
		t.Errorf("next hops %v", hops)
	}
}

// Over a grid of 20 by 20 there are binomial(38, 19) paths between opposite corners; over one of 40
// by 40, too many for 64 bits.
func TestGrid(t *testing.T) {
	for size, want := range map[int]uint64{20: 35345263800, 40: diversity.Many} {
		g, err := generate.Grid(size, size)
		if err != nil {
			t.Fatal(err)
		}
		paths := diversity.Paths(table(g).From(0))
		if got := paths[g.Nodes()-1]; got != want {
			t.Errorf("%d by %d: %d paths, want %d", size, size, got, want)
		}
	}
}

// With Valiant load balancing, a path may go up to any intermediate switch and down.
func TestBounce(t *testing.T) {
	g, err := generate.VL2(4, 4, 2)
	if err != nil {
		t.Fatal(err)
	}
	var middle []topology.Node
	for _, prefix := range []string{"int"} {
		middle = append(middle, hosts(g, prefix)...)
	}
	servers := hosts(g, "server")
	if len(middle) != 2 || len(servers) != 8 {
		t.Fatalf("%d intermediate switches, %d servers", len(middle), len(servers))
	}
	counts := diversity.Between(table(g), servers, middle)
	// Another rack: two aggregation switches up, two intermediate ones, two down. The same rack:
	// one path.
	if slices.Max(counts) != 8 || slices.Min(counts) != 1 {
		t.Errorf("paths %v", counts)
	}
}
