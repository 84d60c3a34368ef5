package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/linux/linuxtest"
)

// anycastBGP is what each edge of sites.yaml says to the router, which no other router of its
// autonomous system tells of the VIP.
const anycastBGP = `bgp:
          asn: 64512
          routerID: 10.0.0.{i}
          gracefulRestart: 0s
          startup: 1s # BIRD tells no end of its routes then
          neighbors:
            - {address: "fd00:5e::f1", asn: 64512, local: "fd00:5e::e{i}", holdTime: 3s}
        edge:
          interfaces: [{name: eth0}]
          source: "fd00:5e::e{i}"
          site:`

// anycastRouter prefers the edge of site 1 as long as that announces the VIP.
const anycastRouter = `
router id 10.0.0.254;
protocol device {}
protocol kernel { learn; ipv6 { import all; export where source = RTS_BGP; }; }
protocol bgp edge1 {
	local fd00:5e::f1 as 64512;
	neighbor fd00:5e::e1 as 64512;
	connect delay time 1; connect retry time 1; error wait time 1, 2;
	ipv6 { import filter { bgp_local_pref = 200; accept; }; export none; };
}
protocol bgp edge2 {
	local fd00:5e::f1 as 64512;
	neighbor fd00:5e::e2 as 64512;
	connect delay time 1; connect retry time 1; error wait time 1, 2;
	ipv6 { import all; export none; };
}
`

// nearest waits until BGP has the router send packets to the VIP to an edge.
func (p *siteLab) nearest(edge string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		route := string(p.on("router", "ip", "-6", "route", "show", "2001:db8:80::80"))
		if strings.Contains(route, "dev "+edge+" ") {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the router does not send packets to %s within %v:\n%s", edge, patience,
				route)
		}
	}
}

// Edges of two sites announce the VIP to a router, which is BIRD: connections keep their servers
// when the nearer edge is lost with its data plane, and when it comes back.
func TestAnycast(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "sites.yaml"))
	must(t, err)
	_, rest, _ := strings.Cut(string(text), "        edge:\n")
	_, rest, _ = strings.Cut(rest, "site:")
	head, _, _ := strings.Cut(string(text), "        edge:\n")
	p := upSiteText(t, head+"        "+anycastBGP+rest, "{policy: static, threshold: 50}")
	ns := namespaceOf(t, p.lab, "router")
	defer ns.Close()
	linuxtest.BIRD(t, ns, anycastRouter)
	p.nearest("edge1")
	if got := p.open(30); got[0]+got[1] != 30 {
		t.Errorf("servers took %v of 30 connections; those of the nearer site take all", got)
	}
	must(t, p.processes["edge1"].Kill())
	p.processes["edge1"].Wait() // the lab may have
	p.unload("edge1")
	p.nearest("edge2")
	p.goOn("by the edge of site 2")
	if got := p.open(30); got[2]+got[3] != 30 {
		t.Errorf("servers took %v of 30 more; those of site 2 take all", got)
	}
	p.processes["edge1"] = startAgent(t, p.lab, "edge1")
	awaitAgent(t, p.lab, "edge1", patience)
	p.nearest("edge1")
	p.goOn("by the edge of site 1 again")
	t.Logf("%d connections, none is broken", len(p.conns))
}
