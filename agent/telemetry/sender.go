package telemetry

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"time"

	"sextant/agent/exporter"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/linux"
)

// reportSender sends what a sink found, until it is stopped.
type reportSender struct {
	to       []netip.AddrPort // the collector, and its mirrors
	watch    model.TelemetryWatch
	exporter *exporter.Exporter
	sockets  []*socket
	events   *datapath.TelemetryEvents
	end      context.CancelFunc
	ended    chan struct{}
}

const (
	// reportBytes of a datagram fit any IPv6 path, with IPv6 and UDP in front.
	reportBytes = 1280 - 40 - 8
	// coalesceFor is how long reports of packets with telemetry, about which nothing else is worth
	// one, wait for others.
	coalesceFor = time.Millisecond
	// scanAtLeast is between looks through the table of flows for those that pause.
	scanAtLeast = 100 * time.Millisecond
	// neighborWithin is how long reports wait until the neighbour on the way to a collector is
	// known: three solicitations of RFC 4861, as the kernel sends them.
	neighborWithin = 3 * time.Second
)

func startSender(r *Role) (*reportSender, error) {
	s := &reportSender{to: r.collectors, watch: r.Watch, ended: make(chan struct{})}
	options := exporter.Options{Node: r.Config.Node, DatagramSize: reportBytes,
		FlushAfter: coalesceFor, Numbers: &r.room.reports}
	if r.Watch.Reasons&model.TelemetryGap != 0 && (r.Watch.GapNS > 0 || r.Watch.GapRTTs > 0) {
		options.ScanEvery = max(time.Duration(r.Watch.GapNS), scanAtLeast)
	}
	var err error
	if s.exporter, err = exporter.New(s, options); err != nil {
		return nil, err
	}
	for _, to := range s.to {
		s.sockets = append(s.sockets, &socket{to: to})
	}
	if s.events, err = r.Program.Events(); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(r.room.Life)
	s.end = end
	finds := sinkFinds{s.events, r.Program.Telemetry, r.Watch}
	go func() {
		defer close(s.ended)
		s.awaitNeighbors(ctx)
		if err := s.exporter.Run(ctx, finds); err != nil {
			r.room.Log.Warn("reports of telemetry are not sent any more", "error", err)
		}
	}()
	return s, nil
}

// awaitNeighbors waits until the kernel knows the neighbours to which reports go: while it looks
// for one, it keeps some 90 datagrams and drops others, of which no error tells. What the sink
// finds meanwhile stays in its ring buffer.
func (s *reportSender) awaitNeighbors(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, neighborWithin)
	defer cancel()
	for _, to := range s.to {
		// Without one, reports are sent and lost as at any other time.
		_ = linux.AwaitNeighbor(ctx, to.Addr())
	}
}

// Write sends a datagram to each collector. The error is the first one's; mirrors get what they
// can.
func (s *reportSender) Write(datagram []byte) (n int, err error) {
	for i, to := range s.sockets {
		if e := to.write(datagram); i == 0 {
			err = e
		}
	}
	return len(datagram), err
}

// A socket sends to one collector. It is connected, so that the kernel tells of datagrams that were
// refused.
type socket struct {
	to   netip.AddrPort
	open *net.UDPConn // nil: not yet, or not after an error
}

// write sends a datagram, with a new socket if the old one has an error: that may be of a datagram
// before, or of an address that this machine has no more. It is returned all the same.
func (s *socket) write(datagram []byte) error {
	before := s.open != nil
	err := s.try(datagram)
	if err != nil && before {
		_ = s.try(datagram)
	}
	return err
}

func (s *socket) try(datagram []byte) (err error) {
	if s.open == nil {
		if s.open, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(s.to)); err != nil {
			return err
		}
	}
	if _, err = s.open.Write(datagram); err != nil {
		s.close()
	}
	return err
}

func (s *socket) close() {
	if s.open != nil {
		s.open.Close()
		s.open = nil
	}
}

// sends reports whether what is sent, and to whom, is what the role wants.
func (s *reportSender) sends(r *Role) bool {
	return s != nil && slices.Equal(s.to, r.collectors) && s.watch == r.Watch
}

func (s *reportSender) stop() {
	if s == nil {
		return
	}
	s.end()
	s.events.Close()
	<-s.ended
	for _, to := range s.sockets {
		to.close()
	}
}

// sinkFinds is where the exporter looks.
type sinkFinds struct {
	*datapath.TelemetryEvents
	sink  *datapath.Telemetry
	watch model.TelemetryWatch
}

// Pauses are the flows that have been silent for long.
func (f sinkFinds) Pauses() ([]datapath.Pause, error) { return f.sink.Pauses(f.watch) }
