package maxflow_test

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/graph/network"
	"gonum.org/v1/gonum/graph/simple"

	"sextant/te/maxflow"
	"sextant/te/topology"
)

// TestEqualsGonum compares with gonum's Dinic on graphs that are too large for brute force.
func TestEqualsGonum(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := randomGraph(t, r, 10+r.IntN(40), 20+r.IntN(150))
		ours := maxflow.NewNetwork(g.All(), maxflow.Edges, nil)
		oracle := simple.NewWeightedDirectedGraph(0, 0)
		capacity := map[[2]topology.Node]float64{}
		for e := range topology.Edge(g.Edges()) {
			capacity[[2]topology.Node{g.From(e), g.To(e)}]++
		}
		for v := range g.Nodes() {
			oracle.AddNode(simple.Node(v))
		}
		for ends, c := range capacity {
			oracle.SetWeightedEdge(simple.WeightedEdge{F: simple.Node(ends[0]),
				T: simple.Node(ends[1]), W: c})
		}
		for range 10 {
			s := topology.Node(r.IntN(g.Nodes()))
			d := topology.Node((int(s) + 1 + r.IntN(g.Nodes()-1)) % g.Nodes())
			want := network.MaxFlowDinic(oracle, simple.Node(s), simple.Node(d), 1e-9)
			if got := ours.Max(s, d, 0); float64(got) != want {
				t.Fatalf("seed %d from %d to %d: %d paths, gonum finds %v", seed, s, d, got, want)
			}
		}
	}
}
