package sidlist_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/packet/srv6"
	"sextant/te/segment"
	"sextant/te/segment/sidlist"
	"sextant/te/topology"
)

// ring is a ring of nodes a, b, c, ... with a heavy chord from a to c; node d has a SID of its own
// outside the block, if own.
func ring(t *testing.T, own bool) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("ring", 0)
	for i := range 5 {
		n := topology.NodeSpec{Name: string(rune('a' + i))}
		if i == 3 && own {
			n.SID = netip.MustParsePrefix("2001:db8:d::/48")
		}
		if _, err := b.AddNode(n); err != nil {
			t.Fatal(err)
		}
	}
	link := func(u, v, weight int) {
		for _, ends := range [][2]int{{u, v}, {v, u}} {
			_, err := b.AddEdge(topology.EdgeSpec{From: topology.Node(ends[0]),
				To: topology.Node(ends[1]), Weight: uint32(weight), Delay: 7})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for v := range 5 {
		link(v, (v+1)%5, 1)
	}
	link(0, 2, 9)
	return b.Build()
}

func plan(t *testing.T, g *topology.Graph) sidlist.Plan {
	t.Helper()
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	return sidlist.Plan{Graph: g, Block: block, Decap: 0xf046}
}

// chord is the path a-c-d: the chord, which only an End.X selects, then on.
func chord(t *testing.T, g *topology.Graph) segment.Path {
	t.Helper()
	e, err := segment.New(g.All())
	if err != nil {
		t.Fatal(err)
	}
	a, err := e.Disjoint(segment.Query{From: 0, To: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range a.Paths {
		if len(p.SIDs) > 1 {
			return p
		}
	}
	t.Fatalf("no path over the chord: %+v", a)
	return segment.Path{}
}

func TestListInFull(t *testing.T) {
	g := ring(t, false)
	l, err := plan(t, g).List(chord(t, g))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"nodes":["a","c","d"],"edges":[10,4],"segments":["a-\u003ec","d"],"sids":["fcbb:bb00:1:e002::","fcbb:bb00:4:f046::"],` +
		`"carriers":["fcbb:bb00:1:e002:4:f046::"],"latency":14,"steering":"forced"}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	dst := netip.MustParsePrefix("2001:db8:99::/48")
	wantLines := "ip -6 route add 2001:db8:99::/48 encap seg6 mode encap segs " +
		"fcbb:bb00:1:e002:4:f046:: dev eth1 metric 1025  # a->c, d (forced)\n" +
		"! a->c, d (forced)\nipv6 route 2001:db8:99::/48 eth1 segments fcbb:bb00:1:e002:4:f046::"
	if diff := cmp.Diff(wantLines, l.Route(dst, "eth1", 1)+"\n"+l.FRR(dst, "eth1")); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if to, header, err := l.SRH(41, true); err != nil || to != l.Carriers[0] || header != nil {
		t.Errorf("reduced header of one carrier: %v, %x, %v; want none", to, header, err)
	}
}

// A SID outside the block can't be in a carrier; and its node has no place for a function.
func TestSIDsOfTheGraph(t *testing.T) {
	g := ring(t, true)
	p := plan(t, g)
	if _, err := p.List(chord(t, g)); err == nil {
		t.Error("a function was put behind a SID outside the block")
	}
	p.Decap = 0
	l, err := p.List(chord(t, g))
	if err != nil || len(l.Carriers) > 0 {
		t.Fatalf("%+v, %v; want no carriers", l, err)
	}
	to, header, err := l.SRH(41, false)
	const want = "290404010100000020010db8000d00000000000000000000fcbbbb000001e0020000000000000000"
	if got := hex.EncodeToString(header); err != nil || to != l.SIDs[0] || got != want {
		t.Errorf("header %s to %v, %v; want %s", got, to, err, want)
	}
	const route = "ip -6 route add ::/0 encap seg6 mode encap segs " +
		"fcbb:bb00:1:e002::,2001:db8:d:: dev eth0 metric 1024  # a->c, d (forced)"
	if got, want := l.Route(netip.MustParsePrefix("::/0"), "eth0", 0), route; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A carrier holds six ids; the two of an End.X stay together.
func TestCarriersKeepLinksWhole(t *testing.T) {
	g := ring(t, false)
	path := segment.Path{Edges: []topology.Edge{0}}
	for v := range topology.Node(5) {
		path.SIDs = append(path.SIDs, segment.SID{Node: v, Link: topology.NoEdge})
	}
	path.SIDs = append(path.SIDs, segment.SID{Node: 4, Link: g.Out(4)[0]},
		segment.SID{Node: 0, Link: topology.NoEdge})
	l, err := plan(t, g).List(path)
	want := []netip.Addr{netip.MustParseAddr("fcbb:bb00:1:2:3:4:5:0"),
		netip.MustParseAddr("fcbb:bb00:5:e000:1:f046::")}
	if diff := cmp.Diff(want, l.Carriers,
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if l.Steering != sidlist.SteeringLoose || l.String() != "a, b, c, d, e, e->d, a (loose)" {
		t.Errorf("the list reads %s", l)
	}
	if to, header, err := l.SRH(41, true); err != nil || to != want[0] || len(header) != 24 {
		t.Errorf("reduced header of %d octets to %v, %v; want 24", len(header), to, err)
	}
}

func TestTooManyNodes(t *testing.T) {
	b := topology.NewBuilder("many", 0)
	for i := range 0xe000 {
		if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	p := plan(t, b.Build())
	if sid, err := p.Node(0xdffe); err != nil || sid != netip.MustParseAddr("fcbb:bb00:dfff::") {
		t.Errorf("SID %v, %v of the last node with one", sid, err)
	}
	if sid, err := p.Node(0xdfff); !errors.Is(err, sidlist.ErrNoNumber) {
		t.Errorf("SID %v, %v of a node too many", sid, err)
	}
	if _, _, err := (sidlist.List{}).SRH(41, false); err == nil {
		t.Error("a header without segments was made")
	}
}

// For a node or a link of which somebody said that its SID is not known, none is made up.
func TestUnknownSIDs(t *testing.T) {
	b := topology.NewBuilder("told", 0)
	for _, name := range []string{"a", "b"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name,
			SID: netip.PrefixFrom(sidlist.Unknown, 128)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.AddEdge(topology.EdgeSpec{From: 0, To: 1, Weight: 1,
		SID: sidlist.Unknown}); err != nil {
		t.Fatal(err)
	}
	p := plan(t, b.Build())
	if sid, err := p.Node(1); err == nil || !strings.Contains(err.Error(),
		"node b tells of no SID") {
		t.Errorf("of a node: %s, %v", sid, err)
	}
	if sid, err := p.Link(0); err == nil || !strings.Contains(err.Error(),
		"node a tells of no SID for its link to b") {
		t.Errorf("of a link: %s, %v", sid, err)
	}
}
