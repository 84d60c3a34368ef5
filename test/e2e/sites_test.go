package e2e_test

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"sextant/agent/api"
	"sextant/config"
)

// siteLab is the lab of sites.yaml.
type siteLab struct {
	*agents
	accepted [4]atomic.Int64 // by server
	conns    []net.Conn
}

func upSites(t *testing.T, accept string, change func(*config.Edge)) *siteLab {
	t.Helper()
	needsRoot(t)
	text, err := os.ReadFile(filepath.Join("testdata", "sites.yaml"))
	must(t, err)
	p := upSiteText(t, string(text), accept)
	p.anycast(1)
	if change != nil {
		for i := range 2 {
			p.configure(i+1, change)
		}
	}
	return p
}

// upSiteText brings up the lab of a text like sites.yaml.
func upSiteText(t *testing.T, text, accept string) *siteLab {
	t.Helper()
	needsRoot(t)
	p := &siteLab{agents: upText(t, "sites.yaml", strings.Replace(text, "ACCEPT", accept, 1))}
	for i := range p.accepted {
		serveWords(t, p.lab, server(i+1), echoAddress, func(net.Conn) { p.accepted[i].Add(1) })
	}
	p.ready()
	return p
}

// configure applies an edge's node file after a change.
func (p *siteLab) configure(edge int, change func(*config.Edge)) {
	p.t.Helper()
	name := fmt.Sprintf("edge%d", edge)
	_, err := p.client(name).Apply(p.t.Context(), "node.yaml",
		p.changed(name, func(n *config.Node) { change(n.Edge) }), false)
	must(p.t, err)
}

// anycast has the router send packets to the VIP to one edge, as routing does that knows the
// nearest.
func (p *siteLab) anycast(edge int) {
	p.t.Helper()
	inside(p.t, p.lab, "router", func() error {
		to, err := netlink.RouteGet(net.ParseIP(fmt.Sprintf("fd00:5e::e%d", edge)))
		if err != nil {
			return err
		}
		return netlink.RouteReplace(&netlink.Route{LinkIndex: to[0].LinkIndex, Gw: to[0].Gw,
			Dst: netlink.NewIPNet(net.ParseIP("2001:db8:80::80"))})
	})
}

// open opens connections that stay, and returns how many of them each server took.
func (p *siteLab) open(n int) (taken [4]int64) {
	p.t.Helper()
	var before [4]int64
	for i := range before {
		before[i] = p.accepted[i].Load()
	}
	for range n {
		inside(p.t, p.lab, "client", func() error {
			conn, err := net.DialTimeout("tcp", echoAddress, patience)
			if err != nil {
				return err
			}
			p.conns = append(p.conns, conn)
			p.t.Cleanup(func() { conn.Close() })
			return echo(conn) // the server has taken it then
		})
	}
	for i := range taken {
		taken[i] = p.accepted[i].Load() - before[i]
	}
	return taken
}

// go on: each connection has its server still.
func (p *siteLab) goOn(when string) {
	p.t.Helper()
	for i, conn := range p.conns {
		if err := echo(conn); err != nil {
			p.t.Fatalf("%s: connection %d of %d: %v", when, i, len(p.conns), err)
		}
	}
}

func (p *siteLab) set(state config.BackendState, servers ...int) {
	p.t.Helper()
	for edge := range 2 {
		for _, s := range servers {
			_, err := p.client(fmt.Sprintf("edge%d", edge+1)).PutBackend(p.t.Context(), api.Update,
				"tcp", server(s), api.BackendSpec{State: &state})
			must(p.t, err)
		}
	}
}

// New connections go to the edge's own site as long as its servers take them, then to the other;
// they keep their server when the other site's edge takes over, when a site is drained, and when an
// edge is gone.
func TestSites(t *testing.T) {
	p := upSites(t, "{policy: static, threshold: 10}", nil)
	if got := p.open(6); got[0]+got[1] != 6 {
		t.Errorf("site 1 took %v of 6 connections of its edge", got)
	}
	if got := p.open(34); got[2]+got[3] == 0 || got[0]+got[1] < 8 {
		t.Errorf("of 34 more, servers took %v; each of site 1 refuses the eleventh", got)
	}
	p.anycast(2)
	p.goOn("by the other site's edge")
	p.set(config.Draining, 3, 4)
	p.goOn("while site 2 drains")
	if got := p.open(10); got[2]+got[3] != 0 {
		t.Errorf("site 2 drains, and servers took %v", got)
	}
	p.set(config.Up, 3, 4)
	p.set(config.Draining, 1, 2)
	p.goOn("while site 1 drains")
	p.open(10)
	p.set(config.Up, 1, 2)
	p.goOn("when all are back")
	must(t, p.processes["edge2"].Kill())
	p.processes["edge2"].Wait() // the lab may have
	p.unload("edge2")
	p.anycast(1)
	p.goOn("without the edge of site 2")
	t.Logf("%d connections, none is broken", len(p.conns))
}

// Of a bucket's candidates the one whose host is less busy is asked first, where hosts accept
// whatever they are offered; and explain says so.
func TestOrderByLoad(t *testing.T) {
	p := upSites(t, "{policy: always}", func(e *config.Edge) {
		e.Site, e.Services[0].Order = "", []config.OrderBy{config.OrderByLoad}
		for i := range e.Services[0].Backends {
			e.Services[0].Backends[i].Site = ""
		}
	})
	p.set(config.Draining, 2, 3, 4)
	if got := p.open(30); got[0] != 30 {
		t.Fatalf("web1 alone is up, and servers took %v", got)
	}
	p.set(config.Up, 2, 3, 4)
	deadline := time.Now().Add(patience)
	for port := uint16(4000); port < 4040; port++ {
		list, err := p.client("edge1").Explain(t.Context(), api.Question{Flow: &api.Flow{
			Source:      netip.AddrPortFrom(netip.MustParseAddr("2001:db8:c::1"), port),
			Destination: netip.MustParseAddrPort(echoAddress), Protocol: config.TCP}})
		must(t, err)
		first := list[0].Trace.Chain[0]
		if first.Backend != "web1" && first.Order != nil && first.Order.Load > 0 &&
			first.Order.MeanLoad > 4*first.Order.Load {
			continue
		}
		if time.Now().After(deadline) {
			t.Fatalf("port %d: %+v comes first; its order is %+v", port, first, first.Order)
		}
		time.Sleep(20 * time.Millisecond)
		port--
	}
	if got := p.open(12); got[0] != 0 {
		t.Errorf("web1 has 30 connections, the others none, and servers took %v", got)
	}
	p.goOn("after the order changed")
}

// Hosts that compare themselves and an order by load do not go together: the edge says so.
func TestOrderByLoadOfHostsThatCompare(t *testing.T) {
	p := upSites(t, "{policy: average}", func(e *config.Edge) {
		e.Services[0].Order = []config.OrderBy{config.OrderByLoad}
	})
	deadline := time.Now().Add(patience)
	for {
		status, err := p.client("edge1").Status(t.Context())
		must(t, err)
		if strings.Contains(strings.Join(status.Warnings, "; "), "web1 accepts by policy average") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("warnings are %q", status.Warnings)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The server whose way is shorter comes first, whatever the order of the table.
func TestOrderByPath(t *testing.T) {
	w := upWays(t, "carrier")
	nearest := func(left, right int64, want string) {
		t.Helper()
		w.network(left, right)
		deadline := time.Now().Add(patience)
		for port := uint16(4000); port < 4020; port++ {
			list, err := w.client("edge").Explain(t.Context(), api.Question{Flow: &api.Flow{
				Source:      netip.AddrPortFrom(netip.MustParseAddr("2001:db8:c::1"), port),
				Destination: netip.MustParseAddrPort(echoAddress), Protocol: config.TCP}})
			must(t, err)
			if e := list[0]; e.OfferedTo[0] == want && e.Trace.Chain[0].Backend == want {
				continue
			}
			if time.Now().After(deadline) {
				t.Fatalf("delays %d and %d: %+v come in this order", left, right,
					list[0].Trace.Chain)
			}
			time.Sleep(20 * time.Millisecond)
			port--
		}
	}
	must(t, w.configure(func(e *config.Edge) {
		e.Network = &config.EdgeNetwork{Network: config.Network{Topology: w.file, FRR: "/run/frr",
			Node: w.node}}
		s := &e.Services[0]
		s.Depth, s.Way = 4, &config.Way{By: config.ByDelay, Disjoint: 1, SIDs: 2}
		s.Order = []config.OrderBy{config.OrderByPath}
		s.Backends[0].Node, s.Backends[1].Node = "left", "right"
	}))
	nearest(50, 5, "web2")
	w.open(5)
	nearest(5, 50, "web1")
	w.open(5)
	for i, conn := range w.conns {
		if err := echo(conn); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}
