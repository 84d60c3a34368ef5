package spf_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/te/spf"
	"sextant/te/topology"
)

// TestHopsAreTheShortestPaths compares hops with the edges that are tight: each is there once,
// those to a node lie together, behind those to the nodes that they come from.
func TestHopsAreTheShortestPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := tableOf(multigraph(t).All())
		for root := range topology.Node(table.Graph().Nodes()) {
			for _, row := range []*spf.Row{table.From(root), table.To(root)} {
				var want, got []topology.Edge
				for e := range topology.Edge(table.Graph().Edges()) {
					if row.Tight(e) {
						want = append(want, e)
					}
				}
				done, last := map[topology.Node]bool{root: true}, root
				for i, h := range row.Hops() {
					got = append(got, h.Edge)
					if h.Far != last && done[h.Far] || !done[h.Near] || h.Near == h.Far {
						t.Fatalf("hop %d, from %d to %d, is out of order", i, h.Near, h.Far)
					}
					last, done[h.Far] = h.Far, true
				}
				if slices.Sort(got); !slices.Equal(got, want) {
					t.Fatalf("hops %v, tight edges %v", got, want)
				}
			}
		}
	})
}

// TestBeyondIsWhatOnlyOneNodeLeadsTo blocks one node after the other: what no other hop leads to is
// just what Beyond passes over.
func TestBeyondIsWhatOnlyOneNodeLeadsTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := tableOf(multigraph(t).All())
		root := topology.Node(rapid.IntRange(0, table.Graph().Nodes()-1).Draw(t, "root"))
		hops := table.From(root).Hops()
		for i, at := range hops {
			left := map[topology.Node]bool{root: true}
			for _, h := range hops {
				left[h.Far] = left[h.Far] || left[h.Near] && h.Far != at.Far
			}
			first := slices.IndexFunc(hops, func(h spf.Hop) bool { return h.Far == at.Far })
			for k, h := range hops {
				if within := k >= first && k < int(at.Beyond); within == left[h.Far] {
					t.Fatalf("hop %d to %d: hop %d to %d is passed over: %v, and left: %v", i,
						at.Far, k, h.Far, within, left[h.Far])
				}
			}
		}
	})
}
