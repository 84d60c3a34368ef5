package packet

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"sextant/packet/flow"
	"sextant/te/reroute"
	"sextant/te/srpolicy"
	"sextant/te/topology"
)

// Controller describes a controller that moves flows, as SMOOTHIE's does: a part of the packets
// carries telemetry and collects how full queues are, the last switch reports that and pauses of
// flows, and te/reroute decides, the same code that the controller runs. If Settings.Groups says
// so, first switches choose paths for flows that begin, by weights that te/reroute computes, and
// again after pauses of Settings.Flowlet, as the head-end's program in the kernel does.
// Telemetry takes no bandwidth here: some 40 bytes in one of 50 packets are 0.05 %.
type Controller struct {
	Settings reroute.Settings
	Sample   float64 // part of the packets that carry telemetry
	Pause    Time    // of a flow at its last switch, from which on it is reported: tau
	// Prompt lets the last switch report a pause at once; otherwise it waits for the next packet
	// of the flow that carries telemetry, as in the paper.
	Prompt       bool
	ReportDelay  Time // from the last switch to a decision
	ControlDelay Time // from a decision until packets take the new path
	// Utilization says that telemetry tells how much of the links is used, too.
	Utilization bool
}

// controller is the state of the controller and of the switches that it hears of.
type controller struct {
	Controller
	decider *reroute.Decider
	samples []sample // by packet.via
	free    []int32
	flows   []sinkFlow // by subflow
	notices []notice
	unused  []int32
	groups  groups
	meters  []srpolicy.Meter // by link, if telemetry tells of utilization
}

// sampleHops bounds how many queues a packet tells of.
const sampleHops = 12

// sample is what a packet with telemetry has collected.
type sample struct {
	queues [sampleHops]reroute.Queue
	count  int
}

// sinkFlow is what the last switch knows of a flow.
type sinkFlow struct {
	label  uint64
	last   Time
	paused bool // and not reported yet
}

// notice is a report on its way to the controller, or a path on its way to a flow's first switch.
type notice struct {
	subflow int32
	label   uint64
	report  reroute.Report
	queues  [sampleHops]reroute.Queue
	path    []topology.Edge // none: it is a report
}

func edgeOf(link int32) topology.Edge { return topology.Edge(link) }

func (s *Simulation) prepareControl() error {
	if s.paths.Controller == nil {
		return fmt.Errorf("paths: the scheme Controlled needs a controller")
	}
	c := *s.paths.Controller
	switch {
	case !(c.Sample > 0 && c.Sample <= 1):
		return fmt.Errorf("controller: a part %g of the packets carries telemetry; state more "+
			"than 0 and at most 1", c.Sample)
	case c.Pause <= 0 || c.ReportDelay < 0 || c.ControlDelay < 0:
		return fmt.Errorf("controller: pause %d, report delay %d and control delay %d ps; the "+
			"first must be above 0, the others not below", c.Pause, c.ReportDelay, c.ControlDelay)
	}
	if s.network.relay[s.network.Hosts[0]] {
		return fmt.Errorf("controller: hosts of %s forward; the last switch of a flow measures "+
			"pauses, so take a network whose hosts do not", s.network.Graph.Name())
	}
	g, err := s.network.rated()
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	d, err := reroute.NewDecider(g.All(), c.Settings, s.paths.random.Uint64())
	if err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	s.controller = &controller{Controller: c, decider: d}
	if c.Utilization {
		s.controller.meters = make([]srpolicy.Meter, len(s.links))
	}
	s.prepareGroups()
	s.Every(Second/10, func(s *Simulation) { s.controller.decider.Forget(s.elapsed()) })
	return nil
}

// rated is the topology with the rates that the links have here, and the same numbers.
func (n *Network) rated() (*topology.Graph, error) {
	g := n.Graph
	b := topology.NewBuilder(g.Name(), g.DelayUnit())
	for v := range g.Nodes() {
		if _, err := b.AddNode(g.Node(topology.Node(v))); err != nil {
			return nil, err
		}
	}
	for e := range topology.Edge(g.Edges()) {
		spec := g.Edge(e)
		spec.CapacityKbps = int64(n.links[e].rate() * 8 / 1000)
		if _, err := b.AddEdge(spec); err != nil {
			return nil, err
		}
	}
	return b.Build(), nil
}

func (s *Simulation) elapsed() time.Duration { return time.Duration(s.now / Nanosecond) }

// controlSend lets the first switch choose for a flowlet that begins, and a packet carry telemetry,
// by chance.
func (s *Simulation) controlSend(f *subflow, e *packet) {
	if e.kind != data {
		return
	}
	s.again(f)
	k := s.controller
	if s.paths.random.Float64() >= k.Sample {
		return
	}
	if last := len(k.free) - 1; last >= 0 {
		e.via = k.free[last]
		k.free = k.free[:last]
	} else {
		e.via = int32(len(k.samples))
		k.samples = append(k.samples, sample{})
	}
	k.samples[e.via].count = 0
}

// collect notes the queue of a link that a packet enters, and lets the last switch look at it.
func (s *Simulation) collect(e *packet, w way, link int32, wait Time) {
	if e.kind != data {
		return
	}
	k, l := s.controller, &s.links[link]
	if !l.relay {
		s.sink(e)
		return
	}
	if e.via == none || w.place() == way(e.route) {
		return
	}
	if x := &k.samples[e.via]; x.count < sampleHops {
		q := &x.queues[x.count]
		limit := s.network.links[link].limit
		*q = reroute.Queue{Edge: edgeOf(link), Occupancy: min(float64(wait)/float64(limit), 1)}
		if k.Utilization {
			q.Used = s.usedOf(link, wait)
		}
		x.count++
	}
}

// meterBytes are what a link sends in the time constant with which its utilization is measured: 160
// µs at 10 Gb/s, as CONGA has it.
const meterBytes = 200_000

// usedOf is how much of a link is used, as its switch measures it when a packet with telemetry has
// so much work before it: by what has been sent.
func (s *Simulation) usedOf(link int32, wait Time) float64 {
	l := &s.links[link]
	waiting := uint64(wait << fraction / Time(l.perByte))
	constant := time.Duration(meterBytes*l.perByte>>fraction) / time.Duration(Nanosecond)
	rate := s.controller.meters[link].Read(l.stats.Bytes-min(waiting, l.stats.Bytes), s.elapsed(),
		constant)
	perByte := float64(l.perByte) / (1 << fraction) / float64(Nanosecond) // ns
	return min(1, float64(rate)/(1<<srpolicy.MeterUnit)*perByte)
}

// sink is what the last switch of a packet does.
func (s *Simulation) sink(e *packet) {
	k := s.controller
	for int(e.flow) >= len(k.flows) {
		k.flows = append(k.flows, sinkFlow{})
	}
	f, x := &s.subflows[e.flow], &k.flows[e.flow]
	if x.label != f.path.label {
		*x = sinkFlow{label: f.path.label, last: s.now}
	}
	x.paused = x.paused || s.now-x.last > k.Pause
	x.last = s.now
	if e.via == none && !(k.Prompt && x.paused) {
		return
	}
	n, number := s.notice(e.flow, x.label)
	n.report.Queues = n.queues[:0]
	if e.via != none {
		y := &k.samples[e.via]
		n.report.Queues = n.queues[:copy(n.queues[:], y.queues[:y.count])]
	}
	c := &s.connections[f.connection]
	r := &n.report
	r.Flow, r.Pause = tupleOf(x.label), x.paused
	r.From, r.To = topology.Node(s.network.entry[c.src]), topology.Node(s.network.entry[c.dst])
	r.Path = r.Path[:0]
	for at := e.route; s.routes[at] != none; at++ {
		if l := s.routes[at]; s.network.relay[s.network.Graph.From(edgeOf(l))] &&
			s.links[l].relay {
			r.Path = append(r.Path, edgeOf(l))
		}
	}
	x.paused = false
	s.at(reported, number, s.now+k.ReportDelay)
}

// notice is a free notice on a subflow.
func (s *Simulation) notice(subflow int32, label uint64) (*notice, int32) {
	k := s.controller
	number := int32(len(k.notices))
	if last := len(k.unused) - 1; last >= 0 {
		number = k.unused[last]
		k.unused = k.unused[:last]
	} else {
		k.notices = append(k.notices, notice{})
	}
	n := &k.notices[number]
	n.subflow, n.label, n.path = subflow, label, nil
	return n, number
}

// tupleOf names a flow to the controller.
func tupleOf(label uint64) flow.Tuple {
	var address [16]byte
	binary.BigEndian.PutUint64(address[8:], label)
	return flow.Tuple{Src: netip.AddrFrom16(address), Dst: netip.IPv6Unspecified()}
}

// noticed lets a notice arrive: a report at the controller, or a path at the first switch.
func (s *Simulation) noticed(number int32) {
	k := s.controller
	n := &k.notices[number]
	if n.path == nil {
		n.report.At = s.elapsed()
		subflow, label := n.subflow, n.label
		k.decider.Note(n.report.Flow, n.report.At)
		decision := k.decider.Report(&n.report)
		if decision.Verdict == reroute.Moved {
			s.move(subflow, label, decision.Path)
		}
	} else if f := &s.subflows[n.subflow]; f.state == open && f.path.label == n.label {
		s.redirect(f, n.path)
	}
	k.unused = append(k.unused, number)
}

// move sends a path to the first switch of a flow.
func (s *Simulation) move(subflow int32, label uint64, path []topology.Edge) {
	n, number := s.notice(subflow, label)
	n.path = path
	s.at(reported, number, s.now+s.controller.ControlDelay)
}

// redirect lets a subflow take a path from now on.
func (s *Simulation) redirect(f *subflow, path []topology.Edge) {
	f.path.given = true
	c := &s.connections[f.connection]
	if route := s.routeOver(c, path); route != f.path.forward {
		f.path.forward = route
		c.reroutes++
		s.totals.Reroutes++
	}
}

// forget gives the telemetry of a packet back that is gone.
func (k *controller) forget(e *packet) {
	if e.kind == data && e.via != none {
		k.free = append(k.free, e.via)
	}
}

// controlLinks tells the controller of links that failed or returned.
func (s *Simulation) controlLinks() {
	for l := range s.links {
		if s.routing.down[l] == s.links[l].down {
			continue
		}
		s.controller.decider.SetUp(edgeOf(int32(l)), !s.links[l].down, s.elapsed(),
			func(reroute.Decision) {}) // flows over it get new paths by routing itself
	}
	if s.controller.Settings.Groups > 0 {
		s.findGroups()
	}
}

// intact tells whether a route has no link that is down.
func (s *Simulation) intact(route int32) bool {
	if route == none {
		return false
	}
	for ; s.routes[route] != none; route++ {
		if s.links[s.routes[route]].down {
			return false
		}
	}
	return true
}
