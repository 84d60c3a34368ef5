package elephant

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sextant/te/topology"
	"sextant/te/topology/generate"
)

func hops(topology.Edge) uint64 { return 1 }

// randomNetwork has up to 8 nodes, parallel links and links of different capacity.
func randomNetwork(t *testing.T, rng *rand.Rand) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("random", 0)
	nodes := 2 + rng.IntN(7)
	for v := range nodes {
		if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprint("n", v)}); err != nil {
			t.Fatal(err)
		}
	}
	for range nodes + rng.IntN(3*nodes) {
		u, v := topology.Node(rng.IntN(nodes)), topology.Node(rng.IntN(nodes))
		if u == v {
			continue
		}
		e := topology.EdgeSpec{From: u, To: v, Weight: uint32(1 + rng.IntN(2)),
			CapacityKbps: int64(1+rng.IntN(2)) * 1000}
		back := e
		back.From, back.To = v, u
		for _, one := range []topology.EdgeSpec{e, back} {
			if _, err := b.AddEdge(one); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// shortestPaths lists all paths of the least weight by trying all ways without a loop.
func shortestPaths(g *topology.Graph, from, to topology.Node, off map[topology.Edge]bool) (
	paths [][]topology.Edge) {
	least := uint64(math.MaxUint64)
	var walk func(path []topology.Edge, v topology.Node, seen map[topology.Node]bool, cost uint64)
	walk = func(path []topology.Edge, v topology.Node, seen map[topology.Node]bool, cost uint64) {
		if cost > least {
			return
		}
		if v == to {
			if cost < least {
				least, paths = cost, nil
			}
			if cost == least {
				paths = append(paths, slices.Clone(path))
			}
			return
		}
		for _, e := range g.Out(v) {
			if u := g.To(e); !seen[u] && !off[e] {
				seen[u] = true
				walk(append(path, e), u, seen, cost+uint64(g.Weight(e)))
				delete(seen, u)
			}
		}
	}
	walk(nil, from, map[topology.Node]bool{from: true}, 0)
	return paths
}

// scoreOf scores a path from the flows alone.
func scoreOf(g *topology.Graph, by Objective, path []topology.Edge, flows map[Flow][]topology.Edge,
	weights []float64) score {
	var most int64
	for e := range topology.Edge(g.Edges()) {
		most = max(most, g.Edge(e).CapacityKbps)
	}
	var s score
	for _, e := range path {
		load := 0
		for _, other := range flows {
			if slices.Contains(other, e) {
				load++
			}
		}
		s.second += int64(load)
		if by == Weight {
			s.first += weights[e]
		} else {
			s.first = max(s.first, float64(load+1)*float64(most)/float64(g.Edge(e).CapacityKbps))
		}
	}
	return s
}

// Each flow that arrives gets a shortest path than which none of all is better; links go down and
// come back meanwhile, and flows leave.
func TestAgainstAllPaths(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 0))
		g := randomNetwork(t, rng)
		weights := make([]float64, g.Edges())
		s := New(g.All(), nil, Settings{
			Cost:   func(e topology.Edge) uint64 { return uint64(g.Weight(e)) },
			Weight: func(e topology.Edge) float64 { return weights[e] }})
		flows, off := map[Flow][]topology.Edge{}, map[topology.Edge]bool{}
		for range 30 {
			for e := range weights {
				weights[e] = float64(rng.IntN(8)) / 8 // sums are exact
			}
			ends := Ends{topology.Node(rng.IntN(g.Nodes())), topology.Node(rng.IntN(g.Nodes()))}
			by := Objective(rng.IntN(2))
			all := shortestPaths(g, ends.From, ends.To, off)
			placed, err := s.Place(by, ends)
			switch {
			case len(all) == 0 && errors.Is(err, ErrNoPath):
			case len(all) == 0 || err != nil:
				t.Fatalf("seed %d: %d paths, and %v", seed, len(all), err)
			default:
				checkBest(t, g, by, s.Path(placed[0]), all, flows, weights)
				flows[placed[0]] = s.Path(placed[0])
			}
			if g.Edges() > 0 {
				e := topology.Edge(rng.IntN(g.Edges()))
				up := rng.IntN(2) == 0
				delete(off, e)
				if s.SetUp(e, up); !up {
					off[e] = true
				}
			}
			for _, f := range s.Moved() {
				flows[f] = s.Path(f)
			}
			for f, path := range flows {
				checkShortest(t, g, path, off)
				if !slices.Equal(s.Path(f), path) {
					t.Fatalf("seed %d: flow %d has moved without being among the moved", seed, f)
				}
				if rng.IntN(4) == 0 {
					s.Remove(f)
					delete(flows, f)
				}
			}
			checkLoads(t, s, flows)
		}
	}
}

func checkBest(t *testing.T, g *topology.Graph, by Objective, path []topology.Edge,
	all [][]topology.Edge, flows map[Flow][]topology.Edge, weights []float64) {
	t.Helper()
	if !slices.ContainsFunc(all, func(p []topology.Edge) bool { return slices.Equal(p, path) }) {
		t.Fatalf("%v is none of the shortest paths %v", path, all)
	}
	got := scoreOf(g, by, path, flows, weights)
	for _, other := range all {
		if want := scoreOf(g, by, other, flows, weights); want.less(got) {
			t.Fatalf("by %s, %v has %v, and %v has %v", by, path, got, other, want)
		}
	}
}

// checkShortest wants a path that routers take, if there is one.
func checkShortest(t *testing.T, g *topology.Graph, path []topology.Edge,
	off map[topology.Edge]bool) {
	t.Helper()
	if len(path) == 0 {
		return
	}
	all := shortestPaths(g, g.From(path[0]), g.To(path[len(path)-1]), off)
	if len(all) > 0 && !slices.ContainsFunc(all, func(p []topology.Edge) bool {
		return slices.Equal(p, path)
	}) {
		t.Fatalf("a flow is on %v, and the shortest paths are %v", path, all)
	}
}

// checkLoads counts flows of links from scratch.
func checkLoads(t *testing.T, s *Scheduler, flows map[Flow][]topology.Edge) {
	t.Helper()
	want := make([]int, s.graph.Edges())
	for _, path := range flows {
		for _, e := range path {
			want[e]++
		}
	}
	for e, n := range want {
		if got := s.Load(topology.Edge(e)); got != n {
			t.Fatalf("%d flows are counted on link %d, %d are there", got, e, n)
		}
	}
}

// leavesOf are the routers with hosts: those of a degree that cores and aggregations have not.
func leavesOf(g *topology.Graph, prefix string) (leaves []topology.Node) {
	for v := range topology.Node(g.Nodes()) {
		if strings.HasPrefix(g.Node(v).Name, prefix) {
			leaves = append(leaves, v)
		}
	}
	return leaves
}

// By coloring no link carries two flows of a permutation, whatever comes and goes; flows that were
// there and are not named as moved keep their paths; all paths are shortest ones.
func TestColoring(t *testing.T) {
	for _, k := range []int{2, 4, 8} {
		g, err := generate.FatTree(k)
		if err != nil {
			t.Fatal(err)
		}
		leaves := leavesOf(g, "edge")
		s := New(g.All(), leaves, Settings{Cost: hops})
		if s.Colors() != nil {
			t.Fatal(s.Colors())
		}
		rng := rand.New(rand.NewPCG(uint64(k), 0))
		hosts := len(leaves) * k / 2
		to := rng.Perm(hosts)
		flows, paths := make([]Flow, hosts), map[Flow][]topology.Edge{}
		place := func(src int) {
			placed, err := s.Place(Coloring, Ends{leaves[src/(k/2)], leaves[to[src]/(k/2)]})
			if err != nil {
				t.Fatal(err)
			}
			flows[src] = placed[0]
			paths[placed[0]] = s.Path(placed[0])
			for _, f := range s.Moved() {
				paths[f] = s.Path(f)
			}
			for e := range topology.Edge(g.Edges()) {
				if s.Load(e) > 1 {
					t.Fatalf("k = %d: link %d carries %d flows", k, e, s.Load(e))
				}
			}
		}
		for src := range hosts {
			place(src)
		}
		for range 10 * k {
			a, b := rng.IntN(hosts), rng.IntN(hosts)
			if a == b {
				continue
			}
			for _, src := range []int{a, b} {
				s.Remove(flows[src])
				delete(paths, flows[src])
			}
			to[a], to[b] = to[b], to[a]
			place(a)
			place(b)
			checkLoads(t, s, paths)
			for src := range hosts {
				ends := Ends{leaves[src/(k/2)], leaves[to[src]/(k/2)]}
				path := s.Path(flows[src])
				if !slices.Equal(path, paths[flows[src]]) {
					t.Fatalf("flow of host %d has moved unnamed", src)
				}
				checkWay(t, g, ends, path, k)
			}
		}
	}
}

// checkWay wants a path that leads from edge switch to edge switch by as few links as can be.
func checkWay(t *testing.T, g *topology.Graph, ends Ends, path []topology.Edge, k int) {
	t.Helper()
	pod := func(v topology.Node) string {
		name, _, _ := strings.Cut(g.Node(v).Name, "-")
		return name
	}
	want, at := 4, ends.From
	switch {
	case ends.From == ends.To:
		want = 0
	case pod(ends.From) == pod(ends.To):
		want = 2
	}
	for _, e := range path {
		if g.From(e) != at {
			t.Fatalf("k = %d: the path %v breaks off", k, path)
		}
		at = g.To(e)
	}
	if at != ends.To || len(path) != want {
		t.Fatalf("k = %d: %v leads from %s to %s by %d links, want %s by %d", k, path,
			g.Node(ends.From).Name, g.Node(at).Name, len(path), g.Node(ends.To).Name, want)
	}
}

// What is no folded Clos network is told what differs; nothing changes.
func TestNoColoring(t *testing.T) {
	tree, _ := generate.FatTree(4)
	grid, _ := generate.Grid(3, 3)
	vl2, _ := generate.VL2(4, 4, 1)
	edges := leavesOf(tree, "edge")
	for name, s := range map[string]*Scheduler{
		"hosts":                 New(tree.All(), nil, Settings{Cost: hops}),
		"both have":             New(grid.All(), []topology.Node{0, 1, 2}, Settings{Cost: hops}),
		"neighbours":            New(grid.All(), []topology.Node{0, 4}, Settings{Cost: hops}),
		"differ":                New(tree.All(), edges, Settings{Cost: unevenCost}),
		"two switches of a pod": New(vl2.All(), leavesOf(vl2, "tor"), Settings{Cost: hops}),
	} {
		_, err := s.Place(Coloring, Ends{0, 1})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, have %v", name, err)
		}
		for e := range topology.Edge(s.graph.Edges()) {
			if s.Load(e) != 0 {
				t.Errorf("%s: a link has a flow", name)
			}
		}
	}
}

// unevenCost makes one link dearer.
func unevenCost(e topology.Edge) uint64 {
	if e == 0 {
		return 2
	}
	return 1
}

// A flow of the coloring whose path has a link that is down takes another one.
func TestColoringAroundAFailure(t *testing.T) {
	g, err := generate.SpineLeaf(4, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	leaves := leavesOf(g, "leaf")
	s := New(g.All(), leaves, Settings{Cost: hops})
	placed, err := s.Place(Coloring, Ends{leaves[0], leaves[1]}, Ends{leaves[0], leaves[2]})
	if err != nil {
		t.Fatal(err)
	}
	lost := s.Path(placed[0])[1]
	s.SetUp(lost, false)
	if moved := s.Moved(); !slices.Equal(moved, placed[:1]) ||
		slices.Contains(s.Path(placed[0]), lost) {
		t.Errorf("moved %v, now at %v", moved, s.Path(placed[0]))
	}
	if _, err := s.Place(Coloring, Ends{leaves[3], leaves[1]}); err != nil {
		t.Error(err)
	}
}

// Paths that a connection asks for together do not meet, and asking places nothing.
func TestBest(t *testing.T) {
	g, err := generate.SpineLeaf(4, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	leaves := leavesOf(g, "leaf")
	s := New(g.All(), leaves, Settings{Cost: hops, Herd: 0.02})
	for _, by := range []Objective{Flows, Weight} {
		paths, err := s.Best(Ends{leaves[0], leaves[1]}, by, 4)
		if err != nil || len(paths) != 4 {
			t.Fatal(paths, err)
		}
		used := map[topology.Edge]bool{}
		for _, path := range paths {
			for _, e := range path {
				if used[e] || s.Load(e) != 0 {
					t.Errorf("by %s: link %d is on two paths, or has a flow", by, e)
				}
				used[e] = true
			}
		}
	}
	if _, err := s.Best(Ends{leaves[0], leaves[1]}, Coloring, 1); err == nil {
		t.Error("a path by coloring without a flow")
	}
}

// BenchmarkPlace places the flows of a permutation one after the other, and changes one.
func BenchmarkPlace(b *testing.B) {
	for _, k := range []int{16, 48} {
		g, err := generate.FatTree(k)
		if err != nil {
			b.Fatal(err)
		}
		leaves := leavesOf(g, "edge")
		hosts := len(leaves) * k / 2
		ends := make([]Ends, hosts)
		for src, dst := range rand.New(rand.NewPCG(1, 0)).Perm(hosts) {
			ends[src] = Ends{leaves[src/(k/2)], leaves[dst/(k/2)]}
		}
		for _, by := range []Objective{Flows, Coloring} {
			b.Run(fmt.Sprintf("%s/k=%d/all", by, k), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					s := New(g.All(), leaves, Settings{Cost: hops})
					for _, v := range leaves {
						s.table.To(v)
					}
					b.StartTimer()
					if _, err := s.Place(by, ends...); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
