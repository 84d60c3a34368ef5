package controller

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"sextant/te/reroute"
	"sextant/te/topology"
	"sextant/te/topology/generate"
)

// walk carries a packet along a segment list as RFC 8986 says: to the node whose SID is next, by
// the only link if that is a neighbour, and out of the link that an End.X names.
func walk(g *topology.Graph, from topology.Node, list []netip.Addr,
	node map[netip.Addr]topology.Node, cross map[netip.Addr]topology.Edge) (
	way []topology.Edge, err error) {
	toward := func(v topology.Node) error {
		var links []topology.Edge
		for _, e := range g.Out(from) {
			if g.To(e) == v {
				links = append(links, e)
			}
		}
		if len(links) == 0 {
			return fmt.Errorf("no link from %d to %d", from, v)
		}
		way, from = append(way, links[0]), v
		return nil
	}
	for _, sid := range list {
		if e, is := cross[sid]; is {
			if from != g.From(e) {
				if err := toward(g.From(e)); err != nil {
					return nil, err
				}
			}
			way, from = append(way, e), g.To(e)
			continue
		}
		v, is := node[sid]
		if !is {
			return nil, fmt.Errorf("%v means nothing", sid)
		}
		if v == from { // reached over the link that the last SID named
			continue
		}
		if err := toward(v); err != nil {
			return nil, err
		}
	}
	return way, nil
}

// Random paths of a fabric, of which some links are doubled, come out as they went in: carried by
// their SIDs, and read back from them.
func TestSegmentsHoldThePath(t *testing.T) {
	plain, err := generate.SpineLeaf(4, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := topology.NewBuilder("doubled", 0)
	for v := range topology.Node(plain.Nodes()) {
		if _, err := b.AddNode(plain.Node(v)); err != nil {
			t.Fatal(err)
		}
	}
	for e := range topology.Edge(plain.Edges()) {
		spec := plain.Edge(e)
		for range 1 + int(e)%3%2 {
			if _, err := b.AddEdge(spec); err != nil {
				t.Fatal(err)
			}
		}
	}
	g := b.Build()
	c := &Config{Block: "fcbb:bb00::/32", Southbound: Southbound{Decap: "e0d6"}}
	s, err := newSegments(g, c)
	if err != nil {
		t.Fatal(err)
	}
	node, cross := map[netip.Addr]topology.Node{}, map[netip.Addr]topology.Edge{}
	for v := range topology.Node(g.Nodes()) {
		node[netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::", v+1))] = v
		node[netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x:e0d6::", v+1))] = v
		for i, e := range g.Out(v) {
			cross[netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x:%x::", v+1, 0xe000+i))] = e
		}
	}
	paths := reroute.NewPaths(g.All(), reroute.Hops)
	random := rand.NewPCG(1, 2)
	tried := 0
	for range 2000 {
		from := topology.Node(random.Uint64() % uint64(g.Nodes()))
		to := topology.Node(random.Uint64() % uint64(g.Nodes()))
		path, ok := paths.Draw(nil, from, to, random)
		if !ok || len(path) == 0 {
			continue
		}
		tried++
		list, err := s.of(path)
		if err != nil {
			t.Fatal(err)
		}
		way, err := walk(g, from, list, node, cross)
		// a head-end does not choose between links of its own
		if err != nil || !slices.Equal(way[1:], path[1:]) || g.To(way[0]) != g.To(path[0]) {
			t.Fatalf("%v by %v goes %v, %v", path, list, way, err)
		}
		back, ok := s.path(from, list)
		if !ok || !slices.Equal(back[1:], path[1:]) || g.To(back[0]) != g.To(path[0]) {
			t.Fatalf("%v by %v is read as %v, %v", path, list, back, ok)
		}
	}
	if tried < 1000 {
		t.Errorf("%d paths only", tried)
	}
}
