package proof_test

import (
	"slices"
	"testing"

	"sextant/te/segment"
	"sextant/te/segment/proof"
	"sextant/te/topology"
)

// network builds a graph of links {from, to, weight} in both directions, over nodes a, b, c...
func network(t *testing.T, links ...[3]int) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("test", 0)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range links {
		for _, ends := range [][2]int{{l[0], l[1]}, {l[1], l[0]}} {
			spec := topology.EdgeSpec{From: topology.Node(ends[0]), To: topology.Node(ends[1]),
				Weight: uint32(l[2]), Delay: 1}
			if _, err := b.AddEdge(spec); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

func TestWhy(t *testing.T) {
	tests := []struct {
		name  string
		links [][3]int
		model segment.Model
		sids  int
		want  proof.Limit
		needs int
		edge  topology.Edge // the bridge, or the first link that can't be selected
	}{
		{"nothing leads there", [][3]int{{0, 1, 1}}, segment.Forced, 4, proof.Disconnected, 0,
			topology.NoEdge},
		{"a bridge behind a square", [][3]int{{0, 1, 1}, {1, 2, 1}, {0, 3, 1}, {3, 2, 1},
			{2, 5, 1}}, segment.Paper, 4, proof.Links, 0, 8},
		{"a parallel link that no node SID selects", [][3]int{{0, 5, 1}, {0, 5, 2}}, segment.Paper,
			4, proof.Selection, 0, 2},
		{"the same with End.X", [][3]int{{0, 5, 1}, {0, 5, 2}}, segment.ForcedAdjacency,
			2, proof.Links, 0, topology.NoEdge},
		{"the way round takes three SIDs", [][3]int{{0, 5, 1}, {0, 1, 1}, {1, 2, 1}, {2, 3, 1},
			{3, 5, 1}}, segment.Forced, 1, proof.Length, 2, topology.NoEdge},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := proof.New(network(t, test.links...).All(),
				segment.Query{Model: test.model, Disjoint: segment.LinkDisjoint,
					MaxSIDs: test.sids}, proof.Effort{})
			count := p.Count(0, 5)
			why := p.Why(0, 5, count)
			if why.Limit != test.want || why.Needs != test.needs {
				t.Errorf("%d paths for the reason %s, needs %d SIDs; want %s, %d", len(count.Paths),
					why.Limit, why.Needs, test.want, test.needs)
			}
			if test.edge == topology.NoEdge {
				return
			}
			named := why.Bridges
			if why.Limit == proof.Selection {
				named = why.Unselected
			}
			if !slices.Equal(named, []topology.Edge{test.edge}) {
				t.Errorf("named %v, want edge %d", named, test.edge)
			}
		})
	}
}
