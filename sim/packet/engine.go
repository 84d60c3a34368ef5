package packet

// kind says what an event is.
type kind uint8

// Packets come first: they travel over links. The others happen at one place.
const (
	data kind = iota
	acknowledgement
	syn
	synAck
	datagram
	lastPacket = datagram
)
const (
	retransmission kind = iota + lastPacket + 1 // timer of a subflow
	delayedAck                                  // timer of a subflow
	flowStart                                   // flow is the number of the connection
	sourceTick                                  // flow is the number of the open-loop source
	change                                      // flow is the number of the change
	tick                                        // of periodic work: link is the number of the hook
	feedTick                                    // flow is the number of the feed
	converge                                    // routing follows the changes of links
	resume                                      // of ConWeave: flow is the number of the direction
	reported                                    // of Controlled: flow is the number of the notice
)

// Flags of a packet.
const (
	capable     uint8 = 1 << iota // ECN-capable transport
	marked                        // congestion experienced
	echo                          // of an acknowledgement: a marked packet arrived
	retransmit                    // carries a segment that was sent before
	immediate                     // of an acknowledgement: not delayed
	switchPicks                   // each switch chooses the next hop
)

// event is a packet under way or a timer: 64 bytes, one cache line.
type event struct {
	at    Time
	next  int32 // of a list: of the calendar's slot, or of free events
	kind  kind
	flags uint8
	hop   uint8 // links of the route that were taken
	sacks uint8 // how many ranges sack has
	route int32 // first link in routes; of a packet that switches route, the destination
	flow  int32 // subflow, connection, source or change
	link  int32 // that the packet is on
	size  int32 // bytes on the wire
	epoch uint16
	count uint16 // of an acknowledgement: segments that it is for
	seq   uint32 // of data the segment, of an acknowledgement the first one missing
	sent  Time   // of data when it was sent; of an acknowledgement, echoed
	sack  [3]sackRange
	// the path that a packet took or an acknowledgement speaks of, of schemes that need it; none
	via int32
}

// sackRange is segments that arrived beyond a gap, relative to the acknowledgement's seq.
type sackRange struct{ from, to uint16 }

// Totals count packets and bytes of the whole network. At any time, Sent equals Delivered, Dropped
// and Lost and those under way.
type Totals struct {
	Sent, Delivered Count
	Dropped         Count // by a full queue
	Lost            Count // because a link failed, or no path was left
	LastLost        Time  // when a link that failed lost a packet last; 0: never
	Retransmissions uint64
	Timeouts        uint64
	Undone          uint64 // reductions of windows that were not needed, and taken back
	Reroutes        uint64
	// segments sent for the first time that arrived after one with a higher number (RFC 4737,
	// section 3)
	Reordered uint64
	Hops      uint64
	Events    uint64
}

// Count is of packets and their bytes.
type Count struct{ Packets, Bytes uint64 }

func (c *Count) add(size int32) {
	c.Packets++
	c.Bytes += uint64(size)
}

// run plays all events before a time.
func (s *Simulation) run(until Time) {
	for s.calendar.peek() < until && !s.stopped {
		id := s.calendar.next()
		s.now = s.calendar.slab[id].at
		s.totals.Events++
		s.play(id)
		if s.observe != nil {
			s.observe(id)
		}
	}
	if !s.stopped {
		s.now = until
	}
}

// play lets one event happen.
func (s *Simulation) play(id int32) {
	e := &s.calendar.slab[id]
	if e.kind > lastPacket {
		s.timer(id, e)
		return
	}
	l := &s.links[e.link]
	if e.epoch != l.epoch {
		s.lose(id, e)
		return
	}
	if following := l.first; following != none {
		f := &s.calendar.slab[following]
		l.first = f.next
		s.calendar.schedule(following, f.at)
	} else {
		l.busy = false
	}
	if e.flags&switchPicks != 0 {
		s.forward(id, e, l.to)
		return
	}
	e.hop++
	if following := s.routes[e.route+int32(e.hop)]; following != none {
		s.transmit(id, e, following)
		return
	}
	s.deliver(id, e)
}

// transmit puts a packet into the queue of a link.
func (s *Simulation) transmit(id int32, e *event, number int32) {
	l := &s.links[number]
	s.totals.Hops++
	wait := max(l.free-s.now, 0)
	takes := Time(int64(e.size) * l.perByte >> fraction)
	work := wait + takes
	if work > l.limit || l.down || work > l.random && s.unlucky() {
		e.link = number
		s.drop(id, e, l)
		return
	}
	if s.meters != nil {
		s.meter(e, number, takes)
	} else if s.controller != nil {
		s.collect(e, number, wait)
		e = &s.calendar.slab[id] // the slab may have moved
	}
	if work > l.mark && e.flags&capable != 0 {
		e.flags |= marked
		l.stats.Marks++
	}
	l.free = s.now + work
	l.stats.Packets++
	l.stats.Bytes += uint64(e.size)
	e.link, e.epoch = number, l.epoch
	if !l.busy {
		l.busy = true
		s.calendar.schedule(id, l.free+l.delay)
		return
	}
	e.at, e.next = l.free+l.delay, none
	if l.first == none {
		l.first = id
	} else {
		s.calendar.slab[l.last].next = id
	}
	l.last = id
}

// unlucky is true of a tenth of the packets.
func (s *Simulation) unlucky() bool { return s.random.Uint64()%10 == 0 }

// drop ends a packet that a link does not take.
func (s *Simulation) drop(id int32, e *event, l *link) {
	if l.down {
		s.lose(id, e)
		return
	}
	l.stats.Drops++
	s.totals.Dropped.add(e.size)
	s.gone(id, e)
}

func (s *Simulation) lose(id int32, e *event) {
	s.links[e.link].stats.Drops++
	s.totals.Lost.add(e.size)
	s.totals.LastLost = s.now
	s.gone(id, e)
}

// gone ends a packet.
func (s *Simulation) gone(id int32, e *event) {
	s.inFlight.Packets--
	s.inFlight.Bytes -= uint64(e.size)
	if s.controller != nil {
		s.controller.forget(e)
	}
	if e.kind != datagram {
		s.ended(e.flow)
	}
	s.calendar.release(id)
}

// newPacket makes a packet that has not been sent. The event may move when another is taken.
func (s *Simulation) newPacket(k kind, flow, size int32) (int32, *event) {
	id := s.calendar.take()
	e := &s.calendar.slab[id]
	e.kind, e.flags, e.hop, e.sacks, e.flow, e.size, e.sent = k, 0, 0, 0, flow, size, s.now
	e.count, e.via = 0, none
	s.totals.Sent.add(size)
	s.inFlight.add(size)
	return id, e
}

// launch puts a packet onto its route.
func (s *Simulation) launch(id int32, e *event, route int32) {
	e.route = route
	s.transmit(id, e, s.routes[route])
}

// deliver gives a packet to the host that it arrived at.
func (s *Simulation) deliver(id int32, e *event) {
	s.totals.Delivered.add(e.size)
	switch e.kind {
	case data:
		s.receive(e)
	case acknowledgement:
		s.acknowledged(e)
	case syn:
		s.accept(e)
	case synAck:
		s.established(e.flow, s.now-e.sent)
	case datagram:
		s.arrived(e)
	}
	// The slab may have moved.
	s.gone(id, &s.calendar.slab[id])
}

// timer lets a timer expire.
func (s *Simulation) timer(id int32, e *event) {
	switch e.kind {
	case retransmission:
		s.retransmissionTimer(id)
	case delayedAck:
		s.delayedAckTimer(id)
	case flowStart:
		flow := e.flow
		s.calendar.release(id)
		s.start(flow)
	case sourceTick:
		s.emit(id)
	case change:
		number := e.flow
		s.calendar.release(id)
		s.apply(s.changes[number])
	case feedTick:
		number := e.flow
		s.calendar.release(id)
		s.feedFlow(number)
	case converge:
		s.calendar.release(id)
		s.reconverge()
	case resume:
		s.weaveTimer(id)
	case reported:
		number := e.flow
		s.calendar.release(id)
		s.noticed(number)
	case tick:
		hook := &s.hooks[e.link]
		s.calendar.schedule(id, s.now+hook.every)
		hook.run(s)
	}
}

// at plans a timer.
func (s *Simulation) at(k kind, flow int32, when Time) int32 {
	id := s.calendar.take()
	e := &s.calendar.slab[id]
	e.kind, e.flow, e.flags, e.size = k, flow, 0, 0
	s.calendar.schedule(id, when)
	return id
}
