package agent_test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
	"sextant/linux"
)

// reach gives the machine a way to SIDs: by a neighbour behind edge0 whose address is resolved.
func (m *machine) reach() {
	m.t.Helper()
	must(m.t, m.ns.Do(func() error {
		link, err := netlink.LinkByName("edge0")
		if err != nil {
			return err
		}
		address, _ := netlink.ParseAddr("fd00:5e::e1/64")
		address.Flags = unix.IFA_F_NODAD
		sids, _ := netlink.ParseIPNet("fcbb:bb00::/32")
		return errors.Join(
			linux.WriteSysctl("net.ipv6.conf.all.forwarding", "1"),
			netlink.AddrAdd(link, address),
			netlink.NeighSet(&netlink.Neigh{
				LinkIndex: link.Attrs().Index, Family: unix.AF_INET6, State: netlink.NUD_PERMANENT,
				IP:           netip.MustParseAddr("fd00:5e::1").AsSlice(),
				HardwareAddr: []byte{2, 0, 0, 0, 9, 9},
			}),
			netlink.RouteAdd(&netlink.Route{Dst: sids,
				Gw: netip.MustParseAddr("fd00:5e::1").AsSlice()}),
		)
	}))
}

func (r *running) explain(q api.Question) []api.Explanation {
	r.t.Helper()
	list, err := r.Explain(r.t.Context(), q)
	must(r.t, err)
	return list
}

func webFlow(port uint16) *api.Flow {
	return &api.Flow{
		Source:      netip.AddrPortFrom(netip.MustParseAddr("2001:db8:c::1"), port),
		Destination: netip.MustParseAddrPort("[2001:db8:80::80]:80"), Protocol: config.TCP,
	}
}

// What an edge explains of a flow: the bytes that leave name the chain that the tables tell, and
// nothing is counted.
func TestExplainFlowAtEdge(t *testing.T) {
	m := newMachine(t)
	m.reach()
	a := m.start(nodeText)
	defer a.stop()
	before := a.metrics()
	for port := uint16(40000); port < 40050; port++ {
		trace, err := a.Trace(t.Context(), *webFlow(port))
		must(t, err)
		list := a.explain(api.Question{Flow: webFlow(port)})
		if len(list) != 2 || list[0].Packet != "opening" || list[1].Packet != "following" {
			t.Fatalf("explained %+v", list)
		}
		for i, segments := range [][]netip.Addr{trace.Opening, trace.Following} {
			e := list[i]
			if e.Verdict != "transmit" || e.Service != "web" || e.Trace.Bucket != trace.Bucket ||
				fmt.Sprint(e.Path) != fmt.Sprint(segments) ||
				e.NextHop == nil || e.NextHop.Interface != "edge0" ||
				e.NextHop.Destination != "02:00:00:00:09:09" {
				t.Errorf("explained %+v, next hop %+v; the tables say %v", e, e.NextHop, segments)
			}
		}
		if got := fmt.Sprint(list[0].OfferedTo); got != fmt.Sprintf("[%s %s]",
			trace.Chain[0].Backend, trace.Chain[1].Backend) {
			t.Errorf("offered to %s, chain %+v", got, trace.Chain)
		}
	}
	if after := a.metrics(); packetLines(before) != packetLines(after) {
		t.Errorf("explaining has counted packets:\n%s", packetLines(after))
	}
}

// packetLines are the metrics that count packets.
func packetLines(metrics string) string {
	var lines []string
	for line := range strings.Lines(metrics) {
		if strings.Contains(line, "packets_total{") || strings.Contains(line, "drops_total{") ||
			strings.Contains(line, "offers") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// Drain and previous owners show in the sentence.
func TestExplainSaysWhy(t *testing.T) {
	m := newMachine(t)
	m.reach()
	a := m.start(nodeText)
	defer a.stop()
	flow := *webFlow(40001)
	trace, err := a.Trace(t.Context(), flow)
	must(t, err)
	drain(a, trace.Chain[0].Backend, config.Draining)
	list := a.explain(api.Question{Flow: &flow})
	if want := trace.Chain[0].Backend + " (owned the bucket before)"; !strings.Contains(list[1].Why,
		want) || strings.Contains(list[0].Why, want) {
		t.Errorf("opening: %s\nfollowing: %s\nwant %q in the second alone", list[0].Why,
			list[1].Why, want)
	}
	flow.Destination = netip.MustParseAddrPort("[2001:db8:80::80]:81")
	list = a.explain(api.Question{Flow: &flow})
	if list[0].Verdict != "drop" || list[0].Reason != "no_service" || !strings.Contains(list[0].Why,
		"sextant service add") || list[0].Frame != "" {
		t.Errorf("a port without service: %+v", list[0])
	}
	flow.Destination = netip.MustParseAddrPort("[2001:db8:99::1]:80")
	if list = a.explain(api.Question{Flow: &flow}); list[0].Verdict != "pass" ||
		!strings.Contains(list[0].Why, "no VIP") {
		t.Errorf("no VIP: %+v", list[0])
	}
}

// What a host explains: whether it would accept, and a frame that an edge's explanation wrote.
func TestExplainAtHost(t *testing.T) {
	m := newMachine(t)
	m.reach()
	a := m.start(nodeText)
	defer a.stop()
	flow := &api.Flow{
		Source:      netip.MustParseAddrPort("[2001:db8:c::1]:40000"),
		Destination: netip.MustParseAddrPort("[2001:db8:80::81]:443"), Protocol: config.TCP,
	}
	list := a.explain(api.Question{Role: api.Host, Flow: flow})
	if e := list[0]; e.Offer != "accepted" || e.Service != "api" || e.Outcome != "taken" ||
		e.SID == nil || e.SID.Behavior != "End.OFFER" {
		t.Errorf("opening: %+v", list[0])
	}
	if e := list[1]; e.Offer != "not_here" || e.Verdict == "drop" {
		t.Errorf("following: %+v", list[1])
	}
	must(t, m.setThreshold(a, "api"))
	list = a.explain(api.Question{Role: api.Host, Flow: flow})
	if list[0].Offer != "refused" {
		t.Errorf("a host that is full: %+v", list[0])
	}
	// The same twice: the second is refused because the first was, in this question alone.
	frame := m.offered(t, list[0])
	list = a.explain(api.Question{Role: api.Host, Interface: "host0",
		Frames: []api.Frame{frame, frame}})
	if list[0].Offer != "refused" || list[1].Offer != "refused_before" {
		t.Errorf("a SYN and its retransmission: %s, then %s", list[0].Offer, list[1].Offer)
	}
}

// setThreshold makes a service refuse all.
func (m *machine) setThreshold(a *running, service string) error {
	policy, zero := config.Static, 0
	_, err := a.PutService(m.t.Context(), api.Update, service, api.Host,
		api.ServiceSpec{Accept: &api.AcceptSpec{Policy: &policy, Threshold: &zero}})
	return err
}

// offered makes the frame that came to the host again, from the one that it passed on.
func (m *machine) offered(t *testing.T, e api.Explanation) []byte {
	t.Helper()
	frame, err := hex.DecodeString(e.Frame)
	must(t, err)
	sid := netip.MustParseAddr("fcbb:bb00:9:1::").As16()
	copy(frame[14+24:], sid[:])
	return frame
}

func TestExplainRefuses(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	defer a.stop()
	v4 := &api.Flow{Source: netip.MustParseAddrPort("192.0.2.1:1"),
		Destination: netip.MustParseAddrPort("[::1]:1")}
	for name, test := range map[string]struct {
		question api.Question
		want     string
	}{
		"nothing": {api.Question{}, "what is to be explained is not clear"},
		"both": {api.Question{Flow: webFlow(1), Frames: []api.Frame{{1}}},
			"what is to be explained is not clear"},
		"families": {api.Question{Flow: v4}, "are of different families"},
		"role":     {api.Question{Flow: webFlow(1), Role: "router"}, "unknown role"},
		"interface": {api.Question{Flow: webFlow(1), Interface: "host0"},
			`the edge runs on no interface "host0"`},
		"short frame": {api.Question{Frames: []api.Frame{{1, 2}}},
			"packet 1: explain a frame of 2 bytes"},
		"too many": {api.Question{Frames: make([]api.Frame, api.ExplainMax+1)},
			"are too many at once"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := a.Explain(t.Context(), test.question); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
