package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/packet/telemetry"
	"sextant/telemetry/exporter"
)

// telemetryRole is a node's part in in-band telemetry. A nil telemetryRole is a node without it.
type telemetryRole struct {
	loaded[*telemetryProgram]
	config  datapath.TelemetryConfig
	classes []datapath.TelemetryClass
	watch   model.TelemetryWatch
	// where the sink's reports go; the zero value: it has no sink
	collector netip.AddrPort
	room      *telemetryRoom
}

var _ switchable[*telemetryRole] = (*telemetryRole)(nil)

// telemetryRoom is the node's place for role telemetry.
type telemetryRoom struct {
	slot[*telemetryRole]
}

func newTelemetryRoom(p parts) *telemetryRoom {
	return &telemetryRoom{slot: slot[*telemetryRole]{parts: p, name: api.Telemetry}}
}

func (r *telemetryRoom) prepare(next *config.Node) (change, error) {
	p, err := r.changeTo(func() (*telemetryRole, error) { return r.build(next) })
	return telemetryChange{p}, err
}

type telemetryChange struct{ *prepared[*telemetryRole] }

// telemetryProgram is the programs, and what sends the sink's reports.
type telemetryProgram struct {
	*datapath.Telemetry
	sender *reportSender // nil: none
}

// Close releases the programs, and stops sending; packets get and lose telemetry on.
func (p *telemetryProgram) Close() {
	p.sender.stop()
	p.Telemetry.Close()
}

// build makes what the configuration wants.
func (r *telemetryRoom) build(n *config.Node) (*telemetryRole, error) {
	t := n.Telemetry
	if t == nil {
		return nil, nil
	}
	role := &telemetryRole{room: r, config: datapath.TelemetryConfig{Node: uint32(t.Node),
		Port: t.Port, Transit: t.Transit, Infrastructure: n.Domain.Infrastructure}}
	if t.Source != nil {
		role.config.Source = t.Source.Interfaces
		role.classes = telemetryClasses(n)
	}
	if t.Sink != nil {
		role.config.Sink, role.config.SIDs = t.Sink.Interfaces, t.Sink.SIDs
		role.watch, role.collector = telemetryWatch(t.Sink), t.Sink.Collector
	}
	return role, nil
}

// telemetryClasses are the items of the source's watch list, then all else.
func telemetryClasses(n *config.Node) (list []datapath.TelemetryClass) {
	s := n.Telemetry.Source
	class := func(oneIn int, choice config.TelemetryChoice) datapath.TelemetryClass {
		c := datapath.TelemetryClass{OneIn: uint32(oneIn), InTurn: choice == config.InTurn,
			Hops: uint8(s.Hops), Slots: uint8(s.Slots)}
		if oneIn > 0 {
			c.Instructions = s.Instructions()
		}
		return c
	}
	for _, w := range n.TelemetryWatches() {
		c := class(w.OneIn, w.Choice)
		c.Match = steerRule(w.Rule()).Match
		list = append(list, c)
	}
	return append(list, class(s.OneIn, s.Choice))
}

// telemetryReasons are the data plane's, by those of the node file.
var telemetryReasons = map[config.TelemetryReason]model.TelemetryReasons{
	config.ReportEach: model.TelemetryEach, config.ReportGap: model.TelemetryGap,
	config.ReportQueue: model.TelemetryQueue, config.ReportQueueChange: model.TelemetryQueueChange,
	config.ReportNewFlow: model.TelemetryNew, config.ReportPath: model.TelemetryPath,
	config.ReportEnd: model.TelemetryEnd,
}

func telemetryWatch(s *config.TelemetrySink) model.TelemetryWatch {
	w := model.TelemetryWatch{GapNS: uint64(s.Gap), GapRTTs: uint32(s.GapRTTs),
		FlowIntervalNS: uint64(s.FlowInterval), QueueBytes: uint32(s.QueueBytes),
		QueueChange: uint32(s.QueueChange), Limit: uint32(s.Limit)}
	for _, reason := range s.Reports() {
		w.Reasons |= telemetryReasons[reason]
	}
	return w
}

func (r *telemetryRole) same(other *telemetryRole) bool {
	return !r.broken && r.config.Equal(other.config)
}

func (r *telemetryRole) load(dir string, running *telemetryRole) error {
	if running != nil {
		r.loaded = running.loaded
		return nil
	}
	program, err := datapath.OpenTelemetry(dir, r.config)
	if err != nil {
		return err
	}
	r.program = &telemetryProgram{Telemetry: program}
	return nil
}

// fill sets what may change while packets flow: classes, what is reported, and where it goes.
func (r *telemetryRole) fill(*telemetryRole) error {
	if err := r.program.SetClasses(r.classes); err != nil {
		return err
	}
	if err := r.program.SetWatch(r.watch); err != nil {
		return err
	}
	if r.program.sender.sends(r) {
		return nil
	}
	r.program.sender.stop()
	r.program.sender = nil
	if !r.collector.IsValid() {
		return nil
	}
	sender, err := startSender(r)
	r.program.sender = sender
	return err
}

// reportSender sends what a sink found, until it is stopped.
type reportSender struct {
	to       netip.AddrPort
	watch    model.TelemetryWatch
	exporter *exporter.Exporter
	socket   *net.UDPConn
	events   *datapath.TelemetryEvents
	end      context.CancelFunc
	ended    chan struct{}
}

const (
	// reportBytes of a datagram fit any IPv6 path, with IPv6 and UDP in front.
	reportBytes = 1280 - 40 - 8
	// atOnce has reports wait for those that are there already, and for none to come.
	atOnce = time.Nanosecond
	// scanAtLeast is between looks through the table of flows for those that pause.
	scanAtLeast = 100 * time.Millisecond
)

func startSender(r *telemetryRole) (*reportSender, error) {
	s := &reportSender{to: r.collector, watch: r.watch, ended: make(chan struct{})}
	options := exporter.Options{Node: r.config.Node, DatagramSize: reportBytes, FlushAfter: atOnce}
	if r.watch.Reasons&model.TelemetryGap != 0 && (r.watch.GapNS > 0 || r.watch.GapRTTs > 0) {
		options.ScanEvery = max(time.Duration(r.watch.GapNS), scanAtLeast)
	}
	var err error
	if s.exporter, err = exporter.New(s, options); err != nil {
		return nil, err
	}
	if s.socket, err = net.ListenUDP("udp", nil); err != nil {
		return nil, fmt.Errorf("open a socket for telemetry reports to %s: %w", s.to, err)
	}
	if s.events, err = r.program.Events(); err != nil {
		s.socket.Close()
		return nil, err
	}
	ctx, end := context.WithCancel(r.room.life)
	s.end = end
	finds := sinkFinds{s.events, r.program.Telemetry, r.watch}
	go func() {
		defer close(s.ended)
		if err := s.exporter.Run(ctx, finds); err != nil {
			r.room.options.Log.Warn("reports of telemetry are not sent any more", "error", err)
		}
	}()
	return s, nil
}

// Write sends a datagram to the collector.
func (s *reportSender) Write(datagram []byte) (int, error) {
	return s.socket.WriteToUDPAddrPort(datagram, s.to)
}

// sends reports whether what is sent, and to whom, is what the role wants.
func (s *reportSender) sends(r *telemetryRole) bool {
	return s != nil && s.to == r.collector && s.watch == r.watch
}

func (s *reportSender) stop() {
	if s == nil {
		return
	}
	s.end()
	s.events.Close()
	<-s.ended
	s.socket.Close()
}

// sinkFinds is where the exporter looks.
type sinkFinds struct {
	*datapath.TelemetryEvents
	sink  *datapath.Telemetry
	watch model.TelemetryWatch
}

// Pauses are the flows that have been silent for long.
func (f sinkFinds) Pauses() ([]datapath.Pause, error) { return f.sink.Pauses(f.watch) }

func (r *telemetryRole) count(c *api.Counters) error {
	outcomes, err := r.program.Outcomes()
	if err != nil {
		return err
	}
	reasons, err := r.program.Reasons()
	if err != nil {
		return err
	}
	t := &api.TelemetryCounters{}
	for _, o := range outcomes {
		t.Packets = append(t.Packets, api.TelemetryPackets{Outcome: o.Name, Packets: o.Packets})
	}
	for _, o := range reasons {
		t.Reported = append(t.Reported, api.TelemetryReports{Reason: o.Name, Packets: o.Packets})
	}
	if s := r.program.sender; s != nil {
		n := s.exporter.Counts()
		t.Reports, t.Datagrams, t.LostReports = n.Reports, n.Datagrams, n.Lost
	}
	c.Telemetry = t
	return nil
}

// warnings are those of metadata that this machine does not know.
func (r *telemetryRoom) warnings() (list []string) {
	if r.runs == nil {
		return nil
	}
	asked := telemetry.Instructions(0)
	for _, c := range r.runs.classes {
		asked |= c.Instructions
	}
	if asked&telemetry.Utilization != 0 {
		list = append(list, "telemetry.source.metadata has utilization, which no Linux node "+
			"knows: it is all ones")
	}
	return list
}

func (r *telemetryRoom) explain(*explaining, string) error { return noTelemetryFlows }

var noTelemetryFlows = &api.Error{Code: api.Conflict, Message: "the role telemetry chooses no " +
	"way for packets: which of them get telemetry say sextant telemetry watch list and sextant " +
	"status"}

var (
	telemetryPackets = description("telemetry_packets_total",
		"Packets with in-band telemetry, or chosen for it, by what became of them at this node.",
		"outcome")
	telemetryReported = description("telemetry_sink_events_total",
		"Packets that this sink reported, by each of the reasons.", "reason")
	telemetryReports = description("telemetry_sink_reports_total",
		"Reports to the collector, by whether the machine took them (sent) or not (lost).",
		"result")
	telemetryDatagrams = description("telemetry_sink_datagrams_total",
		"Datagrams of reports to the collector.")
)

func collectTelemetry(out chan<- prometheus.Metric, c *api.TelemetryCounters) {
	if c == nil {
		return
	}
	for _, one := range c.Packets {
		counter(out, telemetryPackets, one.Packets, one.Outcome)
	}
	for _, one := range c.Reported {
		counter(out, telemetryReported, one.Packets, one.Reason)
	}
	counter(out, telemetryReports, c.Reports-c.LostReports, "sent")
	counter(out, telemetryReports, c.LostReports, "lost")
	counter(out, telemetryDatagrams, c.Datagrams)
}
