package packet

import "unsafe"

// kind says what a packet or an event is.
type kind uint8

// Packets come first: they travel over links. The others are events.
const (
	data kind = iota
	acknowledgement
	syn
	synAck
	datagram
)
const (
	arrival        kind = iota + datagram + 1 // of the first packet of link
	vanish                                    // of the packet flow, which link lost
	retransmission                            // timer of a subflow
	delayedAck                                // timer of a subflow
	flowStart                                 // flow is the number of the connection
	sourceTick                                // flow is the number of the open-loop source
	change                                    // flow is the number of the change
	tick                                      // of periodic work: link is the number of the hook
	feedTick                                  // flow is the number of the feed
	converge                                  // routing follows the changes of links
	resume                                    // of ConWeave: flow is the number of the direction
	reported                                  // of Controlled: flow is the number of the notice
	overtaken                                 // timer of a subflow
	sent                                      // of lossless queues: link has sent a packet
	pausing                                   // a pause frame reaches the sender of link
)

// event is something that happens at a time: a timer, or the arrival of the packet that a link
// delivers next.
type event struct {
	at     Time
	serial uint32 // tells which of two events of one time was scheduled first
	next   int32  // of a list: of the calendar's slot, or of free events
	flow   int32  // subflow, connection, source or change
	link   int32
	kind   kind
}

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
	for !s.stopped {
		d, lane := s.calendar.lanes.first()
		if s.calendar.pending(d.at) {
			d, lane = s.calendar.wheels(d, lane)
		}
		if d.at >= until {
			break
		}
		s.calendar.remove(d, lane)
		s.now = d.at
		s.totals.Events++
		if int(d.id) < len(s.links) && s.links[d.id].arrival == d.id {
			if lane != none {
				s.expect(lane)
			}
			s.arrive(d.id)
		} else if e := &s.calendar.slab[d.id]; e.kind == arrival {
			s.arrive(e.link)
		} else {
			s.timer(d.id, e)
		}
		if s.observe != nil {
			s.observe(d.id)
		}
	}
	if !s.stopped {
		s.now = until
	}
}

// expect lets the processor load what the arrivals that follow in a lane need: links first, then
// the packet's place in the queue, at last the link that the packet goes on to.
func (s *Simulation) expect(lane int32) {
	const far, near, next = 7, 4, 1
	b := &s.calendar.lanes.behind[lane]
	if b.count <= far {
		return
	}
	mask := uint32(len(b.ring) - 1)
	l := &s.links[0]
	place, onward := unsafe.Pointer(l), l
	if id := b.ring[(b.head+far)&mask].id; uint32(id) < uint32(len(s.links)) {
		l = &s.links[id]
	}
	if id := b.ring[(b.head+near)&mask].id; uint32(id) < uint32(len(s.links)) {
		if n := &s.links[id]; n.arrival == id {
			place = unsafe.Pointer(&s.packets.queued[n.queue.head])
		}
	}
	if id := b.ring[(b.head+next)&mask].id; uint32(id) < uint32(len(s.links)) {
		if n := &s.links[id]; n.arrival == id {
			onward = &s.links[max(s.packets.queued[n.queue.head].following, 0)]
		}
	}
	prefetchLines(unsafe.Pointer(l), unsafe.Pointer(&l.stats), place,
		unsafe.Pointer(onward), unsafe.Pointer(&onward.stats))
}

// arrive lets the first packet of a link reach the other end. Where its way is known beforehand, it
// goes on without a look at the packet itself.
func (s *Simulation) arrive(number int32) {
	l := &s.links[number]
	id, q := s.packets.pop(&l.queue)
	if q.next != none {
		s.calendar.scheduleArrival(l.arrival, q.nextAt)
		if !l.relay {
			prefetch(unsafe.Pointer(&s.packets.slab[q.next]))
		}
	}
	if q.following != none {
		s.transmit(id, q.way.next(), q.following)
		return
	}
	if q.way.place() == chosen {
		s.forward(id, &s.packets.slab[id], l.to)
		return
	}
	s.deliver(id, &s.packets.slab[id])
}

// relay puts a packet into the queue of a link that a switch chose.
func (s *Simulation) relay(id int32, e *packet, number int32) {
	s.transmit(id, s.wayOf(chosen, e.size), number)
}

// transmit puts a packet into the queue of a link.
func (s *Simulation) transmit(id int32, w way, number int32) {
	l := &s.links[number]
	size := s.sizeOf[w%classes]
	if w%classes == anySize {
		size = s.packets.slab[id].size
	}
	s.totals.Hops++
	wait := max(l.free-s.now, 0)
	takes := Time(int64(size) * l.perByte >> fraction)
	work := wait + takes
	if work > l.least {
		if work > l.limit || wait > l.patient || l.down || work > l.random && s.unlucky() {
			s.refuse(id, w, number)
			return
		}
		if work > l.mark {
			s.mark(id, l)
		}
	}
	if s.meters != nil {
		s.meter(&s.packets.slab[id], number, takes)
	} else if s.controller != nil {
		s.collect(&s.packets.slab[id], w, number, wait)
	}
	l.free = s.now + work
	l.stats.Packets++
	l.stats.Bytes += uint64(size)
	at := l.free + l.delay
	if l.queue.empty() {
		s.calendar.scheduleArrival(l.arrival, at)
	}
	s.packets.push(&l.queue, id, w, s.following(w), at)
}

// carry puts a packet behind the others of a link, at whose end it arrives at a time, as transmit
// does without a call.
func (s *Simulation) carry(l *link, id int32, w way, at Time) {
	if l.queue.empty() {
		s.calendar.scheduleArrival(l.arrival, at)
	}
	s.packets.push(&l.queue, id, w, s.following(w), at)
}

// mark notes congestion in a packet, if its transport takes such notes.
func (s *Simulation) mark(id int32, l *link) {
	if e := &s.packets.slab[id]; e.flags&capable != 0 {
		e.flags |= marked
		l.stats.Marks++
	}
}

// unlucky is true of a tenth of the packets.
func (s *Simulation) unlucky() bool { return s.random.Uint64()%10 == 0 }

// refuse ends a packet for which a queue has no room. Lossless queues have none here, and take the
// packet by themselves: so others pay nothing for them.
func (s *Simulation) refuse(id int32, w way, number int32) {
	if s.lossless != nil {
		s.admit(id, w, number)
		return
	}
	s.drop(id, number)
}

// drop ends a packet that a link does not take.
func (s *Simulation) drop(id, number int32) {
	l := &s.links[number]
	if l.down {
		s.lose(id, number)
		return
	}
	l.stats.Drops++
	e := &s.packets.slab[id]
	s.totals.Dropped.add(e.size)
	s.gone(id, e)
}

// lose ends a packet because a link failed.
func (s *Simulation) lose(id, number int32) {
	s.links[number].stats.Drops++
	e := &s.packets.slab[id]
	s.totals.Lost.add(e.size)
	s.totals.LastLost = s.now
	s.gone(id, e)
}

// timer lets a timer expire.
func (s *Simulation) timer(id int32, e *event) {
	switch e.kind {
	case vanish:
		s.lose(e.flow, e.link)
		s.calendar.release(id)
	case retransmission:
		s.retransmissionTimer(id)
	case delayedAck:
		s.delayedAckTimer(id)
	case overtaken:
		s.rackTimer(id)
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
	case sent:
		s.served(e.link)
	case pausing:
		link, flow := e.link, e.flow
		s.calendar.release(id)
		s.pause(link, flow>>1, flow&1 != 0)
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
	e.kind, e.flow = k, flow
	s.calendar.schedule(id, when)
	return id
}
