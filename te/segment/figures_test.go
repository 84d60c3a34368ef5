package segment_test

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"sextant/te/segment"
	"sextant/te/topology"
)

// figure makes a graph with nodes of one letter and links in both directions, as "ab2": from a to
// b, weight 2. Delays are 1.
func figure(t *testing.T, links string) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("figure", 0)
	node := func(name byte) topology.Node {
		if v, ok := b.Lookup(string(name)); ok {
			return v
		}
		v, err := b.AddNode(topology.NodeSpec{Name: string(name)})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for _, l := range strings.Fields(links) {
		u, v := node(l[0]), node(l[1])
		for _, ends := range [][2]topology.Node{{u, v}, {v, u}} {
			if _, err := b.AddEdge(topology.EdgeSpec{From: ends[0], To: ends[1],
				Weight: uint32(l[2] - '0'), Delay: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// along is the path through nodes, by the first of parallel edges.
func along(t *testing.T, g *topology.Graph, nodes string) []topology.Edge {
	t.Helper()
	var path []topology.Edge
	for i := range len(nodes) - 1 {
		u, _ := g.Lookup(nodes[i : i+1])
		v, _ := g.Lookup(nodes[i+1 : i+2])
		found := false
		for _, e := range g.Out(u) {
			if g.To(e) == v && !found {
				path, found = append(path, e), true
			}
		}
		if !found {
			t.Fatalf("there is no link %s", nodes[i:i+2])
		}
	}
	return path
}

// spell writes a list as the letters of nodes, an End.X as "u>v".
func spell(g *topology.Graph, list []segment.SID) string {
	var words []string
	for _, s := range list {
		word := g.Node(s.Node).Name
		if s.Link != topology.NoEdge {
			word += ">" + g.Node(g.To(s.Link)).Name
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// The paper's figure 6: (a, b, c, d) has two minimal segmentations, of two segments each. Walking
// as far as possible gives the second, (a, b, c), (c, d).
func TestFigure6(t *testing.T) {
	g := figure(t, "ab1 bc1 cd1 ad2")
	list, err := engine(t, g.All()).Segment(along(t, g, "abcd"), segment.Paper)
	if got := spell(g, list); err != nil || got != "c d" {
		t.Errorf("list %q, %v; want %q", got, err, "c d")
	}
}

// figure7 has what the paper says of its figure 7: a-b-d are on the DAG of a, but a-b-d-f, of
// length 5, is not, as a-c-e-f has length 4; d-f-h-i is on the DAG of d.
const figure7 = "ab1 bd2 ac1 ce2 ef1 df2 fh1 hi1 dg3 gi2"

func TestFigure7(t *testing.T) {
	g := figure(t, figure7)
	e := engine(t, g.All())
	list, err := e.Segment(along(t, g, "abdfhi"), segment.Paper)
	if got := spell(g, list); err != nil || got != "d i" {
		t.Errorf("list %q, %v; want %q", got, err, "d i")
	}
}

func TestLinkOnNoShortestPath(t *testing.T) {
	g := figure(t, "ab1 bc1 ac3")
	e := engine(t, g.All())
	for _, test := range []struct {
		model segment.Model
		want  string
	}{
		{segment.Paper, "segment a path with model paper: no SID selects link 4 from a to c, " +
			"which is on no shortest path; use model adjacency, or change its weight"},
		{segment.Forced, "segment a path with model forced: no SID selects link 4 from a to c, " +
			"which is on no shortest path; use model adjacency, or change its weight"},
		{segment.ForcedAdjacency, "a>c c"},
	} {
		list, err := e.Segment(along(t, g, "ac"), test.model)
		got := spell(g, list)
		if err != nil {
			got = err.Error()
		}
		if diff := gocmp.Diff(test.want, got); diff != "" {
			t.Errorf("model %s (-want +got):\n%s", test.model, diff)
		}
	}
}

// Parallel links of equal cost: no node SID selects one of them, an End.X does.
func TestParallelLinks(t *testing.T) {
	g := figure(t, "ab1 ab1 bc1")
	e := engine(t, g.All())
	for _, test := range []struct {
		model segment.Model
		paths int
		stop  segment.Stop
		needs int
	}{
		{segment.Paper, 2, segment.NoWay, 0},
		{segment.Forced, 0, segment.ListTooLong, 0},
		{segment.ForcedAdjacency, 2, segment.NoWay, 0},
		{segment.ECMP, 1, segment.NoWay, 0},
	} {
		a, err := e.Disjoint(segment.Query{From: 0, To: 1, Model: test.model})
		if err != nil || len(a.Paths) != test.paths || a.Stop != test.stop ||
			a.Needs != test.needs {
			t.Errorf("model %s: %d paths, %q, needs %d, %v; want %d, %q, %d", test.model,
				len(a.Paths), a.Stop, a.Needs, err, test.paths, test.stop, test.needs)
		}
	}
}

func TestListTooLongSaysHowLong(t *testing.T) {
	g := figure(t, "ab1 bc1 ac9")
	a, err := engine(t, g.All()).Disjoint(segment.Query{From: 0, To: 2, MaxSIDs: 1})
	if err != nil || len(a.Paths) != 1 || a.Stop != segment.ListTooLong || a.Needs != 2 {
		t.Errorf("%+v, %v; want one path, as the link left takes 2 SIDs", a, err)
	}
}

func TestWrongQueries(t *testing.T) {
	e := engine(t, figure(t, "ab1").All())
	for want, q := range map[string]segment.Query{
		"there is no node 2; figure has nodes 0 to 1":             {From: 0, To: 2},
		"a path from a to itself has no segments; name two nodes": {From: 0, To: 0},
		"lists of at most 300 SIDs can't be made; ask for 1 to 255": {From: 0, To: 1,
			MaxSIDs: 300},
		"-1 paths can't be found; ask for 1 or more, or for 0 to get all": {From: 0, To: 1,
			Paths: -1},
		`there is no model "x"; choose one of paper, forced, adjacency, ecmp`: {From: 0, To: 1,
			Model: "x"},
		`there is no disjointness "x"; choose one of edge, link, node, srlg`: {From: 0, To: 1,
			Disjoint: "x"},
	} {
		if _, err := e.Disjoint(q); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", q, err, want)
		}
		if _, err := e.Batch([]segment.Query{q}, 2); err == nil || err.Error() != want {
			t.Errorf("%+v in a batch: %v, want %s", q, err, want)
		}
	}
	if _, err := e.Apply(segment.Change{Edge: 7}); err == nil ||
		err.Error() != "change the weight of an edge: there is no edge 7; figure has edges 0 to 1" {
		t.Errorf("changing edge 7: %v", err)
	}
	if _, err := e.Segment(nil, segment.Paper); err == nil {
		t.Error("a path without edges was segmented")
	}
	if _, err := e.Segment([]topology.Edge{0, 0}, segment.Paper); err == nil {
		t.Error("edges that do not follow each other were segmented")
	}
}

func TestDelaysTooGreatAreRefused(t *testing.T) {
	b := topology.NewBuilder("far", 0)
	for _, name := range []string{"a", "b", "c"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for v := range topology.Node(2) {
		if _, err := b.AddEdge(topology.EdgeSpec{From: v, To: v + 1, Weight: 1,
			Delay: 1 << 39}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := segment.New(b.Build().All()); err == nil {
		t.Error("a path of 2^40 units of delay was accepted")
	}
}
