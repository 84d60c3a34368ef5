package main

import (
	"context"
	"encoding/hex"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sextant/controller/listener"
)

// twoHops is a report of node 12 about TCP between 40000 and 443: interfaces 7 and 1, latency
// 1,500 ns, queue 37, 12.5 % of the link used; INT-MD of nodes 1 and 2 in it.
const twoHops = `20c0abcd 0000000c 15250460 71000000 00000000 00070001 000005dc 00000025 0001e848
	60000000 00581140
	fc000000000000000000000000000001 fc000000000000000000000000000002 1234 8162 0058 0000
	18070029 20000206 90000000 00000000 00000002 00000025 00000001 00000005
	60000000 00140640
	20010db8000100000000000000000001 20010db8000200000000000000000002
	9c4001bb`

// startListener runs a listener that has got one report, until the test ends.
func startListener(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "t")
	ctx, cancel := context.WithCancel(t.Context())
	ended, ready := make(chan error, 1), make(chan netip.AddrPort, 1)
	go func() {
		ended <- listener.Run(ctx, listener.Options{Socket: socket,
			Listen: netip.MustParseAddrPort("[::1]:0"), Log: slog.New(slog.DiscardHandler),
			Ready: func(at netip.AddrPort) { ready <- at }})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
	case at := <-ready:
		sendReport(t, at)
	}
	for {
		links, err := listener.NewClient(socket).Links(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(links) > 0 {
			return socket
		}
		time.Sleep(time.Millisecond)
	}
}

func sendReport(t *testing.T, to netip.AddrPort) {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(twoHops), ""))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
}

// ages are what differs from run to run.
var ages = regexp.MustCompile(`("ageMs": ?)\d+`)

// The commands about telemetry, one after the other against a listener that runs.
func TestTelemetrySession(t *testing.T) {
	w := newWorld(t, fakeNode)
	socket := startListener(t)
	w.environ["SEXTANT_TELEMETRY"] = socket
	var text strings.Builder
	const flow = "[2001:db8:1::1]:40000 [2001:db8:2::2]:443"
	for _, line := range []string{
		"telemetry", "telemetry links -o json", "telemetry links -o name",
		"telemetry path " + flow, "telemetry path " + flow + " -o wide",
		"telemetry path " + flow + " -o json", "telemetry path " + flow + " --protocol udp",
		"telemetry path here there",
		"telemetry path " + flow + " --follow --interval 100ms --count 2 -o json",
		"telemetry path " + flow + " --follow -o yaml",
		"telemetry links --follow --interval 1ms", "telemetry exporters -o json",
		"telemetry listen --listen nowhere", "telemetry listen --metrics 9",
		"telemetry listen --ipfix 4739", "telemetry listen --allow here",
		"telemetry listen --ipfix-interval 1ms",
		"telemetry listen --path-tracing-shift 9",
		"telemetry listen --listen [::1]:0 --interface nothere0",
		"telemetry listen -o yaml", "telemetry links --telemetry /nonexistent",
		"telemetry watch add all", "telemetry watch set all",
	} {
		text.WriteString(w.run(strings.Fields(line)...))
	}
	out := strings.ReplaceAll(text.String(), socket, "TELEMETRY")
	golden(t, "telemetry", ages.ReplaceAllString(out, "${1}AGE"))
	if shown := w.run("telemetry", "links", "--follow", "--count", "1"); !regexp.MustCompile(
		`(?m)^\d\d:\d\d:\d\d\nNODE `).MatchString(shown) {
		t.Error(shown)
	}
	for _, tables := range []string{"links", "exporters"} {
		if shown := w.run("telemetry", tables); !strings.Contains(shown, "12 ") ||
			!strings.Contains(shown, "AGE") {
			t.Error(shown)
		}
	}
}
