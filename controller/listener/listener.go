package listener

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"sextant/agent/httpserver"
	"sextant/controller/collector"
	"sextant/packet/telemetry"
)

// DefaultSocket is where the API is served if nothing else is said.
const DefaultSocket = "/run/sextant/telemetry.sock"

// Options are what a listener is told.
type Options struct {
	Listen  netip.AddrPort // UDP
	Metrics netip.AddrPort // TCP; the zero value is none
	Socket  string
	INTPort uint16 // 0: the collector's default
	// bytes of a packet in the queues of SMOOTHIE's published program; 0: its reports are not taken
	SmoothiePacketBytes uint32
	Exporters           []netip.Prefix // from where reports are taken; none: anywhere
	// Events is whether the kernel's IOAM events are taken, and Interfaces are those whose packets
	// with hop-by-hop options are.
	Events      bool
	Interfaces  []string
	PathTracing telemetry.PathTracing
	// IPFIX is the UDP address and port of an IPFIX collector; the zero value is none. It gets what
	// each link and flow had to say in each interval. Enterprise is the private enterprise number
	// of the elements for queues, latencies and utilizations; with 0, these are left out.
	IPFIX      netip.AddrPort
	Interval   time.Duration
	Enterprise uint32
	Lines      io.Writer // gets a line of JSON per report, if it is not nil
	Log        *slog.Logger
	// Ready is called when the socket is open, if it is not nil.
	Ready func(netip.AddrPort)
}

// linesAhead is how many reports may wait to be written. What does not fit is counted and lost.
const linesAhead = 4096

// Listener is a running listener. Its table belongs to the goroutine of Run.
type Listener struct {
	table     *collector.Table
	lines     chan Report
	linesLost uint64
	batches   chan *collector.Batch
	failed    chan error // what ended a reader
	work      chan func()
	ended     chan struct{}
	servers   *httpserver.Servers
	export    *flowExport // nil: none
}

// Run listens until the context ends. The error says what kept it from starting, or what ended it.
func Run(ctx context.Context, o Options) error {
	readers, err := openReaders(o)
	if err != nil {
		return err
	}
	defer closeReaders(readers)
	l := &Listener{work: make(chan func()), ended: make(chan struct{}),
		batches: make(chan *collector.Batch, 8), failed: make(chan error, len(readers))}
	tableOptions := collector.Options{INTPort: o.INTPort, PathTracing: o.PathTracing,
		Exporters: o.Exporters, SmoothiePacketBytes: o.SmoothiePacketBytes}
	written := make(chan error, 1)
	if o.Lines != nil {
		l.lines = make(chan Report, linesAhead)
		tableOptions.Watch = l.watch
	}
	l.table = collector.NewTable(tableOptions)
	if l.servers, err = httpserver.Listen("telemetry listener", "--telemetry", o.Socket, o.Metrics,
		o.Log); err != nil {
		return err
	}
	defer l.servers.Stop()
	if o.IPFIX.IsValid() {
		if l.export, err = newFlowExport(o.IPFIX, o.Enterprise); err != nil {
			return err
		}
		defer l.export.conn.Close()
	}
	defer close(l.ended)
	metrics := l.metrics()
	l.servers.Serve(l.handler(metrics), metrics)
	if l.lines != nil {
		go func() { written <- writeLines(o.Lines, l.lines) }()
	}
	for _, r := range readers {
		go func() {
			if err := r.Run(l.batches); err != nil {
				l.failed <- err
			}
		}()
	}
	o.Log.Info("telemetry listener runs", "listen", readers[0].Address(), "socket", o.Socket)
	if o.Ready != nil {
		o.Ready(readers[0].Address())
	}
	var exports <-chan time.Time
	if l.export != nil {
		ticker := time.NewTicker(max(o.Interval/exportParts, time.Millisecond))
		defer ticker.Stop()
		exports = ticker.C
	}
	err = l.run(ctx, written, exports)
	if l.lines != nil {
		close(l.lines)
		if err == nil {
			err = <-written
		}
	}
	return err
}

// openReaders opens the socket for reports, which is the first, and what else is asked for.
func openReaders(o Options) (readers []*collector.Reader, err error) {
	open := []func() (*collector.Reader, error){
		func() (*collector.Reader, error) { return collector.Listen(o.Listen) }}
	if o.Events {
		open = append(open, collector.ListenEvents)
	}
	for _, name := range o.Interfaces {
		open = append(open, func() (*collector.Reader, error) {
			return collector.ListenPackets(name)
		})
	}
	for _, f := range open {
		r, err := f()
		if err != nil {
			closeReaders(readers)
			return nil, err
		}
		readers = append(readers, r)
	}
	return readers, nil
}

func closeReaders(readers []*collector.Reader) {
	for _, r := range readers {
		r.Close()
	}
}

// run is the event loop. It is the only goroutine that touches the table.
func (l *Listener) run(ctx context.Context, written chan error, exports <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			if l.export != nil {
				l.export.exportAll(l.table, time.Now())
			}
			return nil
		case err := <-l.servers.Failed():
			return err
		case err := <-l.failed:
			return err
		case err := <-written:
			return err
		case now := <-exports:
			l.export.export(l.table, now)
		case f := <-l.work:
			f()
		case b := <-l.batches:
			l.table.Take(b, collector.Now())
			b.Done()
		}
	}
}

// watch hands a report to the writer of lines, if that keeps up.
func (l *Listener) watch(r *collector.Report) {
	if len(l.lines) == cap(l.lines) {
		l.linesLost++
		return
	}
	l.lines <- newReport(r)
}

// writeLines writes reports until the channel is closed.
func writeLines(w io.Writer, reports <-chan Report) error {
	encoder := json.NewEncoder(w)
	for r := range reports {
		if err := encoder.Encode(r); err != nil {
			return fmt.Errorf("write reports: %w", err)
		}
	}
	return nil
}

var errEnded = errors.New("the telemetry listener ends")

// do runs a function in the event loop.
func (l *Listener) do(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case l.work <- func() { f(); close(done) }:
		<-done
		return nil
	case <-l.ended:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}
