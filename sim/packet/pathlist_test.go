package packet

import (
	"strings"
	"testing"

	"sextant/te/topology/generate"
)

// The parallel paths of a BCube leave by different ports, lead to the destination, and share no
// node between the ends.
func TestParallelBCube(t *testing.T) {
	const ports, levels = 3, 3
	g, err := generate.BCube(ports, levels-1)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{Relay: true, Host: isServer})
	if err != nil {
		t.Fatal(err)
	}
	list := n.ParallelBCube(ports, levels)
	for src := range n.Hosts {
		for dst := range n.Hosts {
			if src == dst {
				continue
			}
			seen := map[Node]bool{}
			paths := list(Node(src), Node(dst))
			for _, path := range paths {
				at := Node(src)
				for i, l := range path {
					if Node(g.From(edge(l))) != at {
						t.Fatalf("%d to %d: %v is broken", src, dst, path)
					}
					at = n.links[l].to
					if i < len(path)-1 && (seen[at] || at == Node(src) || at == Node(dst)) {
						t.Errorf("%d to %d: node %d is twice on %v", src, dst, at, paths)
					}
					seen[at] = true
				}
				if at != Node(dst) {
					t.Errorf("%d to %d: %v ends at %d", src, dst, path, at)
				}
			}
			if len(paths) != levels {
				t.Errorf("%d to %d: %d paths, want %d", src, dst, len(paths), levels)
			}
		}
	}
}

// In VL2 each path of two steps leads over an intermediate switch: 2·D_A/2·2 of them, also between
// racks that share aggregation switches.
func TestThroughVL2(t *testing.T) {
	g, err := generate.VL2(8, 6, 1)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var middle []Node
	for v := range g.Nodes() {
		if strings.HasPrefix(g.Node(nodeOf(v)).Name, "int") {
			middle = append(middle, Node(v))
		}
	}
	s := begin(t, Config{Network: n, Transport: DefaultTransport(),
		Paths: Paths{Scheme: Random, Through: middle}})
	for dst := 1; dst < len(n.Hosts); dst++ {
		paths := s.list(n.entry[n.Hosts[0]], n.entry[n.Hosts[dst]])
		for _, path := range paths {
			if len(path) != 4 || !strings.HasPrefix(g.Node(nodeOf(int(n.links[path[1]].to))).Name,
				"int") {
				t.Fatalf("host 0 to %d: %v", dst, path)
			}
		}
		if len(paths) != 2*4*2 {
			t.Errorf("host 0 to %d: %d paths, want 16", dst, len(paths))
		}
	}
}

// Flows that switches of a VL2 hash take two steps: over each intermediate switch about as many,
// also between racks that share aggregation switches, where the shortest path leads over none.
func TestHashedThroughVL2(t *testing.T) {
	g, err := generate.VL2(8, 6, 1)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(g, NetworkConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var middle []Node
	for v := range g.Nodes() {
		if strings.HasPrefix(g.Node(nodeOf(v)).Name, "int") {
			middle = append(middle, Node(v))
		}
	}
	s := begin(t, Config{Network: n, Transport: DefaultTransport(),
		Paths: Paths{Scheme: ECMP, Through: middle}})
	src := n.Hosts[0]
	for dst := 1; dst < len(n.Hosts); dst++ {
		const flows = 4000
		over := map[Node]int{}
		for label := range uint64(flows) {
			route := s.hashedRoute(src, n.Hosts[dst], mix(label))
			var nodes []Node
			for ; s.routes[route] != none; route++ {
				nodes = append(nodes, n.links[s.routes[route]].to)
			}
			// rack, aggregation, intermediate, aggregation, rack, host
			if len(nodes) != 6 || nodes[5] != n.Hosts[dst] {
				t.Fatalf("to host %d: %v", dst, nodes)
			}
			over[nodes[2]]++
		}
		for _, v := range middle {
			if c := over[v]; c < flows/len(middle)*9/10 || c > flows/len(middle)*11/10 {
				t.Errorf("to host %d: %d of %d flows over node %d", dst, c, flows, v)
			}
		}
	}
	if _, err := New(Config{Network: n, Transport: DefaultTransport(),
		Paths: Paths{Scheme: DRILL, Through: middle}}); err == nil {
		t.Error("DRILL takes two steps")
	}
}
