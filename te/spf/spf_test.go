package spf_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"
	"pgregory.net/rapid"

	"sextant/te/spf"
	"sextant/te/topology"
)

// network makes a graph of some nodes with edges from, to, weight, delay.
func network(t testing.TB, nodes int, edges [][4]int) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("test", 0)
	for v := range nodes {
		if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprint("n", v)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range edges {
		spec := topology.EdgeSpec{From: topology.Node(e[0]), To: topology.Node(e[1]),
			Weight: uint32(e[2]), Delay: int64(e[3])}
		if _, err := b.AddEdge(spec); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

func tableOf(v topology.View) *spf.Table {
	return spf.New(v, func(e topology.Edge) uint64 { return uint64(v.Weight(e)) },
		func(e topology.Edge) uint64 { return uint64(v.Delay(e)) })
}

// multigraph draws a small graph with parallel and one-way edges and few different weights, so that
// many paths cost the same.
func multigraph(t *rapid.T) *topology.Graph {
	b := topology.NewBuilder("drawn", 0)
	nodes := rapid.IntRange(2, 9).Draw(t, "nodes")
	for v := range nodes {
		_, _ = b.AddNode(topology.NodeSpec{Name: fmt.Sprint("n", v)})
	}
	for range rapid.IntRange(1, 28).Draw(t, "edges") {
		from := rapid.IntRange(0, nodes-1).Draw(t, "from")
		to := (from + rapid.IntRange(1, nodes-1).Draw(t, "step")) % nodes
		_, err := b.AddEdge(topology.EdgeSpec{
			From: topology.Node(from), To: topology.Node(to),
			Weight: uint32(rapid.IntRange(1, 4).Draw(t, "weight")),
			Delay:  int64(rapid.IntRange(0, 5).Draw(t, "delay")),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// oracle is the graph for gonum, which knows no parallel edges: the cheapest stands for all.
func oracle(table *spf.Table) *simple.WeightedDirectedGraph {
	g := simple.NewWeightedDirectedGraph(0, 1e18)
	for v := range table.Graph().Nodes() {
		g.AddNode(simple.Node(v))
	}
	for e := range topology.Edge(table.Graph().Edges()) {
		from, to := int64(table.Graph().From(e)), int64(table.Graph().To(e))
		cost := float64(table.Cost(e))
		if known, ok := g.Weight(from, to); cost > 0 && (!ok || cost < known) {
			g.SetWeightedEdge(simple.WeightedEdge{F: simple.Node(from), T: simple.Node(to),
				W: cost})
		}
	}
	return g
}

func TestDistancesAreGonums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := tableOf(multigraph(t).All())
		outside := path.DijkstraAllPaths(oracle(table))
		for u := range topology.Node(table.Graph().Nodes()) {
			for v := range topology.Node(table.Graph().Nodes()) {
				want := spf.Unreachable
				if w := outside.Weight(int64(u), int64(v)); w < 1e17 {
					want = uint64(w)
				}
				if from, to := table.From(u).Dist[v], table.To(v).Dist[u]; from != want ||
					to != want {
					t.Fatalf("distance of %d to %d: %d seen from the first, %d from the second, "+
						"gonum says %d", u, v, from, to, want)
				}
			}
		}
	})
}

// shortest lists all shortest paths from u to v by walking all simple paths.
func shortest(table *spf.Table, u, v topology.Node) [][]topology.Edge {
	var best [][]topology.Edge
	bestCost := spf.Unreachable
	var walk func(at topology.Node, cost uint64, visited map[topology.Node]bool,
		taken []topology.Edge)
	walk = func(at topology.Node, cost uint64, visited map[topology.Node]bool,
		taken []topology.Edge) {
		if cost > bestCost {
			return
		}
		if at == v {
			if cost < bestCost {
				best, bestCost = nil, cost
			}
			best = append(best, append([]topology.Edge(nil), taken...))
			return
		}
		for _, a := range table.Out(at) {
			if a.Cost == 0 || visited[a.Node] {
				continue
			}
			visited[a.Node] = true
			walk(a.Node, cost+a.Cost, visited, append(taken, a.Edge))
			visited[a.Node] = false
		}
	}
	walk(u, 0, map[topology.Node]bool{u: true}, nil)
	return best
}

func TestRowsAreWhatAllPathsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		graph := multigraph(t)
		table := tableOf(graph.All())
		for u := range topology.Node(graph.Nodes()) {
			dag := map[topology.Edge]bool{}
			for v := range topology.Node(graph.Nodes()) {
				paths := shortest(table, u, v)
				checkEntry(t, graph, table.From(u), v, paths)
				checkEntry(t, graph, table.To(v), u, paths)
				for _, p := range paths {
					for _, e := range p {
						dag[e] = true
					}
				}
			}
			for e := range topology.Edge(graph.Edges()) {
				if table.From(u).Tight(e) != dag[e] {
					t.Fatalf("edge %d in the DAG of %d: %v, want %v", e, u, table.From(u).Tight(e),
						dag[e])
				}
			}
		}
	})
}

// checkEntry compares what a row says of v with the list of all shortest paths. The row's Via is
// their last edge for a row of From, the first one for a row of To.
func checkEntry(t *rapid.T, g *topology.Graph, r *spf.Row, v topology.Node,
	paths [][]topology.Edge) {
	least, worst := spf.Unreachable, spf.Unreachable
	for i, p := range paths {
		sum := uint64(0)
		for _, e := range p {
			sum += uint64(g.Delay(e))
		}
		if i == 0 || sum < least {
			least = sum
		}
		if i == 0 || sum > worst {
			worst = sum
		}
	}
	forced := least
	if len(paths) != 1 {
		forced = spf.Unreachable
	}
	got := []uint64{uint64(r.Paths(v)), r.Layer(spf.Least).Latency[v],
		r.Layer(spf.Worst).Latency[v], r.Layer(spf.Forced).Latency[v]}
	want := []uint64{uint64(min(2, len(paths))), least, worst, forced}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("row of %d at %d: paths, least, worst, forced latency (-want +got):\n%s", r.Root,
			v, diff)
	}
	if len(paths) == 1 && len(paths[0]) > 0 {
		last, first := paths[0][len(paths[0])-1], paths[0][0]
		if g.To(last) == v && r.Via[v] != last && g.From(first) != v || g.From(first) == v &&
			r.Via[v] != first {
			t.Fatalf("row of %d: Via of %d is %d, the path is %v", r.Root, v, r.Via[v], paths[0])
		}
	}
}

// snapshot copies what a row says.
type snapshot struct {
	Dist         []uint64
	Via          []topology.Edge
	Least, Worst []uint64
	LeastVia     []topology.Edge
	Tight        []bool
}

func take(r *spf.Row, edges int) snapshot {
	s := snapshot{
		Dist: append([]uint64(nil), r.Dist...), Via: append([]topology.Edge(nil), r.Via...),
		Least: r.Layer(spf.Least).Latency, Worst: r.Layer(spf.Worst).Latency,
		LeastVia: r.Layer(spf.Least).Via,
	}
	for e := range topology.Edge(edges) {
		s.Tight = append(s.Tight, r.Tight(e))
	}
	return s
}

// TestMendedRowsAreFreshRows applies batches of changes to all rows of a table, and compares them
// with a table made afterwards: every field, and the nodes said to be touched with those whose
// edges differ.
func TestMendedRowsAreFreshRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := multigraph(t)
		table := tableOf(g.All())
		cost := make([]uint64, g.Edges())
		for e := range topology.Edge(g.Edges()) {
			cost[e] = uint64(g.Weight(e))
		}
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			before := rowsOf(table)
			var changes []spf.Change
			for range rapid.IntRange(1, 5).Draw(t, "changes") {
				c := spf.Change{
					Edge: topology.Edge(rapid.IntRange(0, g.Edges()-1).Draw(t, "edge")),
					Cost: uint64(rapid.IntRange(0, 4).Draw(t, "cost")),
				}
				cost[c.Edge] = c.Cost
				changes = append(changes, c)
			}
			effects := table.Apply(changes...)
			after := rowsOf(table)
			fresh := rowsOf(spf.New(g.All(), func(e topology.Edge) uint64 { return cost[e] },
				func(e topology.Edge) uint64 { return uint64(g.Delay(e)) }))
			if diff := cmp.Diff(fresh, after); diff != "" {
				t.Fatalf("after %v (-fresh +mended):\n%s", changes, diff)
			}
			checkEffects(t, g, before, after, effects)
		}
	})
}

// rowsOf takes the rows from all nodes, then those to all nodes.
func rowsOf(table *spf.Table) []snapshot {
	var rows []snapshot
	n := topology.Node(table.Graph().Nodes())
	for v := range n {
		rows = append(rows, take(table.From(v), table.Graph().Edges()))
	}
	for v := range n {
		rows = append(rows, take(table.To(v), table.Graph().Edges()))
	}
	return rows
}

// checkEffects wants each node whose edges differ among the touched. A node may be named that was
// changed by the dearer edges and changed back by the cheaper ones.
func checkEffects(t *rapid.T, g *topology.Graph, before, after []snapshot, effects []spf.Effect) {
	named := map[[2]int]bool{}
	for _, e := range effects {
		row := int(e.Root)
		if e.Toward {
			row += g.Nodes()
		}
		for _, v := range e.Touched {
			named[[2]int{row, int(v)}] = true
		}
	}
	for row := range before {
		for e := range topology.Edge(g.Edges()) {
			far := g.To(e)
			if row >= g.Nodes() {
				far = g.From(e)
			}
			if before[row].Tight[e] != after[row].Tight[e] && !named[[2]int{row, int(far)}] {
				t.Fatalf("row %d: edge %d joined or left, but node %d is not touched: %v", row, e,
					far, effects)
			}
		}
	}
}

// TestManyRowsMendAlike makes enough rows for several goroutines, and the same rows after one
// change at a time and after all.
func TestManyRowsMendAlike(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var edges [][4]int
	const nodes = 90
	for v := range nodes {
		for range 3 {
			u, weight := (v+1+rnd.IntN(nodes-1))%nodes, 1+rnd.IntN(9)
			edges = append(edges, [4]int{v, u, weight, 1}, [4]int{u, v, weight, 1})
		}
	}
	g := network(t, nodes, edges)
	single, batch := tableOf(g.All()), tableOf(g.All())
	rowsOf(single)
	rowsOf(batch)
	var changes []spf.Change
	for e := 0; e < g.Edges(); e += 11 {
		changes = append(changes, spf.Change{Edge: topology.Edge(e), Cost: uint64(rnd.IntN(12))})
		single.Apply(changes[len(changes)-1])
	}
	batch.Apply(changes...)
	if diff := cmp.Diff(rowsOf(single), rowsOf(batch)); diff != "" {
		t.Errorf("(-one at a time +all at once):\n%s", diff)
	}
}

// TestQueueIsOrdered pushes costs that do not fall below the last one popped, and wants them in
// order.
func TestQueueIsOrdered(t *testing.T) {
	var q spf.Queue
	rapid.Check(t, func(t *rapid.T) {
		most, bits := uint64(1)<<60, 60
		if q.Reset(); rapid.Bool().Draw(t, "ring") {
			most, bits = 1000, 10
			q.ResetWithin(most)
		}
		var waiting []uint64
		last := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") || len(waiting) == 0 {
				cost := last + min(most, rapid.Uint64Range(0,
					1<<rapid.IntRange(0, bits).Draw(t, "bits")).Draw(t, "more"))
				q.Push(spf.Item{Cost: cost})
				waiting = append(waiting, cost)
				continue
			}
			least := slices.Min(waiting)
			if got := q.Pop().Cost; got != least {
				t.Fatalf("popped %d, want %d of %v", got, least, waiting)
			}
			last = least
			i := slices.Index(waiting, least)
			waiting = slices.Delete(waiting, i, i+1)
		}
		if q.Len() != len(waiting) {
			t.Fatalf("%d items, want %d", q.Len(), len(waiting))
		}
	})
}

func TestForgottenRowIsComputedAgain(t *testing.T) {
	g := network(t, 3, [][4]int{{0, 1, 1, 1}, {1, 2, 1, 1}, {0, 2, 5, 1}})
	table := tableOf(g.All())
	if d := table.From(0).Dist[2]; d != 2 {
		t.Fatalf("distance %d, want 2", d)
	}
	table.Forget(0)
	table.Apply(spf.Change{Edge: 1})
	if d := table.From(0).Dist[2]; d != 5 {
		t.Errorf("distance %d after the edge went off, want 5", d)
	}
}

// TestPassingRowsGo asks for rows for a moment and for good, and sees which of them changes mend.
func TestPassingRowsGo(t *testing.T) {
	g := network(t, 3, [][4]int{{0, 1, 1, 1}, {1, 2, 1, 1}, {0, 2, 5, 1}})
	table := tableOf(g.All())
	held, toward := table.From(0), table.To(2)
	passing := table.Passing(1, false)
	if table.Passing(0, false) != held || table.Passing(2, true) != toward ||
		table.Passing(1, false) != passing {
		t.Error("rows that exist are computed again")
	}
	table.Apply(spf.Change{Edge: 1})
	if passing.Dist[2] != spf.Unreachable || table.Passing(1, false) != passing {
		t.Error("a row that was asked for since the last change was not mended")
	}
	for _, cost := range []uint64{7, 9} {
		table.Apply(spf.Change{Edge: 1, Cost: cost})
	}
	again := table.Passing(1, false)
	if again == passing || again.Dist[2] != 9 {
		t.Errorf("a row that nobody asked for is held, or wrong: distance %d, want 9",
			again.Dist[2])
	}
	if table.From(0) != held || table.To(2) != toward || held.Dist[2] != 5 {
		t.Error("rows that are held were not mended")
	}
}

// TestGridIsCountedNotListed has more equal-cost paths than could be listed: C(398, 199) between
// the corners.
func TestGridIsCountedNotListed(t *testing.T) {
	const side = 200
	var edges [][4]int
	for y := range side {
		for x := range side {
			v := y*side + x
			if x+1 < side {
				edges = append(edges, [4]int{v, v + 1, 1, 1}, [4]int{v + 1, v, 1, 1})
			}
			if y+1 < side {
				edges = append(edges, [4]int{v, v + side, 1, 1}, [4]int{v + side, v, 1, 1})
			}
		}
	}
	r := tableOf(network(t, side*side, edges).All()).From(0)
	if far := topology.Node(side*side - 1); r.Paths(far) != 2 || r.Dist[far] != 2*(side-1) ||
		r.Layer(spf.Worst).Latency[far] != 2*(side-1) {
		t.Errorf("corner: %d paths, distance %d", r.Paths(far), r.Dist[far])
	}
}
