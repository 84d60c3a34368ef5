package protection_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/te/protection"
	"sextant/te/topology"
)

// barred is a network in which some nodes are not for transit.
func barred(t *testing.T, n protection.Network, nodes string) protection.Network {
	b := topology.NewBuilder("test", 0)
	for v := range topology.Node(n.View.Nodes()) {
		spec := n.View.Node(v)
		spec.NoTransit = strings.Contains(nodes, spec.Name)
		if _, err := b.AddNode(spec); err != nil {
			t.Fatal(err)
		}
	}
	for e := range topology.Edge(n.View.Edges()) {
		if _, err := b.AddEdge(n.View.Edge(e)); err != nil {
			t.Fatal(err)
		}
	}
	n.View = b.Build().All()
	return n
}

// quickest tries all simple paths from a node, and returns the least delay of one that goes on from
// no other node that is not for transit; -1: there is none.
func quickest(g *topology.Graph, way []topology.Node, to topology.Node) int64 {
	at := way[len(way)-1]
	if at == to {
		return 0
	}
	least := int64(-1)
	if len(way) > 1 && g.Node(at).NoTransit {
		return least
	}
	for _, e := range g.Out(at) {
		if slices.Contains(way, g.To(e)) {
			continue
		}
		rest := quickest(g, append(slices.Clone(way), g.To(e)), to)
		if rest >= 0 && (least < 0 || g.Delay(e)+rest < least) {
			least = g.Delay(e) + rest
		}
	}
	return least
}

// No path leads through a node that is not for transit; of those that do not, the quickest is
// found, which all paths there are confirm; and so does a computation with proofs.
func TestNoTransit(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		nodes := rapid.StringMatching("[abcdez]{0,3}").Draw(r, "not for transit")
		n := barred(t, randomNetwork(t, r), nodes)
		copies := rapid.IntRange(1, 2).Draw(r, "copies")
		i := intent(copies, copies-1)
		i.MaxSIDs = 7 // for any path
		plan, err := n.Compute(i, protection.Question{Prove: rapid.Bool().Draw(r, "prove")})
		if err != nil {
			r.Fatal(err)
		}
		for _, p := range plan.Paths {
			for _, l := range p.Links[1:] {
				if strings.Contains(nodes, l.From) {
					r.Fatalf("%v passes %s", ways(plan.Paths), l.From)
				}
			}
		}
		from, _ := n.View.Lookup("a")
		to, _ := n.View.Lookup("z")
		least := quickest(n.View.Graph, []topology.Node{from}, to)
		switch {
		case (least >= 0) != (len(plan.Paths) > 0):
			r.Fatalf("%v, the quickest of all takes %d: %s", ways(plan.Paths), least, plan.Short)
		case copies == 1 && least >= 0 && plan.Paths[0].Delay != least:
			r.Fatalf("%v takes %d, the quickest %d", ways(plan.Paths), plan.Paths[0].Delay, least)
		}
	})
}

// Where paths are fewer because they would pass such nodes, those are named.
func TestNoTransitIsSaid(t *testing.T) {
	n := barred(t, network(t, "a-b 1", "b-z 1", "a-c 5", "c-z 5"), "b")
	plan, err := n.Compute(intent(2, 0), protection.Question{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "there is 1 path only: others pass nodes that are not for transit: b"; plan.Short !=
		want {
		t.Errorf("%q, want %q", plan.Short, want)
	}
}
