package exporter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

// Source is a sink of telemetry whose finds are sent.
type Source interface {
	// Next waits for an event until the deadline, and returns os.ErrDeadlineExceeded then.
	Next() (datapath.TelemetryEvent, error)
	// SetDeadline is the time at which a Next that waits is to end.
	SetDeadline(at time.Time)
	// More tells whether Next has an event without waiting.
	More() bool
	// Pauses are the flows that have been silent for long.
	Pauses() ([]datapath.Pause, error)
}

// Options are how an Exporter sends.
type Options struct {
	Node     uint32
	Hardware uint8 // hw_id, 6 bits
	// DatagramSize is how many octets of reports go into a datagram at most; one report that is
	// longer goes alone.
	DatagramSize int
	// FlushAfter is how long reports of packets that have nothing but telemetry wait for others, at
	// most. All others leave at once, with those that wait.
	FlushAfter time.Duration
	ScanEvery  time.Duration // between looks for pauses
	// Numbers is the next datagram's number, where exporters follow each other: a collector takes
	// numbers that begin again for a repetition. nil: from 0 on.
	Numbers *atomic.Uint32
}

// Exporter writes reports, each Write being one datagram. It is for one goroutine, but for
// Counts.
type Exporter struct {
	reports, datagrams, lost atomic.Uint64

	options  Options
	to       io.Writer
	datagram []byte
	waiting  uint64 // reports in the datagram
	since    time.Time
	urgent   bool                  // one of them leaves at once
	paused   map[flow.Tuple]uint64 // when their last packets came
}

// Counts says what an exporter has sent.
type Counts struct {
	Reports, Datagrams uint64
	Lost               uint64 // reports in datagrams that could not be sent
}

// Counts returns what was sent so far. Any goroutine may call it.
func (e *Exporter) Counts() Counts {
	return Counts{e.reports.Load(), e.datagrams.Load(), e.lost.Load()}
}

// New makes an exporter that writes datagrams.
func New(to io.Writer, options Options) (*Exporter, error) {
	if _, err := (telemetry.Group{Hardware: options.Hardware}).Append(nil); err != nil {
		return nil, fmt.Errorf("hardware number %d of telemetry reports: %w; it has 6 bits",
			options.Hardware, err)
	}
	options.Numbers = cmp.Or(options.Numbers, new(atomic.Uint32))
	return &Exporter{options: options, to: to, paused: map[flow.Tuple]uint64{}}, nil
}

// Run sends what the source finds, until the context or the source ends.
func (e *Exporter) Run(ctx context.Context, source Source) error {
	scan := time.Now()
	for ctx.Err() == nil {
		now := time.Now()
		if e.options.ScanEvery > 0 && !now.Before(scan) {
			pauses, err := source.Pauses()
			if err != nil {
				return err
			}
			e.Pauses(pauses, now)
			scan = now.Add(e.options.ScanEvery)
		}
		source.SetDeadline(e.deadline(now, scan))
		switch event, err := source.Next(); {
		case errors.Is(err, ringbuf.ErrClosed):
			e.flush()
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			e.Tick(time.Now())
		case err != nil:
			return err
		default:
			e.Event(event, time.Now())
			if e.urgent && !source.More() { // a Next that finds nothing is a system call
				e.flush()
			}
		}
	}
	e.flush()
	return nil
}

// pollAtLeast bounds how long the end of the context is not seen.
const pollAtLeast = 100 * time.Millisecond

func (e *Exporter) deadline(now, scan time.Time) time.Time {
	at := now.Add(pollAtLeast)
	if e.options.ScanEvery > 0 && scan.Before(at) {
		at = scan
	}
	if flush := e.since.Add(e.wait()); e.waiting > 0 && flush.Before(at) {
		at = flush
	}
	return at
}

// wait is how long a report waits from when it is added: one that leaves at once takes along those
// that are there already, which the source returns without waiting.
func (e *Exporter) wait() time.Duration {
	if e.urgent {
		return time.Nanosecond
	}
	return e.options.FlushAfter
}

// Event takes a packet that the sink reports.
func (e *Exporter) Event(event datapath.TelemetryEvent, now time.Time) {
	e.add(ofEvent(event), event.Reasons&^model.TelemetryEach != 0, now)
	e.Tick(now)
}

// Pauses takes the flows that pause now. Each pause is reported once.
func (e *Exporter) Pauses(pauses []datapath.Pause, now time.Time) {
	paused := make(map[flow.Tuple]uint64, len(pauses))
	for _, p := range pauses {
		if last, ok := e.paused[p.Flow]; !ok || last != p.LastNS {
			e.add(ofPause(p), true, now)
		}
		paused[p.Flow] = p.LastNS
	}
	e.paused = paused
	e.Tick(now)
}

// Tick sends what has waited for long enough.
func (e *Exporter) Tick(now time.Time) {
	if e.waiting > 0 && now.Sub(e.since) >= e.wait() {
		e.flush()
	}
}

// add puts a report into the datagram, sending the one before if it is full. It panics if the
// report has a fault, which only a mistake in this package can bring about.
func (e *Exporter) add(r telemetry.Report, urgent bool, now time.Time) {
	before := len(e.datagram)
	if before == 0 {
		e.begin(now)
	}
	octets, err := r.Append(e.datagram)
	if err != nil { // made of what this package makes, a report has no fault
		panic("telemetry report: " + err.Error())
	}
	if e.waiting > 0 && len(octets) > e.options.DatagramSize {
		e.flush()
		e.begin(now)
		octets, _ = r.Append(e.datagram)
	}
	e.datagram = octets
	e.waiting++
	e.urgent = e.urgent || urgent
	e.reports.Add(1)
}

func (e *Exporter) begin(now time.Time) {
	group := telemetry.Group{Hardware: e.options.Hardware,
		Sequence: e.options.Numbers.Add(1) - 1, Node: e.options.Node}
	e.datagram, _ = group.Append(e.datagram[:0]) // New has seen that it fits
	e.since = now
}

// flush sends the datagram. One that cannot be sent is counted, and missed by the collector: its
// number is used up.
func (e *Exporter) flush() {
	if e.waiting == 0 {
		return
	}
	if _, err := e.to.Write(e.datagram); err != nil {
		e.lost.Add(e.waiting)
	}
	e.datagrams.Add(1)
	e.datagram, e.waiting, e.urgent = e.datagram[:0], 0, false
}
