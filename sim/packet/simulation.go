package packet

import (
	"fmt"
	"math/rand/v2"
)

// Transport is how hosts send. The zero value is not usable; DefaultTransport is like Linux.
type Transport struct {
	Control         Control
	Payload, Header int32 // bytes of a full segment, and of the headers before it
	AckSize         int32 // bytes on the wire of a packet without data
	InitialWindow   int
	InitialSSThresh int    // segments; 0: none
	MaxWindow       uint32 // segments that the receiver takes
	Reordering      uint32 // later transmissions that must arrive before a segment counts as lost
	ECN             bool
	InitialRTO      Time // RFC 6298: 1 s
	MinRTO          Time // floor under four times the variation, as in Linux
	// 0: every segment is acknowledged at once. It ends before MinRTO does, as in Linux.
	DelayedAck  Time
	QuickAcks   uint16
	NoHandshake bool // data is sent at once
	// acknowledgements arrive as they are sent, over no link: as simulators without a reverse path
	// have it
	FreeAcks bool
	// what Linux does beside the RFCs: losses are found by time, too (RFC 8985), few segments
	// beyond a hole are acknowledged by themselves, after a pause acknowledgements wait for
	// nothing, CUBIC grows by all of its rules until the first loss, and fewer segments than are
	// handed over at once wait for an acknowledgement that is due
	Linux bool
}

// DefaultTransport returns what Linux does, with segments that fill frames of 1500 bytes.
func DefaultTransport() Transport {
	return Transport{
		Payload: 1448, Header: 52, AckSize: 64, InitialWindow: 10, MaxWindow: 1 << 12,
		Reordering: 3,
		InitialRTO: Second, MinRTO: 200 * Millisecond, DelayedAck: 40 * Millisecond, QuickAcks: 16,
	}
}

// Flow is a transfer to be made: a TCP connection, or an MPTCP connection of several subflows.
type Flow struct {
	Src, Dst int // indices of the network's Hosts
	Bytes    int64
	Start    Time
	Subflows int // 0 is 1
	Tag      int // what the caller knows it by
}

// Endless is the size of a flow that lasts as long as the run.
const Endless = 1 << 60

// Config describes a run.
type Config struct {
	Network   *Network
	Transport Transport
	Paths     Paths
	Seed      uint64
	// Done is told of each flow when its last byte has arrived; nil: nobody is.
	Done func(Completed)
}

// Completed is a flow whose last byte has arrived.
type Completed struct {
	Flow            Flow
	Finish          Time
	Retransmissions int
	Timeouts        int
	Reroutes        int
}

// connection is a flow under way.
type connection struct {
	flow            Flow
	src, dst        Node
	size            int64
	unassigned      int64 // bytes that no subflow has taken
	delivered       int64
	finish          Time
	subflows        []int32
	live            int // subflows that are not recycled
	label           uint64
	retransmissions int
	timeouts        int
	reroutes        int
	alpha, total    float64 // of LIA: aggressiveness, and window of all subflows
	coupled         bool    // alpha and total are valid
	colors          []int32 // of the subflows, for Colored
}

// Simulation is a run.
type Simulation struct {
	calendar    calendar
	packets     packets
	freeAck     int32          // the packet that acknowledges at once, with FreeAcks
	sizeOf      [classes]int32 // of packets of a class
	now         Time
	links       []link
	meters      []meter     // of the links' utilization, for schemes that look at it; or nil
	controller  *controller // of Controlled; or nil
	uplink      []uint8     // of CONGA: number of a link among those that leave its node
	routes      []int32
	network     *Network
	routing     *routing
	transport   Transport
	paths       pathChoice
	random      *rand.Rand
	sizes       *rand.Rand
	subflows    []subflow
	freeSub     []int32
	connections []connection
	freeConn    []int32
	sources     []source
	changes     []Change
	hooks       []hook
	feeds       []feed
	failure     error
	totals      Totals
	inFlight    Count
	stopped     bool
	done        func(Completed)
	observe     func(int32) // tests: after each event
	lossless    *lossless
	unsent      map[int32]float64 // bytes that failures of a link lost before they were sent
}

// New prepares a run.
func New(c Config) (*Simulation, error) {
	t := c.Transport
	if t.Payload < 1 || t.InitialWindow < 1 || t.MaxWindow < 1 || t.Reordering < 1 ||
		t.InitialRTO <= 0 || t.MinRTO <= 0 {
		return nil, fmt.Errorf("transport: payload %d, initial window %d, window %d, reordering "+
			"%d and timeouts %d and %d ps "+
			"must be above 0", t.Payload, t.InitialWindow, t.MaxWindow, t.Reordering, t.InitialRTO,
			t.MinRTO)
	}
	const jiffy = Millisecond // of Linux, by which a delayed acknowledgement is earlier
	t.DelayedAck = min(t.DelayedAck, max(t.MinRTO-jiffy, t.MinRTO/2))
	n := c.Network
	s := &Simulation{
		calendar: newCalendar(n.slot()), links: append([]link(nil), n.links...), network: n,
		routing: newRouting(n), packets: packets{free: none},
		transport: t, random: rand.New(rand.NewPCG(c.Seed, 1)),
		sizes: rand.New(rand.NewPCG(c.Seed, 2)), done: c.Done, unsent: map[int32]float64{},
	}
	s.freeAck = s.packets.take()
	s.sizeOf[fullSize], s.sizeOf[emptySize] = t.Payload+t.Header, t.AckSize
	for i := range s.links {
		s.links[i].arrival = s.arrivals(int32(i))
	}
	s.prepareLossless()
	if err := s.preparePaths(c.Paths, c.Seed); err != nil {
		return nil, err
	}
	return s, nil
}

// Totals counts what happened so far.
func (s *Simulation) Totals() Totals { return s.totals }

// Link is what a link was given to carry; some of it may wait still.
func (s *Simulation) Link(number int) LinkStats { return s.links[number].stats }

// Waiting is how many bytes of those given to a link have not been sent, or never will be, because
// the link failed before.
func (s *Simulation) Waiting(number int) float64 {
	if s.links[number].down {
		return s.unsent[int32(number)]
	}
	return s.unsent[int32(number)] + s.work(int32(number)).Seconds()*s.links[number].rate()
}

// Run plays all that happens before a time.
func (s *Simulation) Run(until Time) { s.run(until) }

// Add plans a flow, and returns a handle for Delivered.
func (s *Simulation) Add(f Flow) (int, error) {
	hosts := s.network.Hosts
	switch {
	case f.Src < 0 || f.Src >= len(hosts) || f.Dst < 0 || f.Dst >= len(hosts) || f.Src == f.Dst:
		return 0, fmt.Errorf("flow from host %d to host %d; the network has hosts 0 to %d, and "+
			"both must differ", f.Src, f.Dst,
			len(hosts)-1)
	case f.Bytes < 1 || f.Bytes > Endless:
		return 0, fmt.Errorf("flow of %d bytes; it has at least 1, and at most %d", f.Bytes,
			int64(Endless))
	case f.Start < s.now:
		return 0, fmt.Errorf("flow starts at %g s, but it is %g s already", f.Start.Seconds(),
			s.now.Seconds())
	}
	var number int32
	if last := len(s.freeConn) - 1; last >= 0 {
		number = s.freeConn[last]
		s.freeConn = s.freeConn[:last]
	} else {
		number = int32(len(s.connections))
		s.connections = append(s.connections, connection{})
	}
	s.connections[number] = connection{flow: f, src: hosts[f.Src], dst: hosts[f.Dst], size: f.Bytes,
		unassigned: f.Bytes,
		subflows:   s.connections[number].subflows[:0], label: s.random.Uint64()}
	if s.paths.Scheme == Colored {
		s.paths.coloring.waiting = append(s.paths.coloring.waiting, number)
	}
	s.at(flowStart, number, f.Start)
	return int(number), nil
}

// Delivered is how many bytes of a flow have arrived; each counts once. The handle is valid until
// the flow is done.
func (s *Simulation) Delivered(handle int) int64 { return s.connections[handle].delivered }

// start begins a flow.
func (s *Simulation) start(number int32) {
	c := &s.connections[number]
	c.live = s.wanted(c)
	for range c.live {
		c.subflows = append(c.subflows, s.newSubflow(number))
	}
	if !s.transport.NoHandshake {
		s.open(c.subflows[0])
		return
	}
	for _, sub := range c.subflows {
		f := &s.subflows[sub]
		f.state = open
		f.expires = never
		s.route(sub, f)
	}
	for _, sub := range c.subflows {
		s.send(sub, &s.subflows[sub])
	}
}

// wanted is how many subflows a connection has.
func (s *Simulation) wanted(c *connection) int {
	n := max(c.flow.Subflows, 1)
	if s.paths.Capped && n > 1 {
		n = max(min(n, len(s.paths.tables[s.table(c.src, c.dst)].fabric)), 1)
	}
	return n
}

func (s *Simulation) newSubflow(c int32) int32 {
	var number int32
	if last := len(s.freeSub) - 1; last >= 0 {
		number = s.freeSub[last]
		s.freeSub = s.freeSub[:last]
	} else {
		number = int32(len(s.subflows))
		s.subflows = append(s.subflows, subflow{})
	}
	s.subflows[number].reset(c, &s.transport)
	return number
}

// complete tells that the last byte of a flow has arrived.
func (s *Simulation) complete(number int32) {
	if s.done == nil {
		return
	}
	c := &s.connections[number]
	s.done(Completed{Flow: c.flow, Finish: c.finish, Retransmissions: c.retransmissions,
		Timeouts: c.timeouts,
		Reroutes: c.reroutes})
}

// finished tells whether the sender knows that all has arrived.
func (s *Simulation) finished(c *connection) bool {
	for _, sub := range c.subflows {
		if f := &s.subflows[sub]; f.una != f.nxt {
			return false
		}
	}
	return true
}

// close ends a connection whose data is acknowledged. Its subflows are used again when their
// packets are gone.
func (s *Simulation) close(c *connection) {
	for _, sub := range c.subflows {
		s.subflows[sub].state = closed
		s.leave(&s.subflows[sub].path)
	}
	for _, sub := range c.subflows {
		s.recycle(sub)
	}
}

// ended counts a packet of a subflow that is gone.
func (s *Simulation) ended(number int32) {
	f := &s.subflows[number]
	f.packets--
	if f.state == closed {
		s.recycle(number)
	}
}

// recycle frees a closed subflow that has no packets and no timers left, and its connection after
// the last.
func (s *Simulation) recycle(number int32) {
	f := &s.subflows[number]
	if f.state != closed || f.packets != 0 || f.receiver.timer != none {
		return
	}
	if f.timer != none {
		s.calendar.slab[f.timer].flow = none
		f.timer = none
	}
	if f.rack.timer != none {
		s.calendar.slab[f.rack.timer].flow = none
		f.rack.timer = none
	}
	f.state = idle
	s.freeSub = append(s.freeSub, number)
	c := &s.connections[f.connection]
	if c.live--; c.live == 0 {
		s.freeConn = append(s.freeConn, f.connection)
	}
}

// Change is a link that fails or returns during a run.
type Change struct {
	At   Time
	Link int // number of the edge in the topology
	Up   bool
}

// Schedule plans a change. Routing follows after Paths.Convergence.
func (s *Simulation) Schedule(c Change) error {
	if c.Link < 0 || c.Link >= len(s.links) || c.At < s.now {
		return fmt.Errorf("link %d changes at %g s; there are links 0 to %d, and it is %g s",
			c.Link, c.At.Seconds(),
			len(s.links)-1, s.now.Seconds())
	}
	s.changes = append(s.changes, c)
	s.at(change, int32(len(s.changes)-1), c.At)
	return nil
}

// apply lets a link fail or return; what is in its queue and on it is lost.
func (s *Simulation) apply(c Change) {
	l := &s.links[c.Link]
	if l.down == !c.Up {
		return
	}
	if !c.Up {
		s.unsent[int32(c.Link)] = s.Waiting(c.Link)
	}
	l.down = !c.Up
	if l.down {
		s.empty(int32(c.Link))
		l.least = -1
	} else {
		l.free, l.least = s.now, s.network.links[c.Link].least
	}
	if s.lossless != nil {
		l.least = -1
		s.altered(int32(c.Link))
	}
	s.reconvergeLater()
}

// empty loses the packets of a link that failed. The first, which may be on the link, is lost when
// it would have arrived.
func (s *Simulation) empty(number int32) {
	l := &s.links[number]
	if l.queue.empty() {
		return
	}
	e := &s.calendar.slab[l.arrival]
	e.kind = vanish
	e.flow, _ = s.packets.pop(&l.queue)
	l.arrival = s.arrivals(number)
	for !l.queue.empty() {
		id, _ := s.packets.pop(&l.queue)
		s.lose(id, number)
	}
}

// arrivals makes the event by which packets arrive over a link.
func (s *Simulation) arrivals(number int32) int32 {
	id := s.calendar.take()
	s.calendar.slab[id] = event{kind: arrival, link: number}
	return id
}

// hook is work that is done again and again.
type hook struct {
	every Time
	run   func(*Simulation)
}

// Every calls a function periodically, from one period from now on.
func (s *Simulation) Every(period Time, run func(*Simulation)) {
	s.hooks = append(s.hooks, hook{period, run})
	id := s.at(tick, 0, s.now+period)
	s.calendar.slab[id].link = int32(len(s.hooks) - 1)
}
