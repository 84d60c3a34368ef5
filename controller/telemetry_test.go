package controller

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"sextant/packet/telemetry"
	"sextant/te/topology"
)

// exporter sends Telemetry Reports as a sink does.
type exporter struct {
	t        *testing.T
	socket   *net.UDPConn
	node     uint32
	sequence uint32
	last     []byte
}

func newExporter(t *testing.T, c *Client, node uint32, from string) *exporter {
	t.Helper()
	s, err := c.Status(t.Context())
	if err != nil || s.Telemetry == nil {
		t.Fatalf("the controller does not listen: %v", err)
	}
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from),
		s.Telemetry.Listen.Port()))
	local := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))
	socket, err := net.DialUDP("udp", local, to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return &exporter{t: t, socket: socket, node: node}
}

type hop struct{ node, queue uint32 }

// carrying is a packet of testFlow in SRv6 with INT-MD of some hops, or without.
func carrying(t *testing.T, port uint16, hops ...hop) []byte {
	t.Helper()
	f := testFlow(port)
	header := func(next uint8, src, dst netip.Addr, payload []byte) []byte {
		b := append([]byte{0x60, 0, 0, 0, byte(len(payload) >> 8), byte(len(payload)), next, 64},
			append(src.AsSlice(), dst.AsSlice()...)...)
		return append(b, payload...)
	}
	tcp := append([]byte{byte(port >> 8), byte(port), 443 >> 8, 443 & 255}, make([]byte, 16)...)
	tcp[12] = 0x50
	inner := header(6, f.Source.Addr(), f.Destination.Addr(), tcp)
	if len(hops) == 0 {
		return inner
	}
	md := telemetry.MD{Shim: telemetry.Shim{NPT: 2, Value: 41}, HopWords: 2, Remaining: 8,
		Instructions: telemetry.NodeID | telemetry.Queue}
	for i := range hops { // the last node is on top
		h := hops[len(hops)-1-i]
		md.Stack = telemetry.AppendMetadata(md.Stack, md.Instructions, telemetry.Metadata{
			Present: md.Instructions, NodeID: h.node, QueueBytes: h.queue})
	}
	body, err := md.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	udp := append([]byte{0xc0, 0, 33122 >> 8, 33122 & 255, 0, 0, 0, 0}, append(body, inner...)...)
	udp[4], udp[5] = byte(len(udp)>>8), byte(len(udp))
	return header(17, netip.MustParseAddr("fd00:5e::1"), netip.MustParseAddr("fcbb:bb00:7::"), udp)
}

// report sends one report: of a packet, and of a pause if there was one.
func (e *exporter) report(packet []byte, pauseUS uint32) {
	e.t.Helper()
	r := telemetry.Report{Type: telemetry.RepINT, InType: telemetry.InIPv6, Tracked: true,
		Inner: packet}
	if pauseUS > 0 {
		r.Congested, r.DomainID, r.DSBits = true, telemetry.Domain, telemetry.DSIdleGap
		r.Metadata = telemetry.AppendCongestion(nil, telemetry.Congestion{IdleGapUS: pauseUS})
		r.DSBits |= telemetry.DSFlowHash
	}
	b, err := telemetry.Group{Node: e.node, Sequence: e.sequence}.Append(nil)
	if err == nil {
		b, err = r.Append(b)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	e.sequence++
	e.last = b
	e.send(b)
}

func (e *exporter) send(b []byte) {
	e.t.Helper()
	if _, err := e.socket.Write(b); err != nil {
		e.t.Fatal(err)
	}
}

const telemetryText = "queueBytes: 1000\n" +
	"policy: {backoffLeast: 0s, backoffMost: 0s, threshold: 1}\n" +
	"telemetry: {listen: \"[::1]:0\", exporters: [\"::1/128\"]}\n" +
	"routers: [{name: leaf1, node: 101}, {name: leaf2, node: 102}, {name: spine1, node: 201}]\n"

// Reports by UDP become weights of links and decisions: with telemetry in the packet that paused,
// without (then the path of the flow's last packet counts), and for flows that were moved.
func TestTelemetryMovesFlows(t *testing.T) {
	c, stop := start(t, telemetryText)
	defer stop()
	e := newExporter(t, c, 102, "::1")
	e.report(carrying(t, 1, hop{101, 900}, hop{201, 0}), 0)
	weight := func() (w float64) {
		links, err := c.Links(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			if l.From == "leaf1" && l.To == "spine1" && l.AgeMs != nil {
				w = *l.Weight
			}
		}
		return w
	}
	await(t, "the queue before leaf1>spine1 is seen", func() bool { return weight() > 0.8 })
	if f, err := c.Flows(t.Context()); err != nil || len(f) != 0 {
		t.Errorf("nothing paused, and flows are looked at: %+v, %v", f, err)
	}
	e.report(carrying(t, 1), 500) // a pause, without telemetry
	moved := func(port uint16, times int) {
		t.Helper()
		await(t, fmt.Sprintf("flow %d moves %d times", port, times), func() bool {
			f, err := c.Flow(t.Context(), testFlow(port))
			return err == nil && f.Moves == times && f.From == "leaf1" && f.To == "leaf2"
		})
	}
	moved(1, 1)
	e.report(carrying(t, 2, hop{101, 900}, hop{201, 0}), 500)
	moved(2, 1)
	d, err := c.Reroutes(t.Context(), 1, true)
	if err != nil || len(d) != 1 || d[0].Current == nil ||
		strings.Join(d[0].Current.Path, " ") != "leaf1 spine1 leaf2" {
		t.Errorf("%+v, %v", d, err)
	}
}

// What is repeated, comes from elsewhere, names what is not there, or is broken, moves nothing and
// changes no weight; it is counted.
func TestTelemetryThatIsNotBelieved(t *testing.T) {
	c, stop := start(t, strings.Replace(telemetryText, "[::1]:0", "[::]:0", 1))
	defer stop()
	good, bad := newExporter(t, c, 102, "::1"), newExporter(t, c, 102, "127.0.0.1")
	status := func() TelemetryStatus {
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return *s.Telemetry
	}
	bad.report(carrying(t, 1, hop{101, 900}, hop{201, 900}), 500)
	await(t, "a foreign one is counted", func() bool { return status().Foreign == 1 })
	good.report(carrying(t, 1, hop{101, 900}, hop{777, 900}), 500)
	good.report(carrying(t, 2), 500) // nothing is known of its way
	good.report(carrying(t, 1, hop{101, 900}, hop{101, 900}, hop{102, 0}), 500)
	await(t, "three are not placed", func() bool { return status().Unplaced == 3 })
	good.send([]byte("no report at all"))
	await(t, "a broken one is counted", func() bool { return status().Broken == 1 })
	s, err := c.Status(t.Context())
	if err != nil || s.Flows != 0 || !strings.Contains(fmt.Sprint(s.Warnings), "3 reports name") {
		t.Errorf("%d flows, warnings %q, %v", s.Flows, s.Warnings, err)
	}
	good.report(carrying(t, 3, hop{101, 100}, hop{201, 0}), 0)
	await(t, "a good one is taken", func() bool { return status().Reports == 4 })
	before, err := c.Links(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		good.send(good.last)
	}
	await(t, "20 repeated ones are counted", func() bool { return status().Repeated == 20 })
	after, err := c.Links(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range before {
		if before[i].Occupancy < after[i].Occupancy || before[i].Noise < after[i].Noise {
			t.Errorf("link %+v has become %+v", before[i], after[i])
		}
	}
}

// With parallel links, the interface that a router names says which one a packet took; an interface
// that the file does not name is the first one's.
func TestTelemetryTellsParallelLinks(t *testing.T) {
	b := topology.NewBuilder("two", 0)
	for _, name := range []string{"a", "b"} {
		if _, err := b.AddNode(topology.NodeSpec{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if _, err := b.AddEdge(topology.EdgeSpec{From: 0, To: 1, Weight: 1}); err != nil {
			t.Fatal(err)
		}
	}
	g := b.Build()
	link := func(at uint32) Queue { return Queue{From: "a", To: "b", Interface: at} }
	c := &Config{Queue: 1000, Links: []Queue{link(30), link(10), link(20)}}
	n, err := newNames(g, c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlaces(g, c, n)
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[uint32]topology.Edge{30: 0, 10: 1, 20: 2, 99: 0} {
		if e, ok := p.link(1, at, 1); !ok || e != want {
			t.Errorf("interface %d is link %d, %v; want %d", at, e, ok, want)
		}
	}
	if e, ok := p.link(2, 30, 0); ok {
		t.Errorf("router b has no link, and got %d", e)
	}
	for name, want := range map[string]topology.Edge{"a%30": 0, "a%10": 1, "a%20": 2, "a": 0} {
		path, err := n.path([]string{name, "b"})
		if err != nil || len(path) != 1 || path[0] != want {
			t.Errorf("%s is link %v, %v; want %d", name, path, err, want)
		}
		if got := n.routers(path); name != "a" && got[0] != name {
			t.Errorf("link %v begins at %s, want %s", path, got, name)
		}
	}
	for _, name := range []string{"a%40", "a%x", "a%0", "a%", "c%30"} {
		if path, err := n.path([]string{name, "b"}); err == nil {
			t.Errorf("%s is link %v", name, path)
		}
	}
	c.Links = append(c.Links, link(40))
	if _, err := newNames(g, c); err == nil {
		t.Error("a fourth link is taken")
	}
	c = &Config{Routers: []Router{{Name: "a", Node: 2}}}
	if _, err := newPlaces(g, c, n); err == nil {
		t.Error("two routers have one number")
	}
}

// Reports that move flows are not taken from anywhere.
func TestTelemetryNeedsExporters(t *testing.T) {
	if _, err := Parse([]byte("topology: x\ntelemetry: {listen: \"[::]:1\"}")); err == nil {
		t.Error("telemetry from anywhere is taken")
	}
}

// Utilization is a part of the rate; all ones, and what is more than all of it, say nothing.
func TestUsedPart(t *testing.T) {
	for ppm, want := range map[uint32]float64{0: 0, 250_000: 0.25, 1_000_000: 1, 1_000_001: 0,
		1<<32 - 1: 0} {
		s := telemetry.Sample{Known: telemetry.FieldUtilization, UtilizationPPM: ppm}
		if got := usedPart(&s); got != want {
			t.Errorf("%d ppm: %v", ppm, got)
		}
		s.Known = telemetry.FieldQueue
		if got := usedPart(&s); got != 0 {
			t.Errorf("%d ppm that are not there: %v", ppm, got)
		}
	}
}
