package controller

import (
	"fmt"
	"math"
	"net/netip"
	"slices"

	"sextant/controller/collector"
	"sextant/packet/telemetry"
	"sextant/te/reroute"
	"sextant/te/topology"
)

// Telemetry is where the controller takes Telemetry Reports 2.0 from, by UDP.
type Telemetry struct {
	Listen netip.AddrPort `yaml:"listen"` // none if not set: reports come by the API only
	// Exporters are the prefixes that reports may come from.
	Exporters []netip.Prefix `yaml:"exporters"`
	// IntPort is the UDP destination port behind which packets carry INT; 0: the collector's.
	IntPort uint16 `yaml:"intPort"`
}

func (t Telemetry) check() error {
	if t.Listen.IsValid() && len(t.Exporters) == 0 {
		return fmt.Errorf("telemetry.exporters: name the prefixes of the domain's exporters: " +
			"reports move flows, and are not signed")
	}
	return nil
}

// unknownQueue is what a node writes that does not know how full its queue is: 24 bits of ones.
const unknownQueue = 1<<24 - 1

// sink turns reports of telemetry into those of package reroute. It belongs to the event loop.
type sink struct {
	controller *Controller
	reader     *collector.Reader // nil: there is none
	batches    chan *collector.Batch
	failed     chan error // that ended the reader
	table      *collector.Table
	places     *places
	unplaced   uint64 // reports that name what the topology does not have

	reports []reroute.Report // of the batch
	refs    []*reroute.Report
	path    []topology.Edge
	queues  []reroute.Queue
}

// places says which router has which number in telemetry, and which link which interface.
type places struct {
	graph *topology.Graph
	nodes map[uint64]topology.Node
	links map[collector.Link]topology.Edge
	sizes []int64 // of queues, in bytes, by edge
}

// newPlaces numbers routers as the plan of SIDs does, from 1 in the topology's order, where the
// file does not say otherwise.
func newPlaces(g *topology.Graph, c *Config, named *names) (*places, error) {
	p := &places{graph: g, nodes: map[uint64]topology.Node{},
		links: map[collector.Link]topology.Edge{}, sizes: named.sizes}
	numbers := make([]uint64, g.Nodes())
	for v := range numbers {
		numbers[v] = uint64(v) + 1
	}
	for i, r := range c.Routers {
		v, ok := g.Lookup(r.Name)
		if !ok {
			return nil, fmt.Errorf("routers[%d]: %s has no router %q", i, g.Name(), r.Name)
		}
		if r.Node != 0 {
			numbers[v] = uint64(r.Node)
		}
	}
	for v, number := range numbers {
		if other, taken := p.nodes[number]; taken {
			return nil, fmt.Errorf("routers %s and %s have the number %d in telemetry; give each "+
				"its own by routers[].node", g.Node(other).Name, g.Node(topology.Node(v)).Name,
				number)
		}
		p.nodes[number] = topology.Node(v)
	}
	for e, number := range named.interfaces {
		p.links[collector.Link{Node: numbers[g.From(e)], Egress: number}] = e
	}
	return p, nil
}

// link is the link by which a router's packet reached the next one: the one of the interface if the
// file names it, else the first between them.
func (p *places) link(node uint64, egress uint32, next topology.Node) (topology.Edge, bool) {
	if e, ok := p.links[collector.Link{Node: node, Egress: egress}]; ok && p.graph.To(e) == next {
		return e, true
	}
	from, known := p.nodes[node]
	if !known {
		return topology.NoEdge, false
	}
	e := linkBetween(p.graph, from, next)
	return e, e != topology.NoEdge
}

// batchesAhead is how many batches may wait for the event loop.
const batchesAhead = 8

func newSink() *sink {
	return &sink{batches: make(chan *collector.Batch, batchesAhead), failed: make(chan error, 1)}
}

// listenTelemetry opens the port, if there is to be one.
func (c *Controller) listenTelemetry() error {
	t := c.options.Config.Telemetry
	c.sink.controller, c.sink.places = c, c.places
	if !t.Listen.IsValid() {
		return nil
	}
	var err error
	if c.sink.reader, err = collector.Listen(t.Listen); err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	c.sink.table = collector.NewTable(collector.Options{INTPort: t.IntPort,
		Exporters: t.Exporters, Watch: c.sink.watch})
	go func() {
		if err := c.sink.reader.Run(c.sink.batches); err != nil {
			c.sink.failed <- err
		}
	}()
	c.options.Log.Info("telemetry", "listen", c.sink.reader.Address())
	return nil
}

func (s *sink) close() {
	if s.reader != nil {
		s.reader.Close()
	}
}

// take decides on all reports of a batch together.
func (s *sink) take(b *collector.Batch, now collector.Moment) {
	s.reports, s.refs = s.reports[:0], s.refs[:0]
	s.path, s.queues = s.path[:0], s.queues[:0]
	s.table.Take(b, now)
	b.Done()
	for i := range s.reports {
		s.refs = append(s.refs, &s.reports[i])
	}
	s.controller.take(s.refs)
}

// watch turns one report. What it appends to may move in memory; earlier reports keep what they
// have.
func (s *sink) watch(r *collector.Report) {
	if !r.HasFlow {
		return
	}
	out := reroute.Report{Flow: r.Flow, At: s.controller.now(),
		Pause: r.Congestion != nil && r.Congestion.IdleGapUS > 0}
	known := s.way(&out, r)
	switch {
	case known:
	case out.Pause && s.remembered(&out, r):
	default:
		s.unplaced++
		return
	}
	s.reports = append(s.reports, out)
}

// way reads the path and the queues on it from the samples. It is false if there are fewer than two
// routers, or routers or links that the topology does not have.
func (s *sink) way(out *reroute.Report, r *collector.Report) bool {
	path, queues := len(s.path), len(s.queues)
	samples := r.Samples
	for i := range samples {
		next := uint64(r.Exporter.Node)
		if i+1 < len(samples) {
			next = samples[i+1].Node
		}
		if next == samples[i].Node { // the sink's own
			break
		}
		to, ok := s.places.nodes[next]
		e := topology.NoEdge
		if ok {
			e, ok = s.places.link(samples[i].Node, samples[i].Egress, to)
		}
		if !ok {
			s.path, s.queues = s.path[:path], s.queues[:queues]
			return false
		}
		s.path = append(s.path, e)
		if samples[i].Known&telemetry.FieldQueue != 0 && samples[i].QueueBytes < unknownQueue {
			s.queues = append(s.queues, reroute.Queue{Edge: e, Occupancy: math.Min(1,
				float64(samples[i].QueueBytes)/float64(s.places.sizes[e])),
				Used: usedPart(&samples[i])})
		}
	}
	out.Path = slices.Clip(s.path[path:])
	out.Queues = slices.Clip(s.queues[queues:])
	if len(out.Path) == 0 {
		return false
	}
	out.From = s.places.graph.From(out.Path[0])
	out.To = s.places.graph.To(out.Path[len(out.Path)-1])
	return true
}

// usedPart is the part of a link's rate that a sample says is used; 0 if it does not say.
func usedPart(s *telemetry.Sample) float64 {
	if s.Known&telemetry.FieldUtilization == 0 || s.UtilizationPPM > perMillion {
		return 0
	}
	return float64(s.UtilizationPPM) / perMillion
}

const perMillion = 1e6

// remembered gives a report without a way the path that the flow has: the one that it was given, or
// that its last packet with telemetry took.
func (s *sink) remembered(out *reroute.Report, r *collector.Report) bool {
	if f, ok := s.controller.decider.Flow(r.Flow); ok && len(f.Path) > 0 {
		out.From, out.To = f.From, f.To
		return true
	}
	p, _ := s.table.Path(r.Flow)
	if p == nil {
		return false
	}
	last := *r
	last.Samples = p.Samples[:p.Hops]
	if !s.way(out, &last) {
		return false
	}
	out.Queues = nil // of another time
	return true
}

// status is what came so far; nil if the controller does not listen.
func (s *sink) status() *TelemetryStatus {
	if s.reader == nil {
		return nil
	}
	d := &s.table.Dropped
	out := &TelemetryStatus{Listen: s.reader.Address(), Datagrams: s.table.Datagrams,
		Reports: s.table.Reports, Foreign: d[collector.Foreign], Repeated: d[collector.Repeated],
		Broken: d[collector.BadGroup] + d[collector.BadReport] + d[collector.BadPacket] +
			d[collector.Oversized], Unplaced: s.unplaced}
	s.table.EachExporter(func(_ collector.Exporter, q *collector.Sequence, _ int64) {
		out.Lost += q.Lost
	})
	return out
}
