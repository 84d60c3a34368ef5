// Package telemetry is role telemetry: a node's part in in-band telemetry.
package telemetry

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sextant/agent/api"
	"sextant/agent/explain"
	"sextant/agent/metrics"
	"sextant/agent/role"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	inband "sextant/packet/telemetry"
)

// Role is a node's part in in-band telemetry. A nil Role is a node without it.
type Role struct {
	role.Loaded[*program]
	Config     datapath.TelemetryConfig
	Classes    []datapath.TelemetryClass
	Watch      model.TelemetryWatch
	collectors []netip.AddrPort // where the sink's reports go; none: it has no sink
	links      []link           // by which telemetry is inserted and added to
	room       *Room
}

var _ role.Switchable[*Role] = (*Role)(nil)

// Room is the node's place for role telemetry.
type Room struct {
	role.Slot[*Role]
	clockAt time.Duration // when the clocks are compared again
	usesAt  time.Duration // when links are looked at again
	uses    map[string]use
	reports atomic.Uint32 // the number of the next datagram of reports
}

// New makes the room of an agent.
func New(p role.Parts) *Room {
	return &Room{Slot: role.Slot[*Role]{Parts: p}}
}

// Prepare is role.Room.
func (r *Room) Prepare(next *config.Node) (role.Change, error) {
	p, err := r.ChangeTo(func() (*Role, error) { return r.Build(next) })
	return roleChange{p}, err
}

type roleChange struct{ *role.Prepared[*Role] }

// program is the programs, and what sends the sink's reports.
type program struct {
	*datapath.Telemetry
	sender *reportSender // nil: none
}

// Close releases the programs, and stops sending; packets get and lose telemetry on.
func (p *program) Close() {
	p.sender.stop()
	p.Telemetry.Close()
}

// Build makes what the configuration wants.
func (r *Room) Build(n *config.Node) (*Role, error) {
	t := n.Telemetry
	if t == nil {
		return nil, nil
	}
	next := &Role{room: r, Config: datapath.TelemetryConfig{Node: uint32(t.Node),
		Port: t.Port, Transit: t.Transit, Infrastructure: n.Domain.Infrastructure,
		Namespace: uint16(t.Namespace), Shift: uint8(t.TimeShift), Plain: t.Plain}}
	if t.Source != nil {
		next.Config.Source = t.Source.Interfaces
		next.Config.Encoding = encodings[t.Source.Encoding]
		next.Classes = classesOf(n)
	}
	next.links = linksOf(t)
	if t.Sink != nil {
		next.Config.Sink, next.Config.SIDs = t.Sink.Interfaces, t.Sink.SIDs
		next.Watch = watchOf(t.Sink)
		next.collectors = append([]netip.AddrPort{t.Sink.Collector}, t.Sink.Mirrors...)
	}
	return next, nil
}

// classesOf are the items of the source's watch list, then all else.
func classesOf(n *config.Node) (list []datapath.TelemetryClass) {
	s := n.Telemetry.Source
	class := func(oneIn int, choice config.TelemetryChoice,
		metadata []config.TelemetryMetadata) datapath.TelemetryClass {
		c := datapath.TelemetryClass{OneIn: uint32(oneIn), InTurn: choice == config.InTurn,
			Hops: uint8(s.Hops), Slots: uint8(s.Slots)}
		if oneIn > 0 {
			c.Instructions = s.Instructions(metadata)
		}
		return c
	}
	for _, w := range n.TelemetryWatches() {
		c := class(w.OneIn, w.Choice, w.Metadata)
		c.Match = role.SteerRule(w.Rule()).Match
		list = append(list, c)
	}
	return append(list, class(s.OneIn, s.Choice, nil))
}

// encodings are the data plane's, by those of the node file.
var encodings = map[config.TelemetryEncoding]model.TelemetryEncoding{
	config.EncodingINT: model.EncodingINT, config.EncodingIOAM: model.EncodingIOAM,
	config.EncodingPathTracing: model.EncodingPathTracing,
}

// reasons are the data plane's, by those of the node file.
var reasons = map[config.TelemetryReason]model.TelemetryReasons{
	config.ReportEach: model.TelemetryEach, config.ReportGap: model.TelemetryGap,
	config.ReportQueue: model.TelemetryQueue, config.ReportQueueChange: model.TelemetryQueueChange,
	config.ReportNewFlow: model.TelemetryNew, config.ReportPath: model.TelemetryPath,
	config.ReportEnd: model.TelemetryEnd,
}

func watchOf(s *config.TelemetrySink) model.TelemetryWatch {
	w := model.TelemetryWatch{GapNS: uint64(s.Gap), GapRTTs: uint32(s.GapRTTs),
		FlowIntervalNS: uint64(s.FlowInterval), QueueBytes: uint32(s.QueueBytes),
		QueueChange: uint32(s.QueueChange), Limit: uint32(s.Limit)}
	for _, reason := range s.Reports() {
		w.Reasons |= reasons[reason]
	}
	return w
}

// Same is role.Switchable.
func (r *Role) Same(other *Role) bool { return !r.Broken && datapath.Same(r.Config, other.Config) }

// Load is role.Switchable.
func (r *Role) Load(dir string) error {
	programs, err := datapath.OpenTelemetry(dir, r.Config)
	if err != nil {
		return err
	}
	r.Program = &program{Telemetry: programs}
	return nil
}

// Fill sets what may change while packets flow: classes, what is reported, and where it goes.
func (r *Role) Fill(*Role) error {
	r.room.lookAgain()
	if err := r.Program.SetClasses(r.Classes); err != nil {
		return err
	}
	if err := r.Program.SetWatch(r.Watch); err != nil {
		return err
	}
	if r.Program.sender.sends(r) {
		return nil
	}
	r.Program.sender.stop()
	r.Program.sender = nil
	if len(r.collectors) == 0 {
		return nil
	}
	sender, err := startSender(r)
	r.Program.sender = sender
	return err
}

// Count adds what became of packets and reports.
func (r *Role) Count(c *api.Counters) error {
	outcomes, err := r.Program.Outcomes()
	if err != nil {
		return err
	}
	reasons, err := r.Program.Reasons()
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
	if s := r.Program.sender; s != nil {
		n := s.exporter.Counts()
		t.Reports, t.Datagrams, t.LostReports = n.Reports, n.Datagrams, n.Lost
	}
	c.Telemetry = t
	return nil
}

// Warnings are those of metadata that this machine does not know.
func (r *Room) Warnings() (list []string) {
	if r.Runs == nil {
		return nil
	}
	asked := inband.Instructions(0)
	for _, c := range r.Runs.Classes {
		asked |= c.Instructions
	}
	if asked&inband.Utilization != 0 {
		list = append(list, r.withoutRate()...)
	}
	if asked&inband.Queue != 0 && !datapath.KnowsQueues() {
		list = append(list, "telemetry.source.metadata has queue, which this kernel does not "+
			"tell: it is all ones; Linux 6.2 and later tell")
	}
	return list
}

// Explain is role.Room.
func (r *Room) Explain(*explain.Explaining, string) error { return errNoFlows }

var errNoFlows = &api.Error{Code: api.Conflict, Message: "the role telemetry chooses no " +
	"way for packets: which of them get telemetry say sextant telemetry watch list and sextant " +
	"status"}

var (
	packetsTotal = metrics.Description("telemetry_packets_total",
		"Packets with in-band telemetry, or chosen for it, by what became of them at this node.",
		"outcome")
	eventsTotal = metrics.Description("telemetry_sink_events_total",
		"Packets that this sink reported, by each of the reasons.", "reason")
	reportsTotal = metrics.Description("telemetry_sink_reports_total",
		"Reports to the collector: sent, or lost, as the machine did not send or a collector "+
			"refused.",
		"result")
	datagramsTotal = metrics.Description("telemetry_sink_datagrams_total",
		"Datagrams of reports to the collector.")
)

// Collect adds what became of packets and reports.
func (r *Room) Collect(out chan<- prometheus.Metric) {
	c := r.Counters(out).Telemetry
	if c == nil {
		return
	}
	for _, one := range c.Packets {
		metrics.Counter(out, packetsTotal, one.Packets, one.Outcome)
	}
	for _, one := range c.Reported {
		metrics.Counter(out, eventsTotal, one.Packets, one.Reason)
	}
	metrics.Counter(out, reportsTotal, c.Reports-c.LostReports, "sent")
	metrics.Counter(out, reportsTotal, c.LostReports, "lost")
	metrics.Counter(out, datagramsTotal, c.Datagrams)
}
