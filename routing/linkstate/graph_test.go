package linkstate_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/osrg/gobgp/v4/pkg/apiutil"
	"github.com/osrg/gobgp/v4/pkg/packet/bgp"

	"sextant/routing/linkstate"
	"sextant/routing/linkstate/linkstatetest"
	"sextant/te/topology"
)

// dump writes a graph, a node or an edge a line.
func dump(g *topology.Graph) string {
	var b strings.Builder
	for v := range topology.Node(g.Nodes()) {
		fmt.Fprintf(&b, "%s %s", g.Node(v).Name, g.Node(v).SID)
		if g.Node(v).NoTransit {
			b.WriteString(" not for transit")
		}
		b.WriteString("\n")
	}
	for e := range topology.Edge(g.Edges()) {
		edge := g.Edge(e)
		fmt.Fprintf(&b, "%s>%s weight %d delay %d capacity %d risks %v sid %s back %d\n",
			g.Node(edge.From).Name, g.Node(edge.To).Name, edge.Weight,
			edge.Delay, edge.CapacityKbps, edge.SRLGs, edge.SID, g.Reverse(e))
	}
	return b.String()
}

// square is a network of four routers with a double link, a LAN of three, a link that one end keeps
// silent about, and a node without a name.
func square() []*apiutil.Path {
	n := linkstatetest.Network{}
	for i, name := range []string{"R1", "R2", "R3", ""} {
		n.Node(i+1, name, fmt.Sprintf("fcbb:bb00:%d::", i+1))
	}
	n.Link(1, 2, linkstatetest.Link{Number: 1, Metric: 10, Delay: 1000, Kbps: 8_000_000,
		Risks: []uint32{9, 3}, EndX: "fcbb:bb00:1:e001::"})
	n.Link(2, 1, linkstatetest.Link{Number: 1, Metric: 12, Delay: 1000, Kbps: 8_000_000})
	n.Link(2, 1, linkstatetest.Link{Number: 2, Metric: 20})
	n.Link(1, 2, linkstatetest.Link{Number: 2, Metric: 20})
	n.Link(1, 3, linkstatetest.Link{Number: 3, Metric: 7})
	n.LAN(5, 30, 2, 3, 4)
	return n.Routes
}

const squareText = `0000.0000.0004 fcbb:bb00:4::/128
R1 fcbb:bb00:1::/128
R2 fcbb:bb00:2::/128
R3 fcbb:bb00:3::/128
`

func TestGraph(t *testing.T) {
	g, ignored, err := linkstate.Graph("net", square())
	if err != nil {
		t.Fatal(err)
	}
	text := dump(g)
	if !strings.HasPrefix(text, squareText) {
		t.Errorf("nodes:\n%s", text)
	}
	for _, line := range []string{
		"R1>R2 weight 10 delay 10 capacity 8000000 risks [3 9] sid fcbb:bb00:1:e001:: back",
		"R2>R1 weight 12 delay 12", "R1>R2 weight 20",
		"R3>0000.0000.0004 weight 30 delay 30 capacity 0 risks [",
		"R2>0000.0000.0004 weight 30", "R2>R3 weight 30",
	} {
		if strings.Count(text, line) != 1 {
			t.Errorf("not once: %s\n%s", line, text)
		}
	}
	if g.Edges() != 4+6 || g.DelayUnit() != 0 {
		t.Errorf("%d edges, delays in %v", g.Edges(), g.DelayUnit())
	}
	for e := range topology.Edge(g.Edges()) {
		if back := g.Reverse(e); back == topology.NoEdge || g.Weight(e) != g.Weight(back) &&
			g.Weight(e)+g.Weight(back) != 22 {
			t.Errorf("edge %d and its other direction %d do not match:\n%s", e, back, text)
		}
	}
	if diff := cmp.Diff([]string{"link from 0000.0000.0001 to 0000.0000.0003: the other end does " +
		"not tell of it"}, ignored); diff != "" {
		t.Error(diff)
	}
}

// Routers by which nothing is to pass say so by flags: in IS-IS by one that is set, in OSPFv3 by
// one of two that are not (RFC 9552 section 5.3.1.1). Routers that tell no flags are for transit.
func TestNodeFlags(t *testing.T) {
	for _, c := range []struct {
		igp     bgp.LsProtocolID
		flags   bgp.LsNodeFlags
		transit bool
	}{
		{bgp.LS_PROTOCOL_ISIS_L2, bgp.LsNodeFlags{Attached: true}, true},
		{bgp.LS_PROTOCOL_ISIS_L1, bgp.LsNodeFlags{Overload: true}, false},
		{bgp.LS_PROTOCOL_OSPF_V3, bgp.LsNodeFlags{Router: true, V6: true}, true},
		{bgp.LS_PROTOCOL_OSPF_V3, bgp.LsNodeFlags{V6: true}, false},
		{bgp.LS_PROTOCOL_OSPF_V3, bgp.LsNodeFlags{Router: true}, false},
	} {
		n := linkstatetest.Network{}
		n.Link(1, 2, linkstatetest.Link{Number: 1, Metric: 10})
		n.Link(2, 1, linkstatetest.Link{Number: 1, Metric: 10})
		n.Flags(1, c.igp, c.flags)
		g, ignored, err := linkstate.Graph("net", n.Routes)
		if err != nil || len(ignored) > 0 {
			t.Fatalf("%v, ignored %q", err, ignored)
		}
		transit := g.Weight(0) == g.Weight(1)
		if transit != c.transit || transit == g.Node(0).NoTransit {
			t.Errorf("%v, %+v:\n%s", c.igp, c.flags, dump(g))
		}
	}
}

// Only SIDs by shortest paths are those of nodes and links, whatever their order; of a link's one
// without a backup (flag B, RFC 9514 section 4.1) if there is one.
func TestSIDs(t *testing.T) {
	endX := func(sid string, algorithm, flags uint8) bgp.LsSrv6EndXSID {
		return bgp.LsSrv6EndXSID{EndpointBehavior: 5, Algorithm: algorithm, Flags: flags,
			SIDs: []netip.Addr{netip.MustParseAddr(sid)}}
	}
	all := []bgp.LsSrv6EndXSID{endX("fcbb:aa00:1:e001::", 128, 0),
		endX("fcbb:bb00:1:e002::", 0, 1<<7), endX("fcbb:bb00:1:e003::", 0, 0)}
	for _, c := range []struct {
		order []int
		want  string
	}{
		{[]int{0, 1, 2}, "fcbb:bb00:1:e003::"}, {[]int{2, 1, 0}, "fcbb:bb00:1:e003::"},
		{[]int{0, 1}, "fcbb:bb00:1:e002::"}, {[]int{1, 0}, "fcbb:bb00:1:e002::"},
		{[]int{0}, "::"},
	} {
		n := linkstatetest.Network{}
		n.End(1, "fcbb:aa00:1::", 128) // the lower address
		n.Node(1, "R1", "fcbb:bb00:1::")
		n.End(2, "fcbb:aa00:2::", 128)
		n.Link(2, 1, linkstatetest.Link{Number: 1, Metric: 10})
		n.Link(1, 2, linkstatetest.Link{Number: 1, Metric: 10})
		for _, i := range c.order {
			n.EndX(all[i])
		}
		want := "0000.0000.0002 ::/128\nR1 fcbb:bb00:1::/128\n" +
			"R1>0000.0000.0002 weight 10 delay 10 capacity 0 risks [] sid " + c.want + " back 1\n" +
			"0000.0000.0002>R1 weight 10 delay 10 capacity 0 risks [] sid :: back 0\n"
		g, ignored, err := linkstate.Graph("net", n.Routes)
		if err != nil || len(ignored) > 0 {
			t.Fatalf("%v, ignored %q", err, ignored)
		}
		if diff := cmp.Diff(want, dump(g)); diff != "" {
			t.Errorf("order %v (-want +got):\n%s", c.order, diff)
		}
	}
}

// A link of the greatest metric is none for shortest paths of IS-IS (RFC 5305 section 3), in either
// direction, as both ends must have it; one of a metric less is, and so are those of other IGPs,
// and one of metric 0, which IS-IS permits.
func TestGreatestMetric(t *testing.T) {
	const greatest = 1<<24 - 1
	for _, c := range []struct {
		igp    bgp.LsProtocolID
		metric uint32
		edges  int
	}{
		{bgp.LS_PROTOCOL_ISIS_L1, greatest, 0}, {bgp.LS_PROTOCOL_ISIS_L2, greatest, 0},
		{bgp.LS_PROTOCOL_ISIS_L2, greatest - 1, 2}, {bgp.LS_PROTOCOL_OSPF_V3, greatest, 2},
		{bgp.LS_PROTOCOL_ISIS_L2, 0, 2},
	} {
		n := linkstatetest.Network{}
		n.Link(2, 1, linkstatetest.Link{Number: 1, Metric: 10})
		n.Link(1, 2, linkstatetest.Link{Number: 1, Metric: 10})
		n.Metric(c.metric)
		for _, route := range n.Routes {
			route.Nlri.(*bgp.LsAddrPrefix).NLRI.(*bgp.LsLinkNLRI).ProtocolID = c.igp
		}
		g, ignored, err := linkstate.Graph("net", n.Routes)
		if err != nil || g.Edges() != c.edges || len(ignored) != 2-c.edges {
			t.Errorf("%v, %+v: %d edges, ignored %q", err, c, g.Edges(), ignored)
		}
	}
}

// Of routers with a topology of its own for IPv6 (RFC 5120) its links and metrics count, which are
// those of SRv6: R1 and R2 have a link for IPv4 alone, and another one that costs more for IPv6. R4
// has no such topology, and R1's link to it is for IPv4 alone. A LAN's node is in none.
func TestTopologyOfIPv6(t *testing.T) {
	n := linkstatetest.Network{}
	both := func(number int, metric, metric6 uint32, ends ...int) {
		for i, from := range ends {
			n.Link(from, ends[1-i], linkstatetest.Link{Number: number, Metric: metric})
			if metric6 > 0 {
				n.Link(from, ends[1-i], linkstatetest.Link{Number: number, Metric: metric6,
					EndX: fmt.Sprintf("fcbb:bb00:%d:e00%d::", from, number)})
				n.InTopology(2)
			}
		}
	}
	both(1, 1, 0, 1, 2)
	both(2, 5, 30, 1, 2)
	both(3, 5, 5, 1, 3)
	both(4, 5, 0, 1, 4)
	n.LAN(5, 30, 2, 3)
	for router, metric6 := range map[int]uint32{2: 7, 3: 9} {
		n.OnLAN(5, metric6, router)
		n.InTopology(2)
	}
	g, _, err := linkstate.Graph("net", n.Routes)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for e := range topology.Edge(g.Edges()) {
		edge := g.Edge(e)
		got = append(got, fmt.Sprintf("%s>%s %d %s", g.Node(edge.From).Name[13:],
			g.Node(edge.To).Name[13:], edge.Weight, edge.SID))
	}
	slices.Sort(got)
	want := []string{"1>2 30 fcbb:bb00:1:e002::", "1>3 5 fcbb:bb00:1:e003::",
		"2>1 30 fcbb:bb00:2:e002::", "2>3 7 ::", "3>1 5 fcbb:bb00:3:e003::", "3>2 9 ::"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// A router that has failed is on no LAN, although its own routes are still there.
func TestRouterFailedOnLAN(t *testing.T) {
	n := linkstatetest.Network{}
	n.LAN(5, 10, 1, 3)
	n.OnLAN(5, 10, 2)
	g, ignored, err := linkstate.Graph("net", n.Routes)
	if err != nil || len(ignored) != 1 || g.Edges() != 2 {
		t.Errorf("%v, ignored %q, the graph:\n%s", err, ignored, dump(g))
	}
	for e := range topology.Edge(g.Edges()) {
		for _, end := range []topology.Node{g.From(e), g.To(e)} {
			if name := g.Node(end).Name; name == "0000.0000.0002" {
				t.Errorf("%s has a link:\n%s", name, dump(g))
			}
		}
	}
}

// The order in which routes come is of no consequence.
func TestOrder(t *testing.T) {
	g, _, err := linkstate.Graph("net", square())
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		routes := square()
		random.Shuffle(len(routes), func(i, j int) { routes[i], routes[j] = routes[j], routes[i] })
		shuffled, _, err := linkstate.Graph("net", routes)
		if err != nil || dump(shuffled) != dump(g) {
			t.Fatalf("%v\n%s", err, dump(shuffled))
		}
	}
}

func TestOtherRoutesAreIgnored(t *testing.T) {
	plain, err := bgp.NewIPAddrPrefix(netip.MustParsePrefix("192.0.2.0/24"))
	if err != nil {
		t.Fatal(err)
	}
	n := linkstatetest.Network{}
	n.Link(1, 2, linkstatetest.Link{Number: 1})
	g, ignored, err := linkstate.Graph("net", append(n.Routes, &apiutil.Path{Nlri: plain}))
	if err != nil || g.Edges() != 0 || len(ignored) != 2 {
		t.Errorf("%v, %d edges, ignored %q", err, g.Edges(), ignored)
	}
}

// Whatever bytes GoBGP takes for link-state routes, a graph comes of them, or an error.
func FuzzGraph(f *testing.F) {
	for _, p := range square() {
		octets, err := p.Nlri.Serialize()
		if err != nil {
			f.Fatal(err)
		}
		for _, a := range p.Attrs {
			if a.GetType() == bgp.BGP_ATTR_TYPE_LS {
				attribute, err := a.Serialize()
				if err != nil {
					f.Fatal(err)
				}
				f.Add(octets, attribute)
			}
		}
	}
	f.Fuzz(func(t *testing.T, octets, attribute []byte) {
		prefix, err := bgp.NLRIFromSlice(bgp.RF_LS, octets)
		if err != nil {
			return
		}
		ls := &bgp.PathAttributeLs{}
		if ls.DecodeFromBytes(attribute) != nil {
			return
		}
		routes := append(square(), &apiutil.Path{Nlri: prefix,
			Attrs: []bgp.PathAttributeInterface{ls}})
		if g, _, err := linkstate.Graph("net", routes); err == nil && g.Nodes() < 4 {
			t.Errorf("%d nodes", g.Nodes())
		}
	})
}
