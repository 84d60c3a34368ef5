package bgp_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"sextant/config"
	"sextant/lb/discovery"
	"sextant/packet/srv6"
	"sextant/routing/bgp"
)

// patience is when a test that waits gives up; none asserts how long something takes.
const patience = 60 * time.Second

// port of all speakers under test; each listens on a loopback address of its own.
const port = 17900

var vpn = []config.Family{config.VPNv4, config.VPNv6}

// loopback is the address of the nth speaker of a test.
func loopback(n int) netip.Addr { return netip.AddrFrom4([4]byte{127, 9, 2, byte(n)}) }

// settings of the nth speaker, whose neighbors are others.
func settings(n int, others ...int) *config.BGP {
	b := &config.BGP{
		ASN: 64512, RouterID: loopback(n), Listen: netip.AddrPortFrom(loopback(n), port),
		RouteTarget:        "64512:1",
		RouteDistinguisher: fmt.Sprintf("192.0.2.%d:1", n), Announce: config.AnnounceUp, Weight: 1,
		OnStop: config.Withdraw,
	}
	for _, other := range others {
		b.Neighbors = append(b.Neighbors, config.Neighbor{
			Address: loopback(other), ASN: 64512, Port: port, Local: loopback(n),
			Passive:  other > n,
			Families: append([]config.Family{config.IPv4Unicast, config.IPv6Unicast}, vpn...),
			HoldTime: 9 * time.Second,
		})
	}
	return b
}

func open(t *testing.T, o bgp.Options) *bgp.Speaker {
	t.Helper()
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	s, err := bgp.Open(o)
	must(t, err)
	t.Cleanup(func() { s.Close(false) })
	must(t, s.SetNeighbors(o.BGP.Neighbors))
	return s
}

// await waits until the condition holds, looking again whenever something changes.
func await(t *testing.T, s *bgp.Speaker, what string, holds func() bool) {
	t.Helper()
	end := time.After(patience)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-s.Changes():
		case <-again.C:
		case <-end:
			peers, _ := s.Peers()
			table, _ := s.Routes()
			t.Fatalf("never: %s\npeers %+v\nroutes %+v\nfaults %v", what, peers, table, s.Faults())
		}
	}
}

func routesOf(t *testing.T, s *bgp.Speaker) []discovery.Route {
	t.Helper()
	table, err := s.Routes()
	if err != nil {
		t.Fatal(err)
	}
	return table.Routes
}

func peerOf(t *testing.T, s *bgp.Speaker, n int) bgp.Peer {
	t.Helper()
	peers, err := s.Peers()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range peers {
		if p.Address == loopback(n) {
			return p
		}
	}
	t.Fatalf("no peer %s among %+v", loopback(n), peers)
	return bgp.Peer{}
}

// offer is what host n announces for a VIP.
func offer(n int, vip string) bgp.Announcement {
	return bgp.Announcement{
		VIP: netip.MustParseAddr(vip), Weight: n,
		Services: []discovery.Port{{Protocol: config.TCP, Port: 80}},
		SID: config.SID{Prefix: netip.MustParsePrefix(fmt.Sprintf("fcbb:bb00:%x::/48", n)),
			Behavior: srv6.EndOFFER},
	}
}
