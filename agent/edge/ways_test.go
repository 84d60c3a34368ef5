package edge

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sextant/agent/network"
	"sextant/agent/role"
	"sextant/config"
	"sextant/lb/pool"
	"sextant/packet/srv6"
	"sextant/te/topology"
	"sextant/te/topology/format"
	"sextant/te/way"
)

// square writes a topology of edge, left or right, out, whose links to the left have less delay.
func square(t *testing.T, left string) (file string) {
	t.Helper()
	b := topology.NewBuilder("square", 0)
	for _, name := range []string{"edge", "left", "right", "out"} {
		spec := topology.NodeSpec{Name: name}
		if name == "left" && left != "" {
			spec.SID = netip.MustParsePrefix(left)
		}
		if _, err := b.AddNode(spec); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range [][4]uint32{{0, 1, 9, 1}, {1, 3, 9, 1}, {0, 2, 1, 9}, {2, 3, 1, 9}} {
		for _, ends := range [][2]uint32{{l[0], l[1]}, {l[1], l[0]}} {
			if _, err := b.AddEdge(topology.EdgeSpec{From: topology.Node(ends[0]),
				To: topology.Node(ends[1]), Weight: l[2], Delay: int64(l[3])}); err != nil {
				t.Fatal(err)
			}
		}
	}
	text, err := format.Write(b.Build(), format.NodeLink)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "square.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func read(t *testing.T, file string) *network.Known {
	t.Helper()
	known, err := network.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// squareNode has one service with a server behind the router out and one behind left.
func squareNode(t *testing.T) *config.Node {
	t.Helper()
	block, err := srv6.ParseBlock("fcbb:bb00::/32")
	if err != nil {
		t.Fatal(err)
	}
	n := &config.Node{Edge: &config.Edge{Encapsulation: config.Carrier,
		Network: &config.EdgeNetwork{Network: config.Network{Node: "edge"}}}}
	n.Domain.Block = block
	n.Edge.Services = []config.Service{{Way: &config.Way{By: config.ByDelay, Disjoint: 1, SIDs: 2},
		Backends: []config.Backend{
			{Name: "web1", SID: netip.MustParseAddr("fcbb:bb00:101::"), Node: "out"},
			{Name: "web2", SID: netip.MustParseAddr("fcbb:bb00:102::"), Node: "left"},
			{Name: "web3", SID: netip.MustParseAddr("fcbb:bb00:103::"), Node: "right"}}}}
	return n
}

// A topology that changes so that a router's SID does not fit into carriers leaves servers to
// routing's own way, with the reason; ways come back with the SID.
func TestWaysOverUnwritableSIDs(t *testing.T) {
	n := squareNode(t)
	e, s := &Room{}, &n.Edge.Services[0]
	var w *serviceWay
	for _, test := range []struct {
		left, problem string
		paths         int // to web1
	}{{"", "", 1}, {"2001:db8:1::/64", "is not one identifier", 0}, {"", "", 1}} {
		known := read(t, square(t, test.left))
		for range 2 {
			w = e.computeWay(s, w, n, known)
			if got := len(w.sids(s.Backends[0])); got != test.paths ||
				!strings.Contains(w.short(), test.problem) || w.short() == "" != (got > 0) {
				t.Errorf("SID %q of the router: %d paths, %q", test.left, got, w.short())
			}
		}
	}
}

// A node file with another topology computes on that one; if it is refused, services go on on the
// one that the edge follows.
func TestRefusedNetworkChangesNothing(t *testing.T) {
	n := squareNode(t)
	e, s := &Room{}, &n.Edge.Services[0]
	e.Core = &role.Core{Node: n}
	e.ways.follows, e.ways.known = n.Edge.Network, read(t, square(t, ""))
	followed := e.ways.known
	next := squareNode(t)
	next.Edge.Network.Topology = square(t, "2001:db8:1::/64")
	e.readAhead(next.Edge.Network)
	if _, err := e.wayOf(&next.Edge.Services[0], next); err == nil ||
		!strings.Contains(err.Error(), "is not one identifier") {
		t.Errorf("a router's SID that carriers can't hold: %v", err)
	}
	if w := e.computeWay(s, nil, n, e.ways.known); e.ways.known != followed || w.short() != "" {
		t.Errorf("after a refused file: %q", w.short())
	}
	e.readAhead(n.Edge.Network)
	if _, err := e.wayOf(s, n); err != nil {
		t.Errorf("the file as it was: %v", err)
	}
}

// A path that is given goes before a way, which explains nothing then.
func TestGivenPathHasNoWay(t *testing.T) {
	n := squareNode(t)
	e, s := &Room{}, Service{Service: n.Edge.Services[0]}
	s.way = e.computeWay(&s.Service, nil, n, read(t, square(t, "")))
	s.Members = []pool.Backend{{ID: 1}, {ID: 2}, {ID: 3}}
	s.Backends[0].Path = []netip.Addr{netip.MustParseAddr("fcbb:bb00:3::")}
	if w := e.wayView(&s, 1, 0, false); w != nil {
		t.Errorf("web1 has a path of its own, and %+v", w)
	}
	if w := e.wayView(&s, 2, 0, false); w == nil || w.Node != "left" || w.Cost != 1 {
		t.Errorf("to web2: %+v", w)
	}
}

// What is to be written to have a way is something that a node file takes.
func TestMendOfWays(t *testing.T) {
	n := squareNode(t)
	s := &n.Edge.Services[0]
	for needs, want := range map[int]string{0: "avoid less", 3: "write sids: 3", 5: "avoid less"} {
		found := &serviceWay{answers: map[string]way.Answer{"out": {Needs: needs}}}
		if got := wayMend(s, n, found); !strings.HasPrefix(got, want) {
			t.Errorf("a path of %d SIDs: %q, want %q", needs, got, want)
		}
	}
}
