package agent_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"sextant/config"
	"sextant/lb/discovery"
	"sextant/packet/srv6"
	"sextant/routing/bgp"
)

// patience is when a test that waits gives up.
const patience = 60 * time.Second

// The speakers of the tests are at the machine's own loopback, since their goroutines are in no
// namespace of a test: each run of the tests has addresses of its own there.
var (
	bgpEdge, bgpHost = ownLoopback(1), ownLoopback(2)
	bgpText          = nodeText + strings.NewReplacer("EDGE", bgpEdge, "HOST", bgpHost).Replace(`
bgp:
  asn: 64512
  routerID: EDGE
  listen: EDGE:17901
  gracefulRestart: 60s
  onStop: keep
  neighbors: [{address: HOST, asn: 64512, port: 17901, local: EDGE, passive: true}]
`)
)

// ownLoopback is an address in 127.128.0.0/9 that no other process of this machine computes; last
// is below 8, a process ID has at most 22 bits, and the topmost two are not told apart.
func ownLoopback(last int) string {
	id := os.Getpid()<<3 | last
	return netip.AddrFrom4([4]byte{127, 128 | byte(id>>16), byte(id >> 8), byte(id)}).String()
}

// openHost is a host that serves the machine's service web.
func openHost(t *testing.T) *bgp.Speaker {
	t.Helper()
	settings := &config.BGP{
		ASN: 64512, RouterID: netip.MustParseAddr(bgpHost),
		Listen:      netip.MustParseAddrPort(bgpHost + ":17901"),
		RouteTarget: "64512:1", RouteDistinguisher: bgpHost + ":1", GracefulRestart: patience,
		Neighbors: []config.Neighbor{{
			Address: netip.MustParseAddr(bgpEdge), Local: netip.MustParseAddr(bgpHost),
			ASN:  64512,
			Port: 17901, HoldTime: patience,
			Families: []config.Family{config.IPv6Unicast, config.IPv4Unicast, config.VPNv4,
				config.VPNv6},
		}},
	}
	s, err := bgp.Open(bgp.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		BGP: settings})
	must(t, err)
	t.Cleanup(func() { s.Close(false) })
	must(t, s.SetNeighbors(settings.Neighbors))
	return s
}

// serving is what the host with a global id says of the service web.
func serving(id int, draining bool) bgp.Announcement {
	return bgp.Announcement{
		VIP: netip.MustParseAddr("2001:db8:80::80"), Weight: 5, Draining: draining,
		SID: config.SID{Prefix: netip.MustParsePrefix(fmt.Sprintf("fcbb:bb00:%x::/48", id)),
			Behavior: srv6.EndOFFER},
		Services: []discovery.Port{{Protocol: config.TCP, Port: 80}},
	}
}

// backends lists the backends of the service web with their states, those that BGP told of only.
func (r *running) learned() string {
	r.t.Helper()
	list, err := r.Backends(r.t.Context(), "web")
	must(r.t, err)
	var texts []string
	for _, b := range list {
		if strings.HasPrefix(b.Name, "bgp-") {
			texts = append(texts, fmt.Sprintf("%s %d %s buckets:%t", b.Name, b.Weight, b.State,
				b.Buckets > 0))
		}
	}
	return strings.Join(texts, ", ")
}

func (r *running) awaitLearned(want string) {
	r.t.Helper()
	for end := time.Now().Add(patience); r.learned() != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			peers, err := r.BGPPeers(context.Background())
			routes, _ := r.BGPRoutes(context.Background())
			r.t.Fatalf("backends that were learned: %q, want %q; peers %+v, routes %+v, error %v",
				r.learned(), want, peers, routes, err)
		}
	}
}

// A host that announces itself is a backend; drain and withdrawal make it a draining one; it
// outlives a restart of the agent; with its session it is gone.
func TestBackendsFromBGP(t *testing.T) {
	m := newMachine(t)
	a := m.start(bgpText)
	host := openHost(t)
	must(t, host.Announce([]bgp.Announcement{serving(0x77, false),
		{VIP: netip.MustParseAddr("2001:db8:80::99"),
			SID: config.SID{Prefix: netip.MustParsePrefix("fcbb:bb00:77::/48"),
				Behavior: srv6.EndOFFER}}}))
	a.awaitLearned("bgp-fcbb-bb00-77 5 up buckets:true")
	for _, want := range []struct{ name, value string }{
		{`sextant_bgp_session_up{peer="` + bgpHost + `"}`, "1"},
		{`sextant_bgp_ignored_routes_total{reason="no_service"}`, "1"},
		{`sextant_bgp_malformed_updates_total{handling="session_reset"}`, "0"},
		{`sextant_backend_weight{backend="bgp-fcbb-bb00-77",service="web"}`, "5"},
	} {
		if got := a.metric(want.name); got != want.value {
			t.Errorf("%s is %q, want %s", want.name, got, want.value)
		}
	}
	must(t, host.Announce([]bgp.Announcement{serving(0x77, true)}))
	a.awaitLearned("bgp-fcbb-bb00-77 5 draining buckets:false")
	must(t, host.Announce([]bgp.Announcement{serving(0x77, false)}))
	a.awaitLearned("bgp-fcbb-bb00-77 5 up buckets:true")

	a.stop()
	a = m.start(bgpText)
	if got, want := a.learned(), "bgp-fcbb-bb00-77 5 up buckets:true"; got != want {
		t.Errorf("right after a restart: %q, want %q", got, want)
	}
	for {
		peers, err := a.BGPPeers(t.Context())
		must(t, err)
		if got, want := a.learned(), "bgp-fcbb-bb00-77 5 up buckets:true"; got != want {
			t.Fatalf("while the session comes back: %q, want %q", got, want)
		}
		if peers[0].Session == discovery.Standing.String() {
			break
		}
	}
	must(t, host.Announce(nil))
	a.awaitLearned("bgp-fcbb-bb00-77 5 draining buckets:false")
	host.Close(false)
	for {
		peers, err := a.BGPPeers(t.Context())
		must(t, err)
		if peers[0].Session == discovery.Lost.String() {
			break
		}
	}
	if got, want := a.learned(), "bgp-fcbb-bb00-77 5 draining buckets:false"; got != want {
		t.Errorf("the session is lost: %q, want %q", got, want)
	}
	_, err := a.apply(m.text(strings.Replace(bgpText, "address: "+bgpHost,
		"address: "+ownLoopback(7),
		1)), false)
	must(t, err)
	a.awaitLearned("")
	a.stop()
}

// Neighbors come and go while the agent runs; what all sessions share needs a restart.
func TestApplyBGP(t *testing.T) {
	m := newMachine(t)
	a := m.start(bgpText)
	defer a.stop()
	more := strings.Replace(bgpText, "neighbors: [",
		"neighbors: [{address: "+ownLoopback(5)+", asn: 64512, families: [vpnv6]}, ", 1)
	_, err := a.apply(m.text(more), false)
	must(t, err)
	peers, err := a.BGPPeers(t.Context())
	must(t, err)
	if len(peers) != 2 {
		t.Errorf("%d neighbors, want 2: %+v", len(peers), peers)
	}
	_, err = a.apply(m.text(strings.Replace(more, "families: [vpnv6]", "passwordFile: DIR/none",
		1)), false)
	if err == nil || !strings.Contains(err.Error(),
		"neighbor "+ownLoopback(5)+": read the password") {
		t.Errorf("a neighbor with an unreadable password: %v", err)
	}
	_, err = a.apply(m.text(strings.Replace(bgpText, "routerID: "+bgpEdge,
		"routerID: "+ownLoopback(6),
		1)), false)
	if err == nil || !strings.Contains(err.Error(), "restart the agent with this file") {
		t.Errorf("another router ID: %v", err)
	}
	_, err = a.apply(m.text(bgpText), false)
	must(t, err)
}
