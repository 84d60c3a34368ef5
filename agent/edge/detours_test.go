package edge

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sextant/agent/network"
	"sextant/agent/role"
	"sextant/agent/state"
	"sextant/lb/pool"
	"sextant/te/topology"
	"sextant/te/topology/format"
)

// cut is a network without the links between two nodes.
func cut(t *testing.T, known *network.Known, a, b topology.Node) *network.Known {
	t.Helper()
	g, built := known.Graph, topology.NewBuilder(known.Graph.Name(), known.Graph.DelayUnit())
	for v := range topology.Node(g.Nodes()) {
		if _, err := built.AddNode(g.Node(v)); err != nil {
			t.Fatal(err)
		}
	}
	for e := range topology.Edge(g.Edges()) {
		ends := []topology.Node{g.From(e), g.To(e)}
		if slices.Contains(ends, a) && slices.Contains(ends, b) {
			continue
		}
		if _, err := built.AddEdge(g.Edge(e)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := format.Write(built.Build(), format.NodeLink)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "square.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return read(t, file)
}

// An edge prepares its ways for failures of links, takes what is prepared when one fails, and
// searches on the network without the link then.
func TestWaysArePrepared(t *testing.T) {
	n := squareNode(t)
	e := &Room{}
	e.Core = role.NewCore(t.Context(), "", slog.New(slog.DiscardHandler))
	e.Node, e.Store = n, &state.Store{}
	e.ways.follows, e.ways.known = n.Edge.Network, read(t, square(t, ""))
	generation, err := pool.New(pool.Spec{Buckets: 7, Candidates: 1}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{Service: n.Edge.Services[0], Generation: generation}
	s.Members = []pool.Backend{{ID: 1}, {ID: 2}, {ID: 3}}
	compute := func() {
		t.Helper()
		s.way = e.computeWay(&s.Service, s.way, n, e.ways.known)
		if s.Paths, err = e.pathsOf(&s.Service, s.way, s.Members, n); err != nil {
			t.Fatal(err)
		}
		e.Runs = &Role{Services: []Service{*s}}
	}
	compute()
	e.ways.detours.rough = true // so that it does not wait until all is quiet
	e.keepDetours()
	for !e.ways.detours.whole {
		(<-e.Work)()
	}
	prepared := e.ways.detours.known
	e.keepDetours() // nothing is new
	if e.ways.detours.known != prepared {
		t.Error("detours were prepared anew for the same ways")
	}

	e.ways.known = cut(t, e.ways.known, 0, 1) // from the edge to left
	compute()
	if got := s.way.answers["out"]; !e.ways.detours.rough || len(got.Paths) != 1 ||
		got.Paths[0].Links[0].To != "right" || got.Own != 18 {
		t.Errorf("to out when the link to left is gone: rough %v, %+v", e.ways.detours.rough, got)
	}
	e.keepDetours()
	for e.ways.detours.rough {
		(<-e.Work)()
	}
	if e.ways.detours.known == prepared {
		t.Error("detours of the network before are kept")
	}
	if got := e.Runs.Services[0].way.answers["out"]; len(got.Paths) != 1 || got.Own != 18 {
		t.Errorf("to out, searched: %+v", got)
	}
	e.ways.end()
}
