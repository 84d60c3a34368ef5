package e2e_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"testing"
	"time"

	"sextant/controller/listener"
	"sextant/datapath"
)

// apply changes the node file of a node by replacing texts, each of which it has.
func (f *telemetryFabric) apply(node string, replace ...string) {
	f.t.Helper()
	client := f.agents.client(node)
	text, err := client.Config(f.t.Context(), true)
	must(f.t, err)
	for i := 0; i < len(replace); i += 2 {
		at := regexp.MustCompile(replace[i])
		if !at.Match(text) {
			f.t.Fatalf("the node file of %s has no %s:\n%s", node, replace[i], text)
		}
		text = at.ReplaceAll(text, []byte(replace[i+1]))
	}
	_, err = client.Apply(f.t.Context(), "node.yaml", text, false)
	must(f.t, err)
}

// TestTelemetryOptions has nodes write into hop-by-hop options: a trace of IOAM, by a router that
// is nothing but Linux and by an agent, then Path Tracing. A download has the same octets at the
// end, the nodes of each report are those of its way, and the host sees no option.
func TestTelemetryOptions(t *testing.T) {
	f := newTelemetryFabric(t)
	content := make([]byte, 2<<20)
	rand.Read(content)
	f.apply("leaf1", `\n  node: 1\n`, "\n  node: 1\n  namespace: 77\n",
		`oneIn: 10`, "oneIn: 1", "encoding: int", "encoding: ioam")
	f.apply("leaf2", `\n  node: 2\n`, "\n  node: 2\n  namespace: 77\n")
	f.apply("spine1", `transit: \[leaf2\]`, "transit: [leaf1]\n  namespace: 77")
	f.on("spine1", "ip", "ioam", "namespace", "add", "77")
	for _, setting := range []string{"ioam6_id=11", "conf.leaf1.ioam6_enabled=1",
		"conf.leaf1.ioam6_id=5", "conf.leaf2.ioam6_id=6"} {
		f.on("spine1", "sysctl", "-q", "-w", "net.ipv6."+setting)
	}
	t.Run("stock Linux router", func(t *testing.T) { f.carry(t, content, 5001, true, 1, 11) })
	f.on("spine1", "sysctl", "-q", "-w", "net.ipv6.conf.leaf1.ioam6_enabled=0")
	f.apply("spine1", `transit: \[leaf1\]`, "transit: [leaf2]")
	t.Run("agent", func(t *testing.T) { f.carry(t, content, 5002, true, 1, 11) })
	f.apply("leaf1", "encoding: ioam", "encoding: path-tracing")
	t.Run("path tracing", func(t *testing.T) { f.carry(t, content, 5003, false, 0, 0) })
}

// TestTelemetryPlain has packets carry a trace that nobody encapsulates, from a leaf to the other,
// whose sink watches those without one, too.
func TestTelemetryPlain(t *testing.T) {
	f := newTelemetryFabric(t)
	content := make([]byte, 1<<20)
	rand.Read(content)
	hosts := []string{`\n  port: 33122`,
		"\n  port: 33122\n  plain: [\"2001:db8:a::/48\", \"2001:db8:b::/48\"]"}
	f.apply("leaf1", append(hosts, `(?s)\n  rules:.*?\n([a-z])`, "\n$1", `oneIn: 10`,
		"oneIn: 1", "encoding: int", "encoding: ioam")...)
	f.apply("spine1", hosts...)
	f.apply("spine2", hosts...)
	f.apply("leaf2", append(hosts, `sids: .*`, "sids: [\"2001:db8:b::/48\"]")...)
	f.download(content, 5001)
	inserted := f.counted("leaf1", "inserted")
	if removed := f.counted("leaf2", "removed"); inserted < 500 || removed != inserted {
		t.Fatalf("inserted %d, removed %d", inserted, removed)
	}
	for _, r := range f.drain(inserted) {
		if r.Flow == nil || len(r.Hops) < 2 || *r.Hops[0].Node != 1 ||
			*r.Hops[1].Node < 11 || *r.Hops[1].Node > 12 || r.Flow.Source.Addr() !=
			netip.MustParseAddr("2001:db8:a::1") {
			t.Fatalf("reported %+v", r)
		}
	}
}

// TestTelemetryUtilization keeps a link full whose queue sends 10 Mbit/s and whose rate is said to
// be 20: half of it is used, says each packet.
func TestTelemetryUtilization(t *testing.T) {
	f := newTelemetryFabric(t)
	f.apply("leaf1", `oneIn: 10`, "oneIn: 1\n    metadata: [node, utilization]")
	f.apply("spine1", `\n  port: 33122`,
		"\n  port: 33122\n  links: [{interface: leaf2, rate: 20Mbit}]")
	f.on("spine1", "tc", "qdisc", "add", "dev", "leaf2", "root", "tbf", "rate", "10mbit", "burst",
		"3000", "limit", "60000")
	f.discard()
	ended := make(chan struct{})
	var sender net.Conn
	inside(t, f.lab, "h1", func() (err error) {
		sender, err = net.Dial("udp", "[2001:db8:b::1]:9")
		return err
	})
	defer sender.Close()
	go func() {
		for octets := make([]byte, 1200); ; time.Sleep(200 * time.Microsecond) {
			select {
			case <-ended:
				return
			default:
				_, _ = sender.Write(octets)
			}
		}
	}()
	defer close(ended)
	f.next(func(r listener.Report) bool {
		if len(r.Hops) < 2 || *r.Hops[1].Node != 11 || r.Hops[1].UtilizationPPM == nil {
			return false
		}
		ppm := *r.Hops[1].UtilizationPPM
		if ppm > 600000 {
			t.Errorf("%d ppm of 20 Mbit/s, of which at most 10 are sent", ppm)
		}
		return ppm > 450000 && ppm < 550000
	})
}

// carry downloads with telemetry in all packets, and wants two nodes with interfaces or names in
// the report of each.
func (f *telemetryFabric) carry(t *testing.T, content []byte, port int, named bool,
	first, second uint64) {
	t.Helper()
	before, removed := f.counted("leaf1", "inserted"), f.counted("leaf2", "removed")
	f.download(content, port)
	inserted := f.counted("leaf1", "inserted") - before
	if removed = f.counted("leaf2", "removed") - removed; inserted < 1000 || removed != inserted {
		t.Fatalf("inserted %d, removed %d", inserted, removed)
	}
	ofFlow := 0
	for _, r := range f.drain(inserted) {
		if len(r.Hops) < 2 || named && (*r.Hops[0].Node != first || *r.Hops[1].Node != second ||
			datapath.KnowsQueues() && (r.Hops[0].QueueBytes == nil ||
				r.Hops[1].QueueBytes == nil)) ||
			!named && (r.Hops[0].Egress == nil || r.Hops[1].Egress == nil) {
			t.Fatalf("reported %s", fmt.Sprint(hopsOf(r)))
		}
		if r.Flow != nil && int(r.Flow.Source.Port()) == port {
			ofFlow++
		}
	}
	if ofFlow < 500 {
		t.Errorf("%d of %d reports name the flow", ofFlow, inserted)
	}
}

// hopsOf shows what nodes said.
func hopsOf(r listener.Report) string {
	var b bytes.Buffer
	for _, h := range r.Hops {
		fmt.Fprintf(&b, "%+v ", h)
	}
	return b.String()
}
