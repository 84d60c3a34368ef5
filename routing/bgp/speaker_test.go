package bgp_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/config"
	"sextant/lb/discovery"
	"sextant/packet/srv6"
	"sextant/routing/bgp"
)

func announce(t *testing.T, s *bgp.Speaker, list ...bgp.Announcement) {
	t.Helper()
	if err := s.Announce(list); err != nil {
		t.Fatal(err)
	}
}

// An edge learns from a host all that the host says, of IPv4 and IPv6, and hears of a drain and of
// a withdrawal.
func TestEdgeLearnsFromHost(t *testing.T) {
	edge, host := open(t, bgp.Options{BGP: settings(1, 2)}),
		open(t, bgp.Options{BGP: settings(2, 1)})
	v6, v4 := offer(7, "2001:db8:80::80"), offer(7, "192.0.2.80")
	announce(t, host, v6, v4)
	await(t, edge, "two routes", func() bool { return len(routesOf(t, edge)) == 2 })
	want := []discovery.Route{{
		Peer: loopback(2), Distinguisher: "192.0.2.2:1",
		Prefix: netip.MustParsePrefix("192.0.2.80/32"),
		SID:    netip.MustParseAddr("fcbb:bb00:7::"), Behavior: srv6.EndOFFER, Weight: 7,
		Structure: discovery.Structure{Block: 32, Node: 16, Argument: 80},
		Services:  []discovery.Port{{Protocol: config.TCP, Port: 80}},
	}}
	want = append(want, want[0])
	want[1].Prefix = netip.MustParsePrefix("2001:db8:80::80/128")
	if diff := cmp.Diff(want, routesOf(t, edge),
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	v4.Draining = true
	announce(t, host, v6, v4)
	await(t, edge, "a drain", func() bool {
		return routesOf(t, edge)[0].Draining &&
			!routesOf(t, edge)[1].Draining
	})
	announce(t, host, v6)
	await(t, edge, "a withdrawal", func() bool { return len(routesOf(t, edge)) == 1 })
	if s := peerOf(t, edge, 2).Session; s == discovery.Lost {
		t.Errorf("session after a withdrawal is %s", s)
	}
	host.Close(false)
	await(t, edge, "a lost session", func() bool {
		return peerOf(t, edge, 2).Session == discovery.Lost && len(routesOf(t, edge)) == 0
	})
}

// A host's agent that dies, or stops with keep, takes nothing along: routes stay, stale, and hold
// again when it is back.
func TestGracefulRestart(t *testing.T) {
	a, b := settings(3, 4), settings(4, 3)
	a.GracefulRestart, b.GracefulRestart = patience, patience
	edge, host := open(t, bgp.Options{BGP: a}), open(t, bgp.Options{BGP: b})
	announce(t, host, offer(4, "2001:db8:80::80"))
	await(t, edge, "a standing session with a route", func() bool {
		return len(routesOf(t, edge)) == 1 && peerOf(t, edge, 4).Session == discovery.Standing
	})
	host.Close(true)
	await(t, edge, "a session that restarts", func() bool {
		p := peerOf(t, edge, 4)
		return !p.Up() && p.Session == discovery.Settling
	})
	if n := len(routesOf(t, edge)); n != 1 {
		t.Fatalf("%d routes during the restart, want 1", n)
	}
	host = open(t, bgp.Options{BGP: b, Restarting: true})
	announce(t, host, offer(4, "2001:db8:80::80"))
	await(t, edge, "the session again", func() bool {
		if n := len(routesOf(t, edge)); n != 1 {
			t.Fatalf("%d routes after the restart, want 1", n)
		}
		return peerOf(t, edge, 4).Session == discovery.Standing
	})
	// What it no longer announces goes with the end of its first update.
	announce(t, host)
	await(t, edge, "a withdrawal", func() bool { return len(routesOf(t, edge)) == 0 })
}

// An edge that starts waits for what its neighbors have to say before it believes that they have
// nothing to say.
func TestNewSpeakerIsSettling(t *testing.T) {
	edge := open(t, bgp.Options{BGP: settings(5, 6)})
	if p := peerOf(t, edge, 6); p.Session != discovery.Settling {
		t.Errorf("session to a neighbor that was never there is %s, want %s", p.Session,
			discovery.Settling)
	}
}

// From another autonomous system, the communities of that system are meant.
func TestOtherAutonomousSystem(t *testing.T) {
	a, b := settings(7, 8), settings(8, 7)
	b.ASN, a.Neighbors[0].ASN = 4200000008, 4200000008
	edge, host := open(t, bgp.Options{BGP: a}), open(t, bgp.Options{BGP: b})
	announce(t, host, offer(8, "2001:db8:80::80"),
		bgp.Announcement{VIP: netip.MustParseAddr("2001:db8:80::80")})
	await(t, edge, "a route", func() bool { return len(routesOf(t, edge)) == 1 })
	r := routesOf(t, edge)[0]
	if want := []discovery.Port{{Protocol: config.TCP, Port: 80}}; !slices.Equal(r.Services, want) {
		t.Errorf("services %v, want %v", r.Services, want)
	}
	if r.Weight != 8 {
		t.Errorf("weight %d, want 8", r.Weight)
	}
}

// Neighbors come and go; sessions of those that stay are left alone.
func TestSetNeighbors(t *testing.T) {
	all := settings(10, 11, 12)
	b := *all
	b.Neighbors = all.Neighbors[:1]
	edge := open(t, bgp.Options{BGP: &b, Restarting: true})
	first, second := open(t, bgp.Options{BGP: settings(11, 10)}),
		open(t, bgp.Options{BGP: settings(12, 10)})
	announce(t, first, offer(1, "2001:db8:80::80"))
	announce(t, second, offer(2, "2001:db8:80::80"))
	await(t, edge, "a route", func() bool { return len(routesOf(t, edge)) == 1 })
	since := peerOf(t, edge, 11).Since
	must(t, edge.SetNeighbors(all.Neighbors))
	await(t, edge, "both routes", func() bool { return len(routesOf(t, edge)) == 2 })
	if now := peerOf(t, edge, 11); now.Since != since || !now.Up() {
		t.Errorf("the session that stays was up since %v, now it is %+v", since, now)
	}
	changed := slices.Clone(all.Neighbors)
	changed[1].PasswordFile = "/does/not/exist"
	if err := edge.SetNeighbors(changed); err == nil || !strings.Contains(err.Error(),
		"neighbor 127.9.2.12: read the password") {
		t.Errorf("with an unreadable password: %v", err)
	}
	must(t, edge.SetNeighbors(all.Neighbors[1:]))
	await(t, edge, "the other route", func() bool { return len(routesOf(t, edge)) == 1 })
}

// A speaker that is back tells its routes although one of its neighbors is not there to tell its
// own.
func TestRestartWithoutANeighbor(t *testing.T) {
	a, b := settings(13, 14, 15), settings(14, 13)
	a.GracefulRestart, b.GracefulRestart = patience, patience
	a.Neighbors[1].Families = vpn // another reason to wait: it never comes
	edge := open(t, bgp.Options{BGP: b})
	host := open(t, bgp.Options{BGP: a, Restarting: true})
	announce(t, host, offer(13, "2001:db8:80::80"))
	await(t, edge, "the route", func() bool { return len(routesOf(t, edge)) == 1 })
	announce(t, host, offer(13, "2001:db8:80::80"), offer(13, "2001:db8:80::81"))
	await(t, edge, "another route", func() bool { return len(routesOf(t, edge)) == 2 })
	await(t, edge, "the end of what it tells",
		func() bool { return peerOf(t, edge, 13).Session == discovery.Standing })
}

// A neighbor that tells of too many routes has no session any more, however often it tries, and
// its routes are gone; others are left alone. With fewer routes it has one again when the node file
// has been without it.
func TestTooManyRoutes(t *testing.T) {
	edge := open(t, bgp.Options{BGP: settings(40, 41, 42)})
	edge.LimitPrefixes(5)
	many, few := open(t, bgp.Options{BGP: settings(41, 40)}),
		open(t, bgp.Options{BGP: settings(42, 40)})
	list := func(n int) (all []bgp.Announcement) {
		for i := range n {
			all = append(all, offer(i+1, fmt.Sprintf("2001:db8:80::%x", i+1)))
		}
		return all
	}
	announce(t, many, list(5)...)
	announce(t, few, list(2)...)
	await(t, edge, "all routes", func() bool { return len(routesOf(t, edge)) == 7 })
	announce(t, many, list(6)...)
	await(t, edge, "the session ends", func() bool { return !peerOf(t, edge, 41).Up() })
	await(t, edge, "its routes are gone", func() bool { return len(routesOf(t, edge)) == 2 })
	for range 30 { // a second is the time until a lost session is tried again
		time.Sleep(100 * time.Millisecond)
		if peerOf(t, edge, 41).Up() || !peerOf(t, edge, 42).Up() {
			t.Fatalf("sessions %+v and %+v", peerOf(t, edge, 41), peerOf(t, edge, 42))
		}
	}
	announce(t, many, list(3)...)
	must(t, edge.SetNeighbors(settings(40, 42).Neighbors))
	must(t, edge.SetNeighbors(settings(40, 41, 42).Neighbors))
	await(t, edge, "the session comes again", func() bool { return len(routesOf(t, edge)) == 5 })
}
