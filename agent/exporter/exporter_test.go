package exporter_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"sextant/agent/exporter"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

// datagrams collects what is sent; it refuses while broken.
type datagrams struct {
	sent   [][]byte
	broken bool
}

func (d *datagrams) Write(b []byte) (int, error) {
	if d.broken {
		return 0, errors.New("connection refused")
	}
	d.sent = append(d.sent, slices.Clone(b))
	return len(b), nil
}

// reports parses a datagram.
func reports(t *testing.T, b []byte) (telemetry.Group, []telemetry.Report) {
	t.Helper()
	group, rest, err := telemetry.ParseGroup(b)
	if err != nil {
		t.Fatal(err)
	}
	var all []telemetry.Report
	for len(rest) > 0 {
		var r telemetry.Report
		if r, rest, err = telemetry.ParseReport(rest); err != nil {
			t.Fatalf("%v: %x", err, b)
		}
		all = append(all, r)
	}
	return group, all
}

var (
	flow4 = flow.Tuple{Src: netip.MustParseAddr("192.0.2.1"), SrcPort: 258, DstPort: 772,
		Dst: netip.MustParseAddr("192.0.2.2"), Protocol: 6}
	start = time.Unix(1, 0)
)

func newExporter(t *testing.T, to *datagrams) *exporter.Exporter {
	t.Helper()
	e, err := exporter.New(to, exporter.Options{Node: 12, Hardware: 3, DatagramSize: 200,
		FlushAfter: time.Second, ScanEvery: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestCoalescing: reports wait for others until the datagram is full or time is over, and
// datagrams are numbered without a gap, but where one could not be sent.
func TestCoalescing(t *testing.T) {
	to := &datagrams{}
	e := newExporter(t, to)
	event := datapath.TelemetryEvent{Interface: 7, Reasons: model.TelemetryEach,
		Packet: make([]byte, 63)}
	for range 5 { // of 4 + 8 + 4 + 60 octets: two in a datagram
		e.Event(event, start)
	}
	e.Tick(start.Add(time.Second - 1))
	if len(to.sent) != 2 {
		t.Fatalf("%d datagrams before the last is due", len(to.sent))
	}
	to.broken = true
	e.Tick(start.Add(time.Second))
	to.broken = false
	event.Packet = make([]byte, 512)
	e.Event(event, start)
	e.Event(event, start.Add(time.Second))
	var sequences, counts []int
	for _, b := range to.sent {
		group, all := reports(t, b)
		if group.Node != 12 || group.Hardware != 3 {
			t.Errorf("%+v", group)
		}
		sequences, counts = append(sequences, int(group.Sequence)), append(counts, len(all))
		for _, r := range all {
			m, _ := r.Baseline()
			if m.Ingress != 7 || r.Congested || !r.Tracked || len(r.Inner) != 60 &&
				len(r.Inner) != 512 {
				t.Errorf("%+v, %+v", r, m)
			}
		}
	}
	if !slices.Equal(sequences, []int{0, 1, 3}) || !slices.Equal(counts, []int{2, 2, 1}) {
		t.Errorf("sent datagrams %v with %v reports", sequences, counts)
	}
	if n := e.Counts(); n != (exporter.Counts{Reports: 7, Datagrams: 4, Lost: 1}) {
		t.Errorf("counted %+v", n)
	}
}

// TestNumbersGoOn: an exporter in place of another one goes on with its numbers.
func TestNumbersGoOn(t *testing.T) {
	to, numbers := &datagrams{}, new(atomic.Uint32)
	for range 2 {
		e, err := exporter.New(to, exporter.Options{DatagramSize: 200, FlushAfter: time.Second,
			Numbers: numbers})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			e.Event(datapath.TelemetryEvent{Reasons: model.TelemetryEach,
				Packet: make([]byte, 63)}, start)
			e.Tick(start.Add(time.Second))
		}
	}
	for i, b := range to.sent {
		if group, _ := reports(t, b); group.Sequence != uint32(i) {
			t.Errorf("datagram %d has number %d", i, group.Sequence)
		}
	}
	if len(to.sent) != 6 {
		t.Errorf("%d datagrams", len(to.sent))
	}
}

// TestUrgent: a report with a reason of its own leaves at once, with those that wait.
func TestUrgent(t *testing.T) {
	to := &datagrams{}
	e := newExporter(t, to)
	event := datapath.TelemetryEvent{Reasons: model.TelemetryEach, Packet: make([]byte, 40)}
	e.Event(event, start)
	e.Tick(start.Add(time.Millisecond))
	if len(to.sent) != 0 {
		t.Fatal("a report that can wait does not")
	}
	event.Reasons |= model.TelemetryPath
	e.Event(event, start.Add(time.Millisecond))
	e.Event(datapath.TelemetryEvent{Reasons: model.TelemetryEach, Packet: make([]byte, 40)},
		start.Add(2*time.Millisecond))
	e.Tick(start.Add(3 * time.Millisecond))
	if len(to.sent) != 1 {
		t.Fatalf("%d datagrams, want one with what waited and the urgent report", len(to.sent))
	}
	if _, all := reports(t, to.sent[0]); len(all) != 2 {
		t.Errorf("%d reports left with the urgent one, want 2", len(all))
	}
	e.Tick(start.Add(time.Second + 2*time.Millisecond))
	if len(to.sent) != 2 {
		t.Errorf("%d datagrams, want the report behind it when it has waited", len(to.sent))
	}
}

// TestPauses: a pause is reported once, and again when the flow pauses again; the flow is in the
// headers, and its number is that of the packet that ends the pause.
func TestPauses(t *testing.T) {
	to := &datagrams{}
	e := newExporter(t, to)
	pause := datapath.Pause{Flow: flow4, GapNS: 5_000_999, LastNS: 9}
	for i, scan := range [][]datapath.Pause{{pause}, {pause}, {}, {pause},
		{{Flow: flow4, GapNS: 1000, LastNS: 10}}} {
		e.Pauses(scan, start.Add(time.Duration(2*i)*time.Second))
		e.Tick(start.Add(time.Duration(2*i+1) * time.Second))
	}
	e.Event(datapath.TelemetryEvent{Reasons: model.TelemetryGap, Flow: flow4, GapNS: 7e6,
		Packet: make([]byte, 40)}, start)
	e.Tick(start.Add(time.Second))
	var gaps, hashes []uint32
	for _, b := range to.sent {
		_, all := reports(t, b)
		for _, r := range all {
			c, ok := r.Congestion()
			if !ok {
				t.Fatalf("%+v tells of no pause", r)
			}
			gaps, hashes = append(gaps, c.IdleGapUS), append(hashes, c.FlowHash)
		}
	}
	if !slices.Equal(gaps, []uint32{5000, 5000, 1, 7000}) || hashes[0] != hashes[3] {
		t.Errorf("gaps %v, flows %x", gaps, hashes)
	}
	_, all := reports(t, to.sent[0])
	want := []byte{0x45, 0, 0, 28, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 1, 2, 3, 4,
		0, 0, 0, 0}
	if all[0].InType != telemetry.InIPv4 || !slices.Equal(all[0].Inner, want) {
		t.Errorf("a pause of %+v has the headers %x", flow4, all[0].Inner)
	}
}

// script is a source that ends.
type script struct {
	events []datapath.TelemetryEvent
	scans  int
}

func (s *script) Next() (datapath.TelemetryEvent, error) {
	if len(s.events) == 0 {
		return datapath.TelemetryEvent{}, ringbuf.ErrClosed
	}
	event := s.events[0]
	s.events = s.events[1:]
	if event.Packet == nil {
		return event, os.ErrDeadlineExceeded
	}
	return event, nil
}

func (s *script) SetDeadline(time.Time) {}

func (s *script) More() bool { return len(s.events) > 0 }

func (s *script) Pauses() ([]datapath.Pause, error) {
	s.scans++
	return []datapath.Pause{{Flow: flow4, GapNS: 1000, LastNS: 1}}, nil
}

// TestRun sends all that a source has before it ends, pauses included.
func TestRun(t *testing.T) {
	to := &datagrams{}
	packet := datapath.TelemetryEvent{Packet: make([]byte, 40)}
	source := &script{events: []datapath.TelemetryEvent{packet, {}, packet}}
	e := newExporter(t, to)
	if err := e.Run(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, b := range to.sent {
		_, all := reports(t, b)
		total += len(all)
	}
	if total != 3 || source.scans == 0 || e.Counts().Reports != 3 {
		t.Errorf("%d reports, counted %d, %d scans", total, e.Counts().Reports, source.scans)
	}
}

// asked is a script that notes how many datagrams were sent each time that it is asked.
type asked struct {
	script
	to   *datagrams
	sent []int
}

func (s *asked) Next() (datapath.TelemetryEvent, error) {
	s.sent = append(s.sent, len(s.to.sent))
	return s.script.Next()
}

// TestRunUrgent sends an urgent report before the source is asked for an event that it does not
// have yet, and together with one that it has.
func TestRunUrgent(t *testing.T) {
	to := &datagrams{}
	packet := datapath.TelemetryEvent{Packet: make([]byte, 40), Reasons: model.TelemetryEach}
	urgent := datapath.TelemetryEvent{Packet: make([]byte, 40), Reasons: model.TelemetryNew}
	source := &asked{to: to, script: script{
		events: []datapath.TelemetryEvent{urgent, packet}}}
	e, err := exporter.New(to, exporter.Options{DatagramSize: 1200, FlushAfter: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(context.Background(), source); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(source.sent, []int{0, 0, 1}) {
		t.Errorf("asked when %v datagrams had been sent", source.sent)
	}
	if _, all := reports(t, to.sent[0]); len(all) != 2 {
		t.Errorf("%d reports in the first datagram, want 2", len(all))
	}
}
