package controller

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sextant/te/reroute"
	"sextant/te/segment/sidlist"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
	"sextant/te/topology/generate"
)

// routers forward as RFC 8986 says, by an IGP that uses all shortest paths at once.
type routers struct {
	graph *topology.Graph
	far   map[topology.Node][]uint64 // by destination: the distance of each router
	node  map[netip.Addr]topology.Node
	cross map[netip.Addr]topology.Edge
}

// routersOf have the SIDs of the plan, written out.
func routersOf(g *topology.Graph) *routers {
	r := &routers{graph: g, far: map[topology.Node][]uint64{},
		node: map[netip.Addr]topology.Node{}, cross: map[netip.Addr]topology.Edge{}}
	for v := range topology.Node(g.Nodes()) {
		r.node[netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::", v+1))] = v
		r.node[netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x:fd46::", v+1))] = v
		for i, e := range g.Out(v) {
			r.cross[netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x:%x::", v+1, 0xe000+i))] = e
		}
	}
	return r
}

// distances to a router are those of Bellman and Ford.
func (r *routers) distances(to topology.Node) []uint64 {
	if r.far[to] != nil {
		return r.far[to]
	}
	far := slices.Repeat([]uint64{1 << 40}, r.graph.Nodes())
	far[to] = 0
	for changed := true; changed; {
		changed = false
		for e := range topology.Edge(r.graph.Edges()) {
			by := far[r.graph.To(e)] + uint64(r.graph.Weight(e))
			if by < far[r.graph.From(e)] {
				far[r.graph.From(e)], changed = by, true
			}
		}
	}
	r.far[to] = far
	return far
}

// reach adds the links by which packets may get from one router to another.
func (r *routers) reach(crossed map[topology.Edge]bool, from, to topology.Node) {
	far, seen := r.distances(to), map[topology.Node]bool{}
	for queue := []topology.Node{from}; len(queue) > 0; queue = queue[1:] {
		if seen[queue[0]] {
			continue
		}
		seen[queue[0]] = true
		for _, e := range r.graph.Out(queue[0]) {
			next := r.graph.To(e)
			if far[next]+uint64(r.graph.Weight(e)) == far[queue[0]] {
				crossed[e] = true
				queue = append(queue, next)
			}
		}
	}
}

// follow is all links that packets cross that follow a segment list.
func (r *routers) follow(from topology.Node, list []netip.Addr) (map[topology.Edge]bool, error) {
	crossed := map[topology.Edge]bool{}
	for _, sid := range list {
		if v, is := r.node[sid]; is {
			r.reach(crossed, from, v)
			from = v
			continue
		}
		e, is := r.cross[sid]
		if !is {
			return nil, fmt.Errorf("%v means nothing", sid)
		}
		r.reach(crossed, from, r.graph.From(e))
		crossed[e], from = true, r.graph.To(e)
	}
	return crossed, nil
}

// holds tells whether what was crossed is a path; a head-end may choose between links of its own.
func holds(g *topology.Graph, path []topology.Edge, crossed map[topology.Edge]bool) bool {
	rest := 0
	for e := range crossed {
		switch {
		case slices.Contains(path[1:], e):
			rest++
		case g.From(e) != g.From(path[0]) || g.To(e) != g.To(path[0]):
			return false
		}
	}
	return rest == len(path)-1 && len(crossed) > rest
}

// altered is a graph with random metrics, and some links doubled, the second ones with metrics of
// their own.
func altered(t *testing.T, plain *topology.Graph, random *rand.Rand, most int) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("altered", 0)
	for v := range topology.Node(plain.Nodes()) {
		if _, err := b.AddNode(topology.NodeSpec{Name: plain.Node(v).Name}); err != nil {
			t.Fatal(err)
		}
	}
	for e := range topology.Edge(plain.Edges()) {
		for range 1 + random.IntN(4)/3 {
			if _, err := b.AddEdge(topology.EdgeSpec{From: plain.From(e), To: plain.To(e),
				Weight: uint32(1 + random.IntN(most))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// networks are some with metrics of their own, and with others and parallel links.
func networks(t *testing.T) (all []*topology.Graph) {
	t.Helper()
	fabric, err := generate.SpineLeaf(4, 4, 0)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int{1, 2, 4} {
		all = append(all, altered(t, fabric, random, most))
	}
	for _, name := range []string{"zoo/Abilene", "zoo/Geant2012", "rocketfuel-raw/1221"} {
		g, err := dataset.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, g, altered(t, g, random, 3))
	}
	return all
}

// Random paths, shortest by hops or by the IGP's metrics, come out as they went in: packets with
// their SIDs cross no other links, and they are read back from them.
func TestSegmentsHoldThePath(t *testing.T) {
	for _, g := range networks(t) {
		c := &Config{Block: "fcbb:bb00::/32", Southbound: Southbound{Decap: "fd46"}}
		s, err := newSegments(g, c)
		if err != nil {
			t.Fatal(err)
		}
		paths := []*reroute.Paths{reroute.NewPaths(g.All(), reroute.Hops),
			reroute.NewPaths(g.All(), reroute.IGP)}
		r, random, tried := routersOf(g), rand.NewPCG(1, 2), 0
		for i := range 1000 {
			from := topology.Node(random.Uint64() % uint64(g.Nodes()))
			to := topology.Node(random.Uint64() % uint64(g.Nodes()))
			path, ok := paths[i%2].Draw(nil, from, to, random)
			if !ok || len(path) == 0 {
				continue
			}
			tried++
			list, err := s.of(path)
			if err != nil {
				t.Fatal(err)
			}
			crossed, err := r.follow(from, list)
			if err != nil || !holds(g, path, crossed) {
				t.Fatalf("%s: %v by %v crosses %v, %v", g.Name(), path, list, crossed, err)
			}
			back, ok := s.path(from, list)
			if !ok || !slices.Equal(back[1:], path[1:]) || g.To(back[0]) != g.To(path[0]) {
				t.Fatalf("%s: %v by %v is read as %v, %v", g.Name(), path, list, back, ok)
			}
		}
		if tried < 500 {
			t.Errorf("%s: %d paths only", g.Name(), tried)
		}
	}
}

// withoutEndX is a graph in which routers tell their SIDs and none of their links.
func withoutEndX(t *testing.T, lines string) *topology.Graph {
	t.Helper()
	g, b := edges(t, lines), topology.NewBuilder("told", 0)
	for v := range topology.Node(g.Nodes()) {
		spec := g.Node(v)
		spec.SID = netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfc, 15: byte(v + 1)}), 128)
		if _, err := b.AddNode(spec); err != nil {
			t.Fatal(err)
		}
	}
	for e := range topology.Edge(g.Edges()) {
		spec := g.Edge(e)
		spec.SID = sidlist.Unknown
		if _, err := b.AddEdge(spec); err != nil {
			t.Fatal(err)
		}
	}
	return b.Build()
}

// Where the IGP takes the links by itself, routers' SIDs do; where it takes others, a link of which
// no SID is told is refused, and is in no group.
func TestSegmentsWithoutEndX(t *testing.T) {
	c := idle(t, withoutEndX(t, "a b 1\na c 1\nb d 1\nc d 3\nb e 9\nd e 1\n"),
		"routers: [{name: d, prefixes: [\"2001:db8::/64\"]}]")
	for way, want := range map[string]string{
		"a b d":   "[fc00::2 fc00::4] <nil>",
		"a c d":   "segment 1: the IGP goes from c to d by other links than this one",
		"b e":     "segment 1: the IGP goes from b to e by other links than this one",
		"a b e d": "segment 1: the IGP goes from b to e by other links than this one",
	} {
		path, err := c.names.path(strings.Fields(way))
		if err != nil {
			t.Fatal(err)
		}
		list, err := c.segments.of(path)
		if got := fmt.Sprint(list, err); !strings.Contains(got, want) {
			t.Errorf("%s: %s; want %s", way, got, want)
		}
	}
	h := &head{}
	s, err := c.newSpreadHead("a", h)
	if err != nil || len(s.paths) != 1 || len(s.paths[0].Paths) != 1 || len(s.lists[0]) != 1 ||
		h.refused != 1 || !strings.Contains(h.lastError, "from c to d") {
		t.Errorf("%+v, %v; refused %d, %q", s, err, h.refused, h.lastError)
	}
}

// Metrics count for segment lists, whatever paths are drawn by.
func TestSegmentsFollowMetrics(t *testing.T) {
	c := idle(t, edges(t, "a b 1\nb d 1\na d 3\n"), "block: \"fcbb:bb00::/32\"")
	c.followTopology(edges(t, "a b 9\nb d 1\na d 3\n"), nil)
	path, err := c.names.path([]string{"a", "b", "d"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.segments.of(path)
	want := "[fcbb:bb00:1:e000:: fcbb:bb00:2:: fcbb:bb00:3::]"
	if fmt.Sprint(list) != want || err != nil {
		t.Errorf("%v, %v; want %s", list, err, want)
	}
}
