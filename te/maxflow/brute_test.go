package maxflow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"sextant/te/maxflow"
	"sextant/te/topology"
)

// randomGraph is a small multigraph: parallel links, one-way links and unconnected parts occur.
func randomGraph(t *testing.T, r *rand.Rand, nodes, edges int) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("random", 0)
	for v := range nodes {
		if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprintf("n%d", v)}); err != nil {
			t.Fatal(err)
		}
	}
	for range edges {
		from := topology.Node(r.IntN(nodes))
		to := topology.Node((int(from) + 1 + r.IntN(nodes-1)) % nodes)
		spec := topology.EdgeSpec{From: from, To: to, Weight: 1 + uint32(r.IntN(3)),
			Delay: int64(r.IntN(5))}
		if _, err := b.AddEdge(spec); err != nil {
			t.Fatal(err)
		}
		if r.IntN(4) > 0 {
			spec.From, spec.To = to, from
			if _, err := b.AddEdge(spec); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// brute tries all sets of disjoint simple paths.
type brute struct {
	view    topology.View
	nodes   bool // disjoint in nodes
	t       topology.Node
	paths   [][]topology.Edge
	best    []int64 // of each number of paths, the least total delay
	visited []bool
}

func newBrute(view topology.View, nodes bool, s, t topology.Node) *brute {
	b := &brute{view: view, nodes: nodes, t: t, visited: make([]bool, view.Nodes())}
	b.walk(s, nil)
	b.choose(0, 0, map[topology.Edge]bool{}, map[topology.Node]bool{}, 0)
	return b
}

func (b *brute) walk(v topology.Node, path []topology.Edge) {
	if v == b.t {
		b.paths = append(b.paths, slices.Clone(path))
		return
	}
	b.visited[v] = true
	for _, e := range b.view.Out(v) {
		if b.view.Up(e) && !b.visited[b.view.To(e)] {
			b.walk(b.view.To(e), append(path, e))
		}
	}
	b.visited[v] = false
}

func (b *brute) choose(from, count int, edges map[topology.Edge]bool, nodes map[topology.Node]bool,
	delay int64) {
	if count == len(b.best) {
		b.best = append(b.best, delay)
	}
	b.best[count] = min(b.best[count], delay)
	for i := from; i < len(b.paths); i++ {
		if !b.fits(b.paths[i], edges, nodes) {
			continue
		}
		added := delay
		for _, e := range b.paths[i] {
			edges[e] = true
			nodes[b.view.To(e)] = true
			added += b.view.Delay(e)
		}
		b.choose(i+1, count+1, edges, nodes, added)
		for _, e := range b.paths[i] {
			delete(edges, e)
			delete(nodes, b.view.To(e))
		}
	}
}

func (b *brute) fits(path []topology.Edge, edges map[topology.Edge]bool,
	nodes map[topology.Node]bool) bool {
	for _, e := range path {
		if edges[e] || b.nodes && b.view.To(e) != b.t && nodes[b.view.To(e)] {
			return false
		}
	}
	return true
}

func TestEqualsBruteForce(t *testing.T) {
	for seed := range uint64(1500) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := randomGraph(t, r, 3+r.IntN(4), 3+r.IntN(6))
		view := g.All()
		if seed%3 == 0 {
			view = view.Without(topology.Edge(r.IntN(g.Edges())))
		}
		for _, sharing := range []maxflow.Sharing{maxflow.Edges, maxflow.Nodes} {
			network := maxflow.NewNetwork(view, sharing, nil)
			for to := topology.Node(1); int(to) < g.Nodes(); to++ {
				compare(t, seed, view, sharing, network, to)
			}
		}
	}
}

func compare(t *testing.T, seed uint64, view topology.View, sharing maxflow.Sharing,
	network *maxflow.Network, to topology.Node) {
	t.Helper()
	want := newBrute(view, sharing == maxflow.Nodes, 0, to)
	most := len(want.best) - 1
	if got := network.Max(0, to, 0); got != most {
		t.Fatalf("seed %d sharing %d to %d: %d paths, brute force finds %d", seed, sharing, to, got,
			most)
	}
	if cut := network.Cut(); cut.Size() != most {
		t.Fatalf("seed %d sharing %d to %d: cut %v does not have the size %d", seed, sharing, to,
			cut, most)
	}
	disjoint(t, seed, view, sharing, network.Paths(), most, to)
	for k := 1; k <= most+1; k++ {
		found, total := network.Cheapest(0, to, k, nil)
		if found != min(k, most) || total != want.best[found] {
			t.Fatalf("seed %d sharing %d to %d: the cheapest %d are %d of %d, brute force finds %d",
				seed, sharing, to, k, found, total, want.best[found])
		}
		disjoint(t, seed, view, sharing, network.Paths(), found, to)
	}
	bridges := network.Bridges(0, to)
	for e := range topology.Edge(view.Edges()) {
		bridge := most > 0 && view.Up(e) && !slices.ContainsFunc(want.paths,
			func(p []topology.Edge) bool { return !slices.Contains(p, e) })
		if bridge != slices.Contains(bridges, e) {
			t.Fatalf("seed %d to %d: edge %d is a bridge: %v, but the bridges are %v", seed, to,
				e, bridge, bridges)
		}
	}
}

// disjoint checks that paths are paths, as many as said, and share nothing.
func disjoint(t *testing.T, seed uint64, view topology.View, sharing maxflow.Sharing,
	paths [][]topology.Edge, count int, to topology.Node) {
	t.Helper()
	if len(paths) != count {
		t.Fatalf("seed %d: %d paths listed of %d", seed, len(paths), count)
	}
	edges, nodes := map[topology.Edge]bool{}, map[topology.Node]bool{}
	for _, p := range paths {
		at := topology.Node(0)
		own := map[topology.Node]bool{0: true}
		for _, e := range p {
			shared := edges[e] || sharing == maxflow.Nodes && nodes[view.To(e)]
			if view.From(e) != at || !view.Up(e) || shared || own[view.To(e)] {
				t.Fatalf("seed %d: the paths %v share an edge or node, or are none", seed, paths)
			}
			if back := view.Reverse(e); back != topology.NoEdge && edges[back] {
				t.Fatalf("seed %d: the paths %v cross a link in both directions", seed, paths)
			}
			at = view.To(e)
			edges[e] = true
			own[at] = true
			nodes[at] = at != to
		}
		if at != to {
			t.Fatalf("seed %d: the path %v does not end at %d", seed, p, to)
		}
	}
}

func TestAllowedEdges(t *testing.T) {
	b := topology.NewBuilder("two", 0)
	for _, name := range []string{"a", "b"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if _, err := b.AddEdge(topology.EdgeSpec{From: 0, To: 1, Weight: 1}); err != nil {
			t.Fatal(err)
		}
	}
	network := maxflow.NewNetwork(b.Build().All(), maxflow.Nodes, []bool{true, false, true})
	if got := network.Max(0, 1, 0); got != 2 {
		t.Errorf("%d paths over two allowed parallel edges", got)
	}
	if got := network.Max(0, 1, 1); got != 1 {
		t.Errorf("%d paths, asked for at most one", got)
	}
	if got := network.Clone().Max(0, 1, 0); got != 2 {
		t.Errorf("%d paths in a clone", got)
	}
	if got := network.Max(1, 0, 0); got != 0 {
		t.Errorf("%d paths against the direction of the edges", got)
	}
	if got := network.Max(1, 1, 0); got != 0 {
		t.Errorf("%d paths from a node to itself", got)
	}
}
