package listener_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/controller/listener"
	"sextant/controller/tsharktest"
)

// worked is the specification's report of node 12: interfaces 7 and 1, queue 37, TCP inside.
const worked = `20c0abcd 0000000c 15130260 50000000 00000000 00070001 00000025 60000000 00140640
	20010db8000100000000000000000001 20010db8000200000000000000000002
	9c4001bb 00000000 00000000 50020000 00000000`

// run has a listener take reports, and returns what sends to it, and the socket of its API. What it
// says at its end comes when the context ends.
func run(ctx context.Context, t *testing.T, o listener.Options) (conn *net.UDPConn, socket string,
	ended <-chan error) {
	t.Helper()
	o.Listen, o.Socket = netip.MustParseAddrPort("[::1]:0"), filepath.Join(t.TempDir(), "s")
	ready, end := make(chan netip.AddrPort, 1), make(chan error, 1)
	o.Log, o.Ready = slog.New(slog.DiscardHandler), func(at netip.AddrPort) { ready <- at }
	go func() { end <- listener.Run(ctx, o) }()
	var err error
	select {
	case at := <-ready:
		conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(at))
	case err = <-end:
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, o.Socket, end
}

// A report that comes by UDP is shown by the API, the metrics and as a line of JSON.
func TestListener(t *testing.T) {
	var lines bytes.Buffer
	sink, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conn, socket, ended := run(ctx, t, listener.Options{Lines: &lines, Interval: time.Hour,
		IPFIX: sink.LocalAddr().(*net.UDPAddr).AddrPort()})
	b, err := hex.DecodeString(strings.Join(strings.Fields(worked), ""))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	client := listener.NewClient(socket)
	flow := api.Flow{Source: netip.MustParseAddrPort("[2001:db8:1::1]:40000"),
		Destination: netip.MustParseAddrPort("[2001:db8:2::2]:443"), Protocol: "tcp"}
	path, err := client.Path(ctx, flow)
	var refused *api.Error
	for errors.As(err, &refused) && refused.Code == api.NotFound {
		time.Sleep(time.Millisecond)
		path, err = client.Path(ctx, flow)
	}
	if err != nil || len(path.Hops) != 1 || *path.Hops[0].Node != 12 ||
		*path.Hops[0].QueueBytes != 37 || *path.Hops[0].Ingress != 7 || *path.Hops[0].Egress != 1 ||
		path.Hops[0].LatencyNs != nil {
		t.Fatalf("%+v, %v", path, err)
	}
	links, err := client.Links(ctx)
	if err != nil || len(links) != 1 || links[0].QueueBytes.Last != 37 || links[0].Node != 12 {
		t.Fatalf("%+v, %v", links, err)
	}
	exporters, err := client.Exporters(ctx)
	if err != nil || len(exporters) != 1 || exporters[0].Hardware != 3 ||
		exporters[0].Received != 1 || exporters[0].Address != netip.IPv6Loopback() {
		t.Fatalf("%+v, %v", exporters, err)
	}
	metrics, err := api.NewClient(socket).MetricsText(ctx)
	for _, want := range []string{
		"sextant_collector_reports_total 1",
		`sextant_collector_dropped_total{reason="bad-report"} 0`,
		`sextant_collector_link_queue_bytes_sum{egress="1",node="12"} 37`,
		`sextant_collector_ipfix_messages_total{result="failed"} 0`,
		`sextant_collector_exporter_lost_total{address="::1",hardware="3",node="12"} 0`,
	} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("no %q in %v\n%s", want, err, metrics)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	checkIPFIX(t, sink)
	var line listener.Report
	if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Node != 12 ||
		line.Flow == nil || *line.Flow != flow || !line.Congested || len(line.Hops) != 1 {
		t.Fatalf("%s: %v", lines.Bytes(), err)
	}
}

// checkIPFIX wants the flow and the link of the worked example.
func checkIPFIX(t *testing.T, sink *net.UDPConn) {
	t.Helper()
	var frames [][]byte
	for {
		b := make([]byte, 1500)
		if err := sink.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := sink.Read(b)
		if err != nil {
			t.Fatalf("%v after %d messages", err, len(frames))
		}
		frames = append(frames, tsharktest.UDP(t, 4739, b[:n]))
		text := tsharktest.Read(t, frames, "-V")
		if strings.Contains(text, "Malformed") {
			t.Fatal(text)
		}
		if strings.Contains(text, "Observation Point Id: 12") &&
			strings.Contains(text, "OutputInt: 1") &&
			strings.Contains(text, "SrcAddr: 2001:db8:1::1") &&
			strings.Contains(text, "SrcPort: 40000") {
			return
		}
	}
}

// An IPFIX collector that is not there, or that sends what nobody asked for, costs nothing but its
// records: they are counted, and the listener goes on.
func TestHostileIPFIXCollector(t *testing.T) {
	sink, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv6loopback})
	if err != nil {
		t.Fatal(err)
	}
	to := sink.LocalAddr().(*net.UDPAddr).AddrPort()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conn, socket, ended := run(ctx, t, listener.Options{Interval: time.Second, IPFIX: to})
	_, from, err := sink.ReadFromUDPAddrPort(make([]byte, 1500)) // templates
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		if _, err := sink.WriteToUDPAddrPort(make([]byte, 1400), from); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	client := api.NewClient(socket)
	b, err := hex.DecodeString(strings.Join(strings.Fields(worked), ""))
	if err != nil {
		t.Fatal(err)
	}
	failed := false
	for number := uint32(0); !failed; number++ {
		binary.BigEndian.PutUint32(b, 0x20c00000|number) // version, hardware, sequence number
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
		metrics, err := client.MetricsText(ctx)
		if err != nil {
			t.Fatal(err)
		}
		failed = !strings.Contains(string(metrics),
			`sextant_collector_ipfix_messages_total{result="failed"} 0`)
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
