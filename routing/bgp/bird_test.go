package bgp_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sextant/config"
	"sextant/linux/linuxtest"
	"sextant/routing/bgp"
)

// birdText is a router that takes VIPs of both IP versions over a session of IPv6.
const birdText = `
router id 10.0.0.2;
protocol device {}
protocol bgp edge {
	local 2001:db8::2 port 17900 as 64513;
	neighbor 2001:db8::1 port 17900 as 64512;
	direct;
	connect retry time 1;
	ipv4 { import all; export none; extended next hop on; };
	ipv6 { import all; export none; };
}
`

// BIRD, of another autonomous system, takes an edge's VIPs, keeps them while the edge's agent is
// killed and comes back, and forgets them when it stops in order.
func TestBIRD(t *testing.T) {
	l := newLink(t)
	ask := linuxtest.BIRD(t, l.far, birdText)
	await := func(what string, fits func(answer string) bool) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			answer := ask("show route all")
			if fits(answer) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("never: %s; BIRD says:\n%s", what, answer)
			}
		}
	}
	near := linked(nearAddress6, farAddress6)
	near.GracefulRestart = patience
	near.Neighbors[0].ASN, near.Neighbors[0].Families = 64513,
		[]config.Family{config.IPv4Unicast, config.IPv6Unicast}
	both := []bgp.Announcement{{VIP: netip.MustParseAddr("192.0.2.80")},
		{VIP: netip.MustParseAddr("2001:db8:80::80")}}
	learned := func(answer string) bool {
		return strings.Contains(answer, "192.0.2.80/32") && strings.Contains(answer,
			"2001:db8:80::80/128") &&
			strings.Count(answer, "BGP.next_hop: 2001:db8::1") == 2
	}
	s := startSpeaker(t, l.near, role{near, both})
	await("both VIPs", learned)
	must(t, s.cmd.Process.Kill())
	await("the session is restarting", func(string) bool {
		return strings.Contains(ask("show protocols all edge"), "Neighbor graceful restart active")
	})
	await("both VIPs while nobody speaks", learned)
	s = startSpeaker(t, l.near, role{near, both})
	s.await("the session is up again", func(r report) bool {
		return strings.HasPrefix(r.Sessions[farAddress6.String()], "established")
	})
	await("both VIPs again", learned)
	must(t, s.cmd.Process.Signal(unix.SIGTERM))
	await("no VIPs after an orderly stop", func(answer string) bool {
		return !strings.Contains(answer, "192.0.2.80") && !strings.Contains(answer,
			"2001:db8:80::80")
	})
}
