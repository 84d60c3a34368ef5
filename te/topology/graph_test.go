package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// build makes a graph of edges "ab" between nodes named by letters, in the order a, b, c, ...
func build(t *testing.T, nodes int, edges ...string) *Graph {
	t.Helper()
	b := NewBuilder("test", time.Millisecond)
	for v := range nodes {
		if _, err := b.AddNode(NodeSpec{Name: string(rune('a' + v))}); err != nil {
			t.Fatal(err)
		}
	}
	for i, ends := range edges {
		e := EdgeSpec{Name: fmt.Sprint(i), From: Node(ends[0] - 'a'), To: Node(ends[1] - 'a'),
			Weight: uint32(i + 1)}
		if id, err := b.AddEdge(e); err != nil || id != Edge(i) {
			t.Fatal(id, err)
		}
	}
	return b.Build()
}

func TestAdjacency(t *testing.T) {
	g := build(t, 4, "ab", "ba", "ac", "ab", "ca")
	if got := g.Out(0); !slices.Equal(got, []Edge{0, 2, 3}) {
		t.Errorf("out of a: %v", got)
	}
	if got := g.In(0); !slices.Equal(got, []Edge{1, 4}) {
		t.Errorf("into a: %v", got)
	}
	if len(g.Out(3)) != 0 || len(g.In(3)) != 0 {
		t.Error("d has edges")
	}
	if g.From(2) != 0 || g.To(2) != 2 || g.Weight(2) != 3 || g.Edge(2).Name != "2" {
		t.Errorf("edge 2 is %+v", g.Edge(2))
	}
	if v, ok := g.Lookup("c"); v != 2 || !ok {
		t.Errorf("c is node %d", v)
	}
	if _, ok := g.Lookup("x"); ok {
		t.Error("there is a node x")
	}
}

// The i-th edge one way and the i-th the other way are one link; what is left over has one
// direction.
func TestParallelLinksPairInOrder(t *testing.T) {
	g := build(t, 2, "ab", "ab", "ba", "ab", "ba")
	want := []Edge{2, 4, 0, NoEdge, 1}
	var links [][2]Edge
	for e, r := range g.Links() {
		links = append(links, [2]Edge{e, r})
	}
	for e, r := range want {
		if g.Reverse(Edge(e)) != r {
			t.Errorf("reverse of %d is %d, not %d", e, g.Reverse(Edge(e)), r)
		}
	}
	if !slices.Equal(links, [][2]Edge{{0, 2}, {1, 4}, {3, NoEdge}}) {
		t.Errorf("links are %v", links)
	}
}

func TestLinksCanStop(t *testing.T) {
	count := 0
	for range build(t, 2, "ab", "ba", "ab").Links() {
		count++
		break
	}
	if count != 1 {
		t.Errorf("%d links after a break", count)
	}
}

func TestReverseIsMutual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBuilder("random", 0)
		nodes := rapid.IntRange(2, 5).Draw(t, "nodes")
		for v := range nodes {
			if _, err := b.AddNode(NodeSpec{Name: fmt.Sprint(v)}); err != nil {
				t.Fatal(err)
			}
		}
		count := map[[2]Node]int{}
		for range rapid.IntRange(0, 40).Draw(t, "edges") {
			u := Node(rapid.IntRange(0, nodes-1).Draw(t, "from"))
			v := Node(rapid.IntRange(0, nodes-1).Draw(t, "to"))
			if u == v {
				continue
			}
			if _, err := b.AddEdge(EdgeSpec{From: u, To: v, Weight: 1}); err != nil {
				t.Fatal(err)
			}
			count[[2]Node{u, v}]++
		}
		g := b.Build()
		for e := range Edge(g.Edges()) {
			r := g.Reverse(e)
			if r != NoEdge && (g.Reverse(r) != e || g.From(r) != g.To(e) || g.To(r) != g.From(e)) {
				t.Fatalf("edge %d and its reverse %d are no link", e, r)
			}
			u, v := g.From(e), g.To(e)
			if r == NoEdge && count[[2]Node{u, v}] <= count[[2]Node{v, u}] {
				t.Fatalf("edge %d has no reverse, but there are enough", e)
			}
		}
	})
}

func TestBuilderRefuses(t *testing.T) {
	b := NewBuilder("test", 0)
	for _, name := range []string{"a", "b"} {
		if _, err := b.AddNode(NodeSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"", "a"} {
		if v, err := b.AddNode(NodeSpec{Name: name}); err == nil || v != NoNode {
			t.Errorf("a node with the name %q is node %d", name, v)
		}
	}
	for want, e := range map[string]EdgeSpec{
		"2 nodes":           {From: 0, To: 2, Weight: 1},
		"numbered from 0":   {From: -1, To: 0, Weight: 1},
		"to itself":         {From: 1, To: 1, Weight: 1},
		"weight 0":          {From: 0, To: 1},
		"the delay -1":      {From: 0, To: 1, Weight: 1, Delay: -1},
		"the delay 109951":  {From: 0, To: 1, Weight: 1, Delay: MaxDelay + 1},
		"the capacity -1":   {From: 0, To: 1, Weight: 1, CapacityKbps: -1},
		"the capacity 1099": {From: 0, To: 1, Weight: 1, CapacityKbps: MaxCapacityKbps + 1},
	} {
		if id, err := b.AddEdge(e); err == nil || id != NoEdge || !strings.Contains(err.Error(),
			want) {
			t.Errorf("edge %+v is %d, %v", e, id, err)
		}
	}
	if v, ok := b.Lookup("b"); v != 1 || !ok || b.Nodes() != 2 {
		t.Errorf("b is node %d of %d", v, b.Nodes())
	}
	if g := b.Build(); g.Edges() != 0 || g.Nodes() != 2 {
		t.Errorf("%d nodes, %d edges", g.Nodes(), g.Edges())
	}
}

func TestDelayUnit(t *testing.T) {
	g := build(t, 2, "ab")
	other := g.WithDelayUnit(time.Second)
	if g.DelayUnit() != time.Millisecond || other.DelayUnit() != time.Second ||
		other.Edges() != 1 || other.Name() != "test" {
		t.Errorf("units %v and %v", g.DelayUnit(), other.DelayUnit())
	}
}

func TestZeroGraphIsEmpty(t *testing.T) {
	var g Graph
	if g.Nodes() != 0 || g.Edges() != 0 || g.All().Up(0) != true {
		t.Error("the zero graph is not empty")
	}
}
