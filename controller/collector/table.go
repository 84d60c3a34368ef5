package collector

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"time"

	"sextant/packet/flow"
	"sextant/packet/telemetry"
)

// Bounds of what a Table remembers.
const (
	MaxExporters = 1024
	MaxLinks     = 4096
	MaxPaths     = 16384
	MaxHops      = 16 // of a path
	// What is idle for so long gives its place to something new, when a table is full. An exporter
	// or link that is alive is not pushed out by one that is made up.
	idle = 5 * time.Minute
)

// Drop says why a datagram or a part of one was not taken.
type Drop uint8

// The reasons.
const (
	BadGroup      Drop = iota // no header of a version that is known
	BadReport                 // a report that contradicts itself; the rest of the datagram is lost
	BadPacket                 // inner contents that contradict themselves; the report is taken
	TooManyHops               // hops of a path beyond 16
	ExportersFull             // a new exporter, and no room
	LinksFull                 // a new link, and no room
	PathsFull                 // a new flow, and no room
	Oversized                 // a datagram longer than the reader has room for
	BadEvent                  // an event of the kernel that contradicts itself
	KernelFull                // events or packets that the kernel had no room for meanwhile
	Foreign                   // a datagram of an exporter that is not allowed
	Repeated                  // a datagram whose number came before, or is far from the others
	drops
)

var dropNames = [drops]string{"bad-group", "bad-report", "bad-packet", "too-many-hops",
	"exporters-full", "links-full", "paths-full", "oversized", "bad-event", "kernel-full",
	"foreign", "repeated"}

// String names the reason in metrics.
func (d Drop) String() string { return dropNames[d] }

// Exporter is what sends reports: the sequence numbers belong to node and hardware.
type Exporter struct {
	Address  netip.Addr
	Node     uint32
	Hardware uint8
}

// Link is the way out of a node.
type Link struct {
	Node   uint64
	Egress uint32 // all ones if the node does not tell
}

// LinkState is what nodes said about a link.
type LinkState struct {
	Samples        uint64
	Drops          uint64    // packets that the node reported as dropped
	QueueBytes     Histogram // octets before the packet
	LatencyNS      Histogram // nanoseconds of the packet in the node
	UtilizationPPM Histogram // parts per million of the link's rate

	takenSamples, takenDrops uint64 // as of the last TakeRecent
	recentNS                 int64  // when the first after it came; 0: none did
	lastNS                   int64  // when the last came
}

// LinkDelta is what nodes said about a link since an earlier time.
type LinkDelta struct {
	FirstNS, LastNS int64 // when the first and the last of it came, POSIX time
	Samples, Drops  uint64
	QueueBytes      Extent
	LatencyNS       Extent
	UtilizationPPM  Extent
}

func (s *LinkState) heard(posixNS int64) {
	s.recentNS, s.lastNS = cmp.Or(s.recentNS, posixNS), posixNS
}

// TakeRecent returns what came since it was last called.
func (s *LinkState) TakeRecent() LinkDelta {
	d := LinkDelta{FirstNS: s.recentNS, LastNS: s.lastNS, Samples: s.Samples - s.takenSamples,
		Drops:      s.Drops - s.takenDrops,
		QueueBytes: s.QueueBytes.TakeRecent(), LatencyNS: s.LatencyNS.TakeRecent(),
		UtilizationPPM: s.UtilizationPPM.TakeRecent()}
	s.takenSamples, s.takenDrops, s.recentNS = s.Samples, s.Drops, 0
	return d
}

// Source says where samples come from.
type Source uint8

// The sources.
const (
	FromReport Source = iota // a Telemetry Report
	FromEvent                // the kernel's IOAM, see ListenEvents
	FromPacket               // a packet on an interface, see ListenPackets
)

var sourceNames = [...]string{"report", "event", "packet"}

// String names the source in lines of JSON.
func (s Source) String() string { return sourceNames[s] }

// Report is what a watcher sees: a report, an event or a packet. Its samples are good until the
// call returns.
type Report struct {
	Source     Source
	Exporter   Exporter // of FromReport
	TimeNS     int64    // when the collector got it: POSIX time in nanoseconds
	Flow       flow.Tuple
	HasFlow    bool
	Dropped    bool
	Congested  bool
	Congestion *telemetry.Congestion // nil: none of this program
	Samples    []telemetry.Sample    // in the order of the way
}

// Options are what a Table is told. The zero value is a default.
type Options struct {
	// INTPort is the UDP destination port behind which a packet in a report carries INT; 0: 33122.
	INTPort uint16
	// PathTracing is how nodes write for Path Tracing; with a shift of 0, they shift by 16.
	PathTracing telemetry.PathTracing
	// Exporters are where reports may come from; none: anywhere.
	Exporters []netip.Prefix
	// SmoothiePacketBytes has reports of SMOOTHIE's published program taken, too, which count a
	// queue in packets: each is taken for so many octets. 0: they are none.
	SmoothiePacketBytes uint32
	// Watch is called for each report, if it is not nil.
	Watch func(*Report)
}

// The defaults of Options.
const (
	DefaultINTPort    = telemetry.DefaultINTPort
	defaultStampShift = 16
)

// Table is the state of links, paths and exporters. It is for one goroutine.
type Table struct {
	Datagrams uint64
	Reports   uint64
	Events    uint64 // of the kernel
	Packets   uint64 // from interfaces
	Samples   uint64
	Dropped   [drops]uint64

	options   Options
	exporters bounded[Exporter, Sequence]
	links     bounded[Link, LinkState]
	paths     bounded[flow.Tuple, Path]
	samples   []telemetry.Sample
	seen      telemetry.Packet // the packet at hand
	report    Report
	pause     telemetry.Congestion
	aheadNS   int64 // of POSIX time before the steady one
}

func (t *Table) posixNS(steadyNS int64) int64 { return steadyNS + t.aheadNS }

// NewTable returns an empty table.
func NewTable(o Options) *Table {
	o.INTPort = cmp.Or(o.INTPort, DefaultINTPort)
	o.PathTracing.Shift = cmp.Or(o.PathTracing.Shift, defaultStampShift)
	return &Table{options: o, exporters: newBounded[Exporter, Sequence](MaxExporters, hashExporter),
		links:   newBounded[Link, LinkState](MaxLinks, hashLink),
		paths:   newBounded[flow.Tuple, Path](MaxPaths, hashFlow),
		samples: make([]telemetry.Sample, 0, 512)}
}

func hashExporter(e Exporter) uint64 { return (uint64(e.Node)<<8 | uint64(e.Hardware)) * golden }

func hashLink(l Link) uint64 { return (l.Node*golden + uint64(l.Egress)) * golden }

func hashFlow(f flow.Tuple) uint64 {
	src, dst := f.Src.As16(), f.Dst.As16()
	h := binary.NativeEndian.Uint64(src[:])*golden ^ binary.NativeEndian.Uint64(src[8:])
	h = h*golden ^ binary.NativeEndian.Uint64(dst[:])
	h = h*golden ^ binary.NativeEndian.Uint64(dst[8:])
	return (h*golden ^ uint64(f.SrcPort)<<16 ^ uint64(f.DstPort)) * golden
}

// Datagram takes one datagram from an address at a steady time (nanoseconds).
func (t *Table) Datagram(from netip.Addr, b []byte, nowNS int64) {
	t.Datagrams++
	if !t.allowed(from) {
		t.Dropped[Foreign]++
		return
	}
	if t.options.SmoothiePacketBytes > 0 && telemetry.IsSmoothieReport(b) {
		t.smoothie(from, b, nowNS)
		return
	}
	group, rest, err := telemetry.ParseGroup(b)
	if err != nil {
		t.Dropped[BadGroup]++
		return
	}
	e := Exporter{Address: from, Node: group.Node, Hardware: group.Hardware}
	if !t.isNew(e, group.Sequence, nowNS) {
		return
	}
	var r telemetry.Report
	for len(rest) > 0 {
		if rest, err = r.Parse(rest); err != nil {
			t.Dropped[BadReport]++
			return
		}
		t.take(&e, &r, nowNS)
	}
}

// isNew says whether a datagram of an exporter is to be taken, by its sequence number.
func (t *Table) isNew(e Exporter, sequence uint32, nowNS int64) bool {
	known := t.exporters.find(e, nowNS, int64(idle))
	if known == nil {
		t.Dropped[ExportersFull]++
		return false
	}
	if !known.value.Take(sequence, nowNS) {
		t.Dropped[Repeated]++
		return false
	}
	return true
}

func (t *Table) allowed(from netip.Addr) bool {
	for _, p := range t.options.Exporters {
		if p.Contains(from) {
			return true
		}
	}
	return len(t.options.Exporters) == 0
}

// take takes one report.
func (t *Table) take(e *Exporter, r *telemetry.Report, nowNS int64) {
	t.Reports++
	t.samples = t.samples[:0]
	t.inner(r, nowNS)
	if r.Type == telemetry.RepINT {
		t.addOwn(e, r)
	}
	t.add(r.Dropped, nowNS)
	if r.Dropped {
		t.addDrop(e, nowNS)
	}
	if t.options.Watch == nil {
		return
	}
	t.report = Report{Exporter: *e, Dropped: r.Dropped, Congested: r.Congested}
	if pause, ok := r.Congestion(); ok {
		t.pause = pause
		t.report.Congestion = &t.pause
	}
	t.watch(nowNS)
}

// add gives the samples to the links and to the path of their packet.
func (t *Table) add(dropped bool, nowNS int64) {
	for i := range t.samples {
		t.addToLink(&t.samples[i], nowNS)
	}
	if t.seen.Has&telemetry.HasFlow != 0 && len(t.samples) > 0 {
		t.addToPath(dropped, nowNS)
	}
}

// watch shows a report, filled but for samples, flow and time.
func (t *Table) watch(nowNS int64) {
	t.report.TimeNS, t.report.Samples = t.posixNS(nowNS), t.samples
	if t.report.HasFlow = t.seen.Has&telemetry.HasFlow != 0; t.report.HasFlow {
		t.report.Flow = t.seen.Flow
	}
	t.options.Watch(&t.report)
}

// inner takes the samples of the packet that a report carries.
func (t *Table) inner(r *telemetry.Report, nowNS int64) {
	t.seen.Has, t.seen.Segments = 0, nil
	switch r.InType {
	case telemetry.InNone, telemetry.InDomain:
	case telemetry.InTLV: // they hold single fields of a packet, and no telemetry
		for rest, err := r.Inner, error(nil); len(rest) > 0; {
			if _, rest, err = telemetry.ParseTLV(rest); err != nil {
				t.Dropped[BadPacket]++
				break
			}
		}
	default:
		t.packet(r.Inner, r.InType, nowNS)
	}
}

// packet takes the samples of a packet.
func (t *Table) packet(b []byte, kind telemetry.InType, nowNS int64) {
	p := &t.seen
	err := p.Parse(b, kind, t.options.INTPort)
	if err != nil && err != error(telemetry.Truncated) { // packets are cut off
		t.Dropped[BadPacket]++
	}
	if p.Has&telemetry.HasMD != 0 {
		t.samples = p.MD.AppendSamples(t.samples, 0)
	}
	if p.Has&telemetry.HasTrace != 0 {
		if t.samples, err = p.Trace.AppendSamples(t.samples, 0); err != nil {
			t.Dropped[BadPacket]++
		}
	}
	if p.Has&telemetry.HasPathTrace != 0 {
		t.samples = p.PathTrace.AppendSamples(t.samples, 0, uint64(t.posixNS(nowNS)),
			t.options.PathTracing)
	}
}

// addOwn adds what the reporting node says of itself, unless it wrote that into the packet, too.
func (t *Table) addOwn(e *Exporter, r *telemetry.Report) {
	if r.Bits == 0 {
		return
	}
	m, _ := r.Baseline()
	if m.Present == 0 {
		return
	}
	last := len(t.samples) - 1
	if last >= 0 && t.samples[last].Known&telemetry.FieldNode != 0 &&
		t.samples[last].Node == uint64(e.Node) {
		return
	}
	s := m.Sample()
	s.Node, s.Hop = uint64(e.Node), uint8(last+1)
	s.Known |= telemetry.FieldNode
	t.samples = append(t.samples, s)
}

// noInterface is the egress of a node that does not tell it.
const noInterface = ^uint32(0)

func (t *Table) addToLink(s *telemetry.Sample, nowNS int64) {
	t.Samples++
	if s.Known&telemetry.FieldNode == 0 {
		return // Path Tracing: the interface is of a node that only the order names
	}
	l := t.link(Link{s.Node, s.Egress}, nowNS)
	if l == nil {
		return
	}
	state := &l.value
	state.heard(t.posixNS(nowNS))
	state.Samples++
	if s.Known&telemetry.FieldQueue != 0 {
		state.QueueBytes.Add(s.QueueBytes)
	}
	if s.Known&telemetry.FieldDelay != 0 {
		state.LatencyNS.Add(s.DelayNS)
	}
	if s.Known&telemetry.FieldUtilization != 0 {
		state.UtilizationPPM.Add(s.UtilizationPPM)
	}
}

// link returns the state of a link; nil if there is no room, which it counts.
func (t *Table) link(k Link, nowNS int64) *slot[Link, LinkState] {
	l := t.links.find(k, nowNS, int64(idle))
	if l == nil {
		t.Dropped[LinksFull]++
	}
	return l
}

// addDrop counts a dropped packet at the node that reports it.
func (t *Table) addDrop(e *Exporter, nowNS int64) {
	egress := noInterface
	if last := len(t.samples) - 1; last >= 0 && t.samples[last].Node == uint64(e.Node) {
		egress = t.samples[last].Egress
	}
	l := t.link(Link{uint64(e.Node), egress}, nowNS)
	if l == nil {
		return
	}
	l.value.heard(t.posixNS(nowNS))
	l.value.Drops++
}
