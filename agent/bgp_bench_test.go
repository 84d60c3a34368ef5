package agent_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/lb/discovery"
	"sextant/packet/srv6"
	"sextant/routing/bgp"
	"sextant/test/cputime"
)

// BenchmarkBGP is an edge that learns 10,000 routes of hosts, from one neighbor or from ten, and
// that announces its VIPs to them. The neighbors' speakers run in this process, too.
func BenchmarkBGP(b *testing.B) {
	for _, c := range []struct{ neighbors, services int }{{1, 1000}, {10, 1000}, {1, 10000}} {
		b.Run(fmt.Sprintf("%dx%d", c.neighbors, c.services), func(b *testing.B) {
			learnMany(b, c.neighbors, c.services)
		})
	}
}

// manyLearned is an edge with services whose backends BGP tells of.
func manyLearned(neighbors, services int) string {
	var t strings.Builder
	t.WriteString(manyServices(0, 0))
	for i := range services {
		fmt.Fprintf(&t, "    - {name: s%d, vip: \"%s\", port: 80, maxBackends: 10}\n", i, vipOf(i))
	}
	fmt.Fprintf(&t, "bgp:\n  asn: 64512\n  routerID: %[1]s\n  listen: %[1]s:17901\n  startup: 1s\n"+
		"  neighbors:\n", ownLoopback(0))
	for i := range neighbors {
		fmt.Fprintf(&t, "    - {address: %s, asn: 64512, port: 17901, local: %s, passive: true}\n",
			neighborAddress(i), ownLoopback(0))
	}
	return t.String()
}

func vipOf(service int) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf("2001:db8:80::%x", service+1))
}

func neighborAddress(i int) netip.Addr {
	a := netip.MustParseAddr(ownLoopback(1)).As4()
	return netip.AddrFrom4([4]byte{127, a[1] &^ 0x80, byte(i + 1), a[3]})
}

func openNeighbor(b *testing.B, i int) *bgp.Speaker {
	own := neighborAddress(i)
	settings := &config.BGP{
		ASN: 64512, RouterID: own, Listen: netip.AddrPortFrom(own, 17901),
		RouteTarget: "64512:1", RouteDistinguisher: own.String() + ":1",
		Neighbors: []config.Neighbor{{
			Address: netip.MustParseAddr(ownLoopback(0)), Local: own, ASN: 64512, Port: 17901,
			HoldTime: patience, Families: []config.Family{config.IPv6Unicast, config.VPNv6},
		}},
	}
	s, err := bgp.Open(bgp.Options{Log: slog.New(slog.DiscardHandler), BGP: settings})
	must(b, err)
	b.Cleanup(func() { s.Close(false) })
	must(b, s.SetNeighbors(settings.Neighbors))
	return s
}

// told are the routes of a neighbor: a host of each service, at a SID of its own.
func told(neighbor, services, shift int) (list []bgp.Announcement) {
	for i := range services {
		sid := fmt.Sprintf("fcbb:bb00:%x::/48", 1+shift+neighbor*services+i)
		list = append(list, bgp.Announcement{VIP: vipOf(i), Weight: 1,
			SID:      config.SID{Prefix: netip.MustParsePrefix(sid), Behavior: srv6.EndOFFER},
			Services: []discovery.Port{{Protocol: config.TCP, Port: 80}}})
	}
	return list
}

func learnMany(b *testing.B, neighbors, services int) {
	m := newMachine(b)
	r := m.start(m.text(manyLearned(neighbors, services)))
	var others []*bgp.Speaker
	for i := range neighbors {
		others = append(others, openNeighbor(b, i))
	}
	longest := time.Duration(0)
	await := func(what string, holds func([]api.Backend) bool) {
		for at := services - 1; at >= 0; {
			begun := time.Now()
			list, err := r.Backends(b.Context(), fmt.Sprint("s", at))
			must(b, err)
			if longest = max(longest, time.Since(begun)); holds(list) {
				at--
				continue
			}
			if time.Sleep(5 * time.Millisecond); b.Context().Err() != nil {
				b.Fatal("never: ", what)
			}
		}
	}
	step := func(name string, do func(), holds func([]api.Backend) bool) {
		longest = 0
		at, used := time.Now(), cputime.Used()
		do()
		await(name, holds)
		b.ReportMetric(time.Since(at).Seconds(), name+"-s")
		b.ReportMetric(cputime.Since(used).Seconds(), name+"-cpu-s")
		b.ReportMetric(float64(longest.Milliseconds()), name+"-answer-ms")
	}
	in := func(state config.BackendState, n int) func([]api.Backend) bool {
		return func(list []api.Backend) bool {
			count := 0
			for _, l := range list {
				if l.State == state {
					count++
				}
			}
			return count == n
		}
	}
	tell := func(shift int) func() {
		return func() {
			for i, s := range others {
				must(b, s.Announce(told(i, services, shift)))
			}
		}
	}
	before := heap()
	step("learn", tell(0), in(config.Up, neighbors))
	b.ReportMetric(float64(heap()-before)/(1<<20), "heap-MiB")
	time.Sleep(10 * time.Second) // routing has nothing more to say; sessions stand when it moves
	const idle = 20
	used := cputime.Used()
	time.Sleep(idle * time.Second)
	b.ReportMetric(cputime.Since(used).Seconds()/idle*100, "idle-%cpu")
	one := told(0, services, 0)
	one[services/2].Draining = true
	at := time.Now()
	must(b, others[0].Announce(one))
	for !in(config.Draining, 1)(backendsOf(b, r, services/2)) {
		time.Sleep(time.Millisecond)
	}
	b.ReportMetric(time.Since(at).Seconds(), "drain-one-s")
	step("move", tell(20000), func(list []api.Backend) bool {
		return in(config.Up, neighbors)(list) && in(config.Draining, neighbors)(list)
	})
	step("withdraw", func() {
		for _, s := range others {
			must(b, s.Announce(nil))
		}
	}, in(config.Up, 0))
	r.stop()
	b.ReportMetric(0, "ns/op")
}

func backendsOf(b *testing.B, r *running, service int) []api.Backend {
	list, err := r.Backends(b.Context(), fmt.Sprint("s", service))
	must(b, err)
	return list
}
