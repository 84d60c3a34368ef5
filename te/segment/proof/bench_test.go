package proof_test

import (
	"math/rand/v2"
	"testing"

	gonumflow "gonum.org/v1/gonum/graph/network"
	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"

	"sextant/te/maxflow"
	"sextant/te/segment"
	"sextant/te/segment/proof"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
)

func open(b *testing.B, name string) *topology.Graph {
	b.Helper()
	g, err := dataset.Open("paper-table3/" + name)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// BenchmarkProof proves the greatest number of disjoint paths of all ordered pairs, edge-disjoint,
// as the paper's integer program did for these two networks.
func BenchmarkProof(b *testing.B) {
	for _, name := range []string{"AS1755", "AS3967"} {
		for _, q := range []segment.Query{
			{Model: segment.Paper, Disjoint: segment.EdgeDisjoint, MaxSIDs: 3},
			{Model: segment.ForcedAdjacency, Disjoint: segment.EdgeDisjoint, MaxSIDs: 4},
		} {
			b.Run(name+"/"+string(q.Model), func(b *testing.B) {
				g := open(b, name)
				pairs, proven := 0, 0
				for b.Loop() {
					p := proof.New(g.All(), q, proof.Effort{})
					eachPair(g, func(s, t topology.Node) {
						pairs++
						if p.Count(s, t).Optimal() {
							proven++
						}
					})
				}
				b.ReportMetric(100*float64(proven)/float64(pairs), "%proven")
			})
		}
	}
}

// BenchmarkPair proves the least total delay of a link-disjoint pair, for all ordered pairs.
func BenchmarkPair(b *testing.B) {
	for _, name := range []string{"AS1755", "AS3967"} {
		b.Run(name, func(b *testing.B) {
			g := open(b, name)
			pairs, proven := 0, 0
			for b.Loop() {
				q := segment.Query{Model: segment.ForcedAdjacency, Disjoint: segment.LinkDisjoint,
					MaxSIDs: segment.DefaultMaxSIDs}
				p := proof.New(g.All(), q, proof.Effort{})
				eachPair(g, func(s, t topology.Node) {
					pair := p.Pair(s, t, proof.LeastTotal)
					if pair.By == proof.ByNoPair {
						return
					}
					pairs++
					if pair.Optimal() {
						proven++
					}
				})
			}
			b.ReportMetric(100*float64(proven)/float64(pairs), "%proven")
		})
	}
}

func eachPair(g *topology.Graph, visit func(s, t topology.Node)) {
	for s := range topology.Node(g.Nodes()) {
		for t := range topology.Node(g.Nodes()) {
			if s != t {
				visit(s, t)
			}
		}
	}
}

// BenchmarkOutside puts numbers beside those of BenchmarkG1AllPairs: one shortest path, without
// segments or disjointness, and one maximum flow, between two routers of AS1239, by gonum; ours of
// the latter; and what the paper reports for all disjoint paths of a pair, on another machine and
// network.
func BenchmarkOutside(b *testing.B) {
	g := open(b, "AS1239")
	oracle := simple.NewWeightedDirectedGraph(0, 0)
	for e := range topology.Edge(g.Edges()) {
		from, to := simple.Node(g.From(e)), simple.Node(g.To(e))
		oracle.SetWeightedEdge(simple.WeightedEdge{F: from, T: to, W: float64(g.Weight(e))})
	}
	random := rand.New(rand.NewPCG(1, 1))
	pair := func() (s, t topology.Node) {
		s = topology.Node(random.IntN(g.Nodes()))
		return s, topology.Node((int(s) + 1 + random.IntN(g.Nodes()-1)) % g.Nodes())
	}
	b.Run("gonum/one shortest path", func(b *testing.B) {
		for b.Loop() {
			s, t := pair()
			tree := path.DijkstraFrom(simple.Node(s), oracle)
			tree.To(int64(t))
		}
	})
	b.Run("gonum/maximum flow", func(b *testing.B) {
		for b.Loop() {
			s, t := pair()
			gonumflow.MaxFlowDinic(oracle, simple.Node(s), simple.Node(t), 1e-9)
		}
	})
	b.Run("sextant/maximum flow", func(b *testing.B) {
		ours := maxflow.NewNetwork(g.All(), maxflow.Edges, nil)
		for b.Loop() {
			s, t := pair()
			ours.Max(s, t, 0)
		}
	})
	b.Run("paper/all disjoint paths", func(b *testing.B) {
		for b.Loop() { // nothing runs: the number is printed beside the others
		}
		b.ReportMetric(315e6, "ns/op")
	})
}
