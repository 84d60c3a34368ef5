package reroute

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sextant/packet/flow"
	"sextant/te/topology"
)

// network makes a graph of links "a-b" in both directions, or "a-b:capacity".
func network(t testing.TB, links ...string) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("test", time.Microsecond)
	node := func(name string) topology.Node {
		v, ok := b.Lookup(name)
		if !ok {
			var err error
			if v, err = b.AddNode(topology.NodeSpec{Name: name}); err != nil {
				t.Fatal(err)
			}
		}
		return v
	}
	for _, link := range links {
		ends, text, _ := strings.Cut(link, ":")
		from, to, _ := strings.Cut(ends, "-")
		capacity := int64(0)
		fmt.Sscan(text, &capacity)
		for _, pair := range [][2]string{{from, to}, {to, from}} {
			if _, err := b.AddEdge(topology.EdgeSpec{From: node(pair[0]), To: node(pair[1]),
				Weight: 1, CapacityKbps: capacity}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// between is the first link from one node to another.
func between(t testing.TB, g *topology.Graph, link string) topology.Edge {
	t.Helper()
	from, to, _ := strings.Cut(link, "-")
	u, ok := g.Lookup(from)
	v, ok2 := g.Lookup(to)
	if ok && ok2 {
		for _, e := range g.Out(u) {
			if g.To(e) == v {
				return e
			}
		}
	}
	t.Fatalf("no link %s", link)
	return topology.NoEdge
}

// route is a path through nodes that are named in order.
func route(t testing.TB, g *topology.Graph, names ...string) []topology.Edge {
	t.Helper()
	var path []topology.Edge
	for i := range len(names) - 1 {
		path = append(path, between(t, g, names[i]+"-"+names[i+1]))
	}
	return path
}

func nodes(t testing.TB, g *topology.Graph, path []topology.Edge) string {
	t.Helper()
	var names []string
	for i, e := range path {
		if i == 0 {
			names = append(names, g.Node(g.From(e)).Name)
		}
		names = append(names, g.Node(g.To(e)).Name)
	}
	return strings.Join(names, " ")
}

func tuple(n int) flow.Tuple {
	return flow.Tuple{Src: netip.MustParseAddr("2001:db8::1"),
		Dst: netip.MustParseAddr("2001:db8::2"), SrcPort: uint16(n), DstPort: 5050,
		Protocol: 6}
}

func decider(t testing.TB, g *topology.Graph, s Settings, seed uint64) *Decider {
	t.Helper()
	d, err := NewDecider(g.All(), s, seed)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// allPaths lists the simple paths of least length by trying all.
func allPaths(g *topology.Graph, from, to topology.Node) [][]topology.Edge {
	var found [][]topology.Edge
	var path []topology.Edge
	visited := make([]bool, g.Nodes())
	var visit func(v topology.Node)
	visit = func(v topology.Node) {
		if v == to {
			if len(found) > 0 && len(path) < len(found[0]) {
				found = nil
			}
			if len(found) == 0 || len(path) == len(found[0]) {
				found = append(found, append([]topology.Edge(nil), path...))
			}
			return
		}
		visited[v] = true
		for _, e := range g.Out(v) {
			if !visited[g.To(e)] {
				path = append(path, e)
				visit(g.To(e))
				path = path[:len(path)-1]
			}
		}
		visited[v] = false
	}
	visit(from)
	return found
}

// randomNetwork has parallel links, and pairs without any path.
func randomNetwork(t testing.TB, random *rand.Rand, size, links int) *topology.Graph {
	var list []string
	for range links {
		u, v := random.IntN(size), random.IntN(size)
		if u != v {
			list = append(list, fmt.Sprintf("%d-%d", u, v))
		}
	}
	return network(t, append(list, "0-1")...)
}
