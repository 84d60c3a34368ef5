package inspect

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/te/topology"
)

// network draws a small directed multigraph, sparse enough to have bridges.
func network(t *rapid.T) *topology.Graph {
	b := topology.NewBuilder("random", 0)
	nodes := rapid.IntRange(1, 9).Draw(t, "nodes")
	for v := range nodes {
		if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprint(v)}); err != nil {
			t.Fatal(err)
		}
	}
	for range rapid.IntRange(0, 14).Draw(t, "links") {
		e := topology.EdgeSpec{
			From:   topology.Node(rapid.IntRange(0, nodes-1).Draw(t, "from")),
			To:     topology.Node(rapid.IntRange(0, nodes-1).Draw(t, "to")),
			Weight: rapid.Uint32Range(1, 2).Draw(t, "weight"), Delay: rapid.Int64Range(0, 2).Draw(t,
				"delay"),
			CapacityKbps: rapid.Int64Range(0, 2).Draw(t, "capacity"),
		}
		if e.From == e.To {
			continue
		}
		add(t, b, e)
		if rapid.Bool().Draw(t, "both") {
			e.From, e.To = e.To, e.From
			e.Weight = rapid.Uint32Range(1, 2).Draw(t, "weight back")
			add(t, b, e)
		}
	}
	return b.Build()
}

func add(t *rapid.T, b *topology.Builder, e topology.EdgeSpec) {
	if _, err := b.AddEdge(e); err != nil {
		t.Fatal(err)
	}
}

// reach tells which nodes are reached from one; with back, edges are walked in both directions.
func reach(v topology.View, from topology.Node, back bool) []bool {
	seen := make([]bool, v.Nodes())
	var walk func(topology.Node)
	walk = func(u topology.Node) {
		if seen[u] {
			return
		}
		seen[u] = true
		for e := range topology.Edge(v.Edges()) {
			switch {
			case !v.Up(e):
			case v.From(e) == u:
				walk(v.To(e))
			case back && v.To(e) == u:
				walk(v.From(e))
			}
		}
	}
	walk(from)
	return seen
}

// A link is a bridge if without it its ends don't reach each other.
func TestBridgesAgainstTheirDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := network(t)
		var want []topology.Edge
		for e, r := range g.Links() {
			without := g.All().Without(e)
			if r != topology.NoEdge {
				without = without.Without(r)
			}
			if !reach(without, g.From(e), true)[g.To(e)] {
				want = append(want, e)
			}
		}
		if got := Bridges(g); !slices.Equal(got, want) {
			t.Fatalf("bridges %v, want %v", got, want)
		}
	})
}

// Nodes are of one part if each reaches the other.
func TestPartsAgainstTheirDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := network(t)
		part := make([]int, g.Nodes())
		count := 0
		parts := Parts(g)
		for i, nodes := range parts {
			if i > 0 && len(nodes) > len(parts[i-1]) {
				t.Fatalf("part %d is larger than the one before: %v", i, parts)
			}
			for _, v := range nodes {
				part[v] = i
				count++
			}
		}
		if count != g.Nodes() {
			t.Fatalf("%d nodes in the parts of a graph of %d", count, g.Nodes())
		}
		for u := range topology.Node(g.Nodes()) {
			for v, there := range reach(g.All(), u, false) {
				back := reach(g.All(), topology.Node(v), false)[u]
				if (there && back) != (part[u] == part[v]) {
					t.Fatalf("nodes %d and %d are in the parts %v", u, v, parts)
				}
			}
		}
	})
}

func TestLinks(t *testing.T) {
	b := topology.NewBuilder("links", 0)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name, Known: name == "a"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range []topology.EdgeSpec{
		{From: 0, To: 1, Weight: 1, Delay: 5, CapacityKbps: 7},
		{From: 1, To: 0, Weight: 1, Delay: 5, CapacityKbps: 7},
		{From: 1, To: 0, Weight: 2, Delay: 5, CapacityKbps: 9}, // a parallel link
		// its other direction, with another weight and no capacity
		{From: 0, To: 1, Weight: 3, Delay: 5},
		{From: 1, To: 2, Weight: 4, CapacityKbps: 7}, // one way, no delay
	} {
		if _, err := b.AddEdge(e); err != nil {
			t.Fatal(err)
		}
	}
	g := b.Build()
	for name, c := range map[string]struct{ got, want []topology.Edge }{
		"parallel":         {Parallel(g), []topology.Edge{2}},
		"one way":          {OneWay(g), []topology.Edge{4}},
		"asymmetric":       {Asymmetric(g), []topology.Edge{2}},
		"without delay":    {WithoutDelay(g), []topology.Edge{4}},
		"without capacity": {WithoutCapacity(g), []topology.Edge{2}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	want := Summary{3, 3, 5, Range{0, 3}, Range{1, 4}, Range{0, 5}, Range{0, 9}, 1}
	if got := Summarize(g); got != want {
		t.Errorf("summary %+v, want %+v", got, want)
	}
	if got := Summarize(topology.NewBuilder("none", 0).Build()); got != (Summary{}) {
		t.Errorf("summary of nothing %+v", got)
	}
}
