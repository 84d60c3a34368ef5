package e2e_test

import (
	"fmt"
	"net/netip"
	"testing"

	"sextant/agent/api"
	"sextant/config"
)

// ledLab is the lab of paths.yaml, of which the edge and the hosts serve datagrams, too.
type ledLab struct {
	*wayLab
	traffic *traffic
	flows   func(when string)
}

func upLed(t *testing.T) *ledLab {
	t.Helper()
	w := &ledLab{wayLab: upWays(t, "carrier")}
	for i := range w.accepted {
		echoDatagrams(t, w.lab, server(i+1), echoAddress)
		w.reconfigure(server(i+1), func(n *config.Node) {
			udp := n.Host.Services[0]
			udp.Name, udp.Protocol = "udp", config.UDP
			n.Host.Services = append(n.Host.Services, udp)
		})
	}
	w.reconfigure("edge", func(n *config.Node) {
		n.Domain.Overhead = 64 // as two carriers take
		udp := n.Edge.Services[0]
		udp.Name, udp.Protocol = "udp", config.UDP
		n.Edge.Services = append(n.Edge.Services, udp)
	})
	w.open(10)
	w.traffic = startTraffic(t, w.lab)
	w.flows = w.traffic.comeAndGo(w.lab, "client", echoAddress)
	return w
}

// counted are the packets of services and of their backends, by name.
func (w *ledLab) counted() map[string]uint64 {
	w.t.Helper()
	services, err := w.client("edge").Services(w.t.Context(), "", "")
	must(w.t, err)
	counted := map[string]uint64{}
	for _, s := range services {
		counted[s.Name] = s.Packets
		backends, err := w.client("edge").Backends(w.t.Context(), s.Name)
		must(w.t, err)
		for _, b := range backends {
			counted[s.Name+" "+b.Name] = b.Packets
		}
	}
	return counted
}

// step does something to the agents under traffic. No counter goes back, and packets take the
// routers that are meant: while it is done, also those from before.
func (w *ledLab) step(what string, do func(), routers ...string) {
	w.t.Helper()
	before := w.counted()
	do()
	for name, now := range w.counted() {
		if now < before[name] {
			w.t.Errorf("%s: packets of %s were %d, and are %d", what, name, before[name], now)
		}
	}
	w.flows(what)
	w.take(what, routers...)
}

// lead returns a change to paths for all services, with so many backends beside that nobody reaches
// in a service of their own.
func lead(depth, more int, path string) func(*config.Node) {
	return func(n *config.Node) {
		n.Edge.Network = nil
		for i := range n.Edge.Services[:2] {
			s := &n.Edge.Services[i]
			s.Depth, s.Path, s.Way, s.Copies = depth, sids(path), nil, nil
		}
		if more == 0 {
			return
		}
		many := n.Edge.Services[0]
		many.Name, many.Port, many.Backends = "many", 9, nil
		for i := range more {
			many.Backends = append(many.Backends, config.Backend{Name: fmt.Sprint("away", i),
				Weight: 1, State: config.Up,
				SID: netip.MustParseAddr(fmt.Sprintf("fcbb:bb00:%x::", 0x1000+i))})
		}
		n.Edge.Services = append(n.Edge.Services[:2:2], many)
	}
}

// twoWays returns a change to two computed paths, of which some packets take both.
func (w *ledLab) twoWays(copies ...config.Copied) func(*config.Node) {
	return func(n *config.Node) {
		n.Edge.Network = &config.EdgeNetwork{Network: config.Network{Topology: w.file,
			FRR: "/run/frr", Node: "in"}}
		for i := range n.Edge.Services[:2] {
			s := &n.Edge.Services[i]
			s.Depth, s.Path, s.Copies = 3, nil, copies
			s.Way = &config.Way{By: config.ByIGP, Disjoint: 2, SIDs: 2}
			for j := range s.Backends {
				s.Backends[j].Node = "out"
			}
		}
	}
}

// Agents of an edge with paths and of hosts are killed and start again, by the same file and by
// others, and are told of changes, also to so many paths that tables are made anew: no connection
// breaks, no datagram is lost, no counter goes back, and no packet leaves its path meanwhile. What
// is explained is what the routers see.
func TestPathsRestart(t *testing.T) {
	w := upLed(t)
	w.step("paths, by apply", func() { w.reconfigure("edge", lead(4, 0, "a2")) }, "right")
	left := w.received("left")
	w.step("a restart", func() { w.restart("edge", same) }, "right")
	w.step("agents that die", func() { w.dying(5) }, "right")
	w.step("a longer path, by a restart", func() {
		w.restart("edge", lead(3, 0, "a2 a3"))
	}, "right")
	w.step("many paths, by apply", func() { w.reconfigure("edge", lead(3, 600, "a2 a3")) },
		"right")
	w.step("more paths, by a restart", func() { w.restart("edge", lead(3, 1200, "a2 a3")) },
		"right")
	if n := w.received("left") - left; n > 100 { // it looks for its neighbours
		t.Errorf("%d packets left their path", n)
	}
	list, err := w.client("edge").Explain(t.Context(), api.Question{Flow: &api.Flow{
		Source:      netip.MustParseAddrPort("[2001:db8:c::1]:4000"),
		Destination: netip.MustParseAddrPort(echoAddress), Protocol: config.TCP}})
	must(t, err)
	if h := list[0].Header; h[0].Bytes != "00a2" || h[1].Bytes != "00a3" {
		t.Errorf("explained as %+v", h)
	}
	w.step("another path, by a restart", func() { w.restart("edge", lead(3, 0, "a1")) }, "left")
	w.step("two ways, by a restart", func() { w.restart("edge", w.twoWays()) }, "left", "right")
	w.step("copies, by apply", func() { w.reconfigure("edge", w.twoWays(config.CopiedAll)) },
		"left", "right")
	w.step("a restart with copies", func() { w.restart("edge", same) }, "left", "right")
	w.lossy("left", true) // nothing is lost of what goes over both routers, also while agents die
	w.step("a router that loses all", func() { w.dying(3) }, "left", "right")
	w.lossy("left", false)
	if lost := w.traffic.stop(); lost != 0 {
		t.Errorf("%d of %d datagrams are lost", lost, w.traffic.sent.Load())
	}
	if said, _, _, second := w.talk(10); second < said*9/10 {
		t.Errorf("after all, %d packets, and %d second copies", said, second)
	}
}
