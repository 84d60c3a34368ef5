package packet

import (
	"strings"
	"testing"

	"sextant/te/topology"
	"sextant/te/topology/generate"
)

type edge = topology.Edge

func nodeOf(v int) topology.Node { return topology.Node(v) }

func isServer(s topology.NodeSpec) bool { return strings.HasPrefix(s.Name, "server") }

// Numbers of equal-cost paths that follow from the papers' formulas.
func TestPathCounts(t *testing.T) {
	fatTree, _ := generate.FatTree(8)
	vl2, _ := generate.VL2(20, 6, 2)
	bcube, _ := generate.BCube(4, 2)
	leafSpine, _ := generate.SpineLeaf(5, 3, 2)
	tree, err := NewNetwork(fatTree, NetworkConfig{})
	if err != nil {
		t.Fatal(err)
	}
	clos, err := NewNetwork(leafSpine, NetworkConfig{})
	if err != nil {
		t.Fatal(err)
	}
	cube, err := NewNetwork(bcube, NetworkConfig{Relay: true, Host: isServer})
	if err != nil {
		t.Fatal(err)
	}
	servers, err := NewNetwork(vl2, NetworkConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		n        *Network
		src, dst int
		paths    int
		hops     int
	}{
		{"fat tree, same switch", tree, 0, 1, 1, 2}, {"fat tree, same pod", tree, 0, 4, 4, 4},
		{"fat tree, another pod", tree, 0, 127, 16, 6}, {"leaf and spine", clos, 0, 5, 5, 4},
		// BCube: servers whose addresses differ in h digits have h! shortest paths of 2h links.
		{"BCube, 1 digit", cube, 0, 1, 1, 2}, {"BCube, 2 digits", cube, 0, 5, 2, 4},
		{"BCube, 3 digits", cube, 0, 63, 6, 6},
		// Racks without a common aggregation switch: 2 of them up, 10 intermediate switches, 2
		// down.
		{"VL2", servers, 0, 2, 40, 6},
	} {
		s := begin(t, Config{Network: c.n, Transport: DefaultTransport()})
		src, dst := c.n.Hosts[c.src], c.n.Hosts[c.dst]
		table := s.table(src, dst)
		seen := map[int32]bool{}
		for i := range s.paths.tables[table].fabric {
			route := s.tableRoute(src, dst, table, int32(i))
			at, hops := src, 0
			for ; s.routes[int(route)+hops] != none; hops++ {
				l := s.routes[int(route)+hops]
				if Node(c.n.Graph.From(edge(l))) != at {
					t.Fatalf("%s: path %d is broken at hop %d", c.name, i, hops)
				}
				at = c.n.links[l].to
			}
			if at != dst || hops != c.hops || seen[route] {
				t.Errorf("%s: path %d ends at %d after %d hops, or is there twice", c.name, i, at,
					hops)
			}
			seen[route] = true
		}
		if len(seen) != c.paths {
			t.Errorf("%s: %d paths, want %d", c.name, len(seen), c.paths)
		}
	}
}

// A source that knows the load leaves a path whose links are slow; a hash does not.
func TestRerouteLeavesSlowPath(t *testing.T) {
	g, err := generate.SpineLeaf(2, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	spine, _ := g.Lookup("spine0")
	n, err := NewNetwork(g, NetworkConfig{Rate: 1e9, Queue: Queue{Bytes: 100 * 1500},
		Scale: func(e edge) float64 {
			if g.From(e) == spine || g.To(e) == spine {
				return 0.1
			}
			return 1
		}})
	if err != nil {
		t.Fatal(err)
	}
	// The queue of the fast path lasts 1.2 ms at most.
	least := func(load []Time, current int, _ uint64) int {
		for i, l := range load {
			if load[current] > 2*Millisecond && l < load[current] {
				current = i
			}
		}
		return current
	}
	for _, c := range []struct {
		name  string
		paths Paths
		least float64
	}{
		{"rerouted", Paths{Scheme: Rerouted, Reroute: least, RerouteEvery: Millisecond}, 0.85},
		{"DRILL", Paths{Scheme: DRILL}, 0.85},
	} {
		for seed := range uint64(4) {
			s := begin(t, Config{Network: n, Transport: DefaultTransport(), Paths: c.paths,
				Seed: seed})
			h := add(t, s, Flow{Src: 0, Dst: 1, Bytes: Endless})
			s.Run(2 * Second)
			if part := float64(s.Delivered(h)) * 8 / 2e9; part < c.least {
				t.Errorf("%s, seed %d: goodput is %.2f of the host's link", c.name, seed, part)
			}
		}
	}
}

// Capped connections have as many subflows as paths at most: in a fat tree of 4-port switches one
// below a switch, 2 within a pod, 4 beyond.
func TestCappedSubflows(t *testing.T) {
	n := htsimNetwork(t, 4)
	for dst, paths := range map[int]int{1: 1, 2: 2, 15: 4} {
		for capped, want := range map[bool]int{false: 6, true: paths} {
			s := begin(t, Config{Network: n, Transport: DefaultTransport(),
				Paths: Paths{Scheme: Random, Capped: capped}})
			h := add(t, s, Flow{Src: 0, Dst: dst, Bytes: Endless, Subflows: 6})
			s.Run(Second / 10)
			if got := len(s.connections[h].subflows); got != want {
				t.Errorf("to host %d, capped %t: %d subflows, want %d", dst, capped, got, want)
			}
		}
	}
}
