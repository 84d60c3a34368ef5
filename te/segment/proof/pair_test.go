package proof_test

import (
	"math/rand/v2"
	"testing"

	"sextant/te/segment"
	"sextant/te/segment/proof"
	"sextant/te/topology"
)

func TestPairEqualsBruteForce(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		g := randomGraph(t, r, 3+r.IntN(4), 3+r.IntN(6))
		sids := 1 + r.IntN(4)
		for _, model := range segment.Models() {
			kind := kinds[r.IntN(len(kinds))]
			brute := newBrute(g, model, sids, kind)
			p := proof.New(g.All(), segment.Query{Model: model, Disjoint: kind, MaxSIDs: sids},
				proof.Effort{})
			for d := topology.Node(1); int(d) < g.Nodes(); d++ {
				want := brute.solve(0, d)
				for _, goal := range []proof.Objective{proof.LeastTotal, proof.LeastWorst} {
					value := want.total
					if goal == proof.LeastWorst {
						value = want.max
					}
					got := p.Pair(0, d, goal)
					if want.most < 2 {
						if got.Paths != nil || got.By != proof.ByNoPair {
							t.Fatalf("seed %d %s %s K=%d to %d: found %v by %s where there is no "+
								"pair", seed, model, kind, sids, d, got.Paths, got.By)
						}
						continue
					}
					if !got.Optimal() || got.Value != value {
						t.Fatalf("seed %d %s %s K=%d to %d: least %s %d, bound %d by %s; brute "+
							"force finds %d",
							seed, model, kind, sids, d, goal, got.Value, got.Bound, got.By, value)
					}
					disjoint(t, brute, got.Paths, 0, d)
				}
			}
		}
	}
}
