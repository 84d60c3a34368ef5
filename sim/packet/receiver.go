package packet

// receiver is the other end of a subflow.
type receiver struct {
	next    uint32        // the first segment missing
	blocks  []sackRange32 // what arrived beyond, the most recent first
	pending uint16        // segments that wait for a delayed acknowledgement
	total   uint32        // segments that arrived, without duplicates
	beyond  uint32        // the segment after the highest that arrived
	ce      bool          // whether the last data packet was marked
	timer   int32         // event; none
	expires Time          // when the delayed acknowledgement is due; 0: none is
	echo    Time          // when the packet was sent that the acknowledgement echoes
	// that the last data packet took, of schemes whose sources choose by packet
	path  int32
	quick uint16 // segments acknowledged at once at the start
	burst burst  // as Linux counts
}

// take notes a segment. It reports whether it is new, and whether it came in order with nothing
// missing before or after.
func (r *receiver) take(seq uint32) (fresh, inOrder bool) {
	switch {
	case int32(seq-r.next) < 0:
		return false, false
	case seq == r.next:
		r.next++
		inOrder = len(r.blocks) == 0
		for i, b := range r.blocks {
			if b.from == r.next {
				r.next = b.to
				r.blocks = append(r.blocks[:i], r.blocks[i+1:]...)
				break
			}
		}
		r.total++
		return true, inOrder
	}
	merged := sackRange32{seq, seq + 1}
	keep := r.blocks[:0]
	for i, b := range r.blocks {
		switch {
		case int32(seq-b.from) >= 0 && int32(seq-b.to) < 0:
			copy(r.blocks[1:i+1], r.blocks[:i])
			r.blocks[0] = b
			return false, false
		case b.to == seq:
			merged.from = b.from
		case b.from == seq+1:
			merged.to = b.to
		default:
			keep = append(keep, b)
		}
	}
	r.blocks = append(keep, sackRange32{})
	copy(r.blocks[1:], r.blocks[:len(r.blocks)-1])
	r.blocks[0] = merged
	r.total++
	return true, false
}

// order counts a segment that was overtaken.
func (s *Simulation) order(r *receiver, e *packet) {
	if int32(e.seq-r.beyond) >= 0 {
		r.beyond = e.seq + 1
	} else if e.flags&retransmit == 0 {
		s.totals.Reordered++
	}
}

// receive takes a data packet and answers it.
func (s *Simulation) receive(e *packet) {
	number := e.flow
	f := &s.subflows[number]
	if f.state == closed {
		return
	}
	r := &f.receiver
	if s.transport.Linux {
		s.paused(f, r)
	}
	s.order(r, e)
	fresh, inOrder := r.take(e.seq)
	if fresh {
		c := &s.connections[f.connection]
		c.delivered += int64(s.payload(f, e.seq))
		if c.delivered == c.size && c.finish == 0 {
			c.finish = s.now
			s.complete(f.connection)
		}
	}
	if !fresh && s.paths.Scheme == PRR && e.via != r.path {
		s.duplicated(f)
	}
	r.path = e.via
	ce := e.flags&marked != 0
	if ce != r.ce && r.pending > 0 {
		// RFC 8257, section 3.2: an acknowledgement speaks of packets that were all marked, or all
		// not.
		s.acknowledge(number, f)
	}
	r.ce = ce
	if r.pending == 0 {
		r.echo = e.sent
	}
	r.pending++
	at := s.transport.DelayedAck
	if !fresh || !inOrder || at == 0 || r.pending >= 2 || r.quick < s.transport.QuickAcks {
		if r.quick < s.transport.QuickAcks {
			r.quick++
		}
		if !inOrder {
			r.echo = e.sent
			if fresh && s.transport.Linux && s.held(number, f) {
				return
			}
		}
		s.acknowledge(number, f)
		return
	}
	s.delay(number, r, at)
}

// delay plans an acknowledgement.
func (s *Simulation) delay(number int32, r *receiver, by Time) {
	r.expires = s.now + by
	if r.timer != none && s.calendar.slab[r.timer].at > r.expires {
		s.calendar.slab[r.timer].flow = none
		r.timer = none
	}
	if r.timer == none {
		r.timer = s.at(delayedAck, number, r.expires)
	}
}

// acknowledge sends an acknowledgement.
func (s *Simulation) acknowledge(number int32, f *subflow) {
	r := &f.receiver
	id, e := s.answer(acknowledgement, number, f)
	e.seq, e.sent = r.next, r.echo
	e.via = r.path
	if r.ce {
		e.flags |= echo
	}
	for i := 0; i < len(r.blocks) && i < mostSacks; i++ {
		b := r.blocks[i]
		if b.to-r.next > 0xffff {
			continue
		}
		s.packets.sack[id][e.sacks] = sackRange{uint16(b.from - r.next), uint16(b.to - r.next)}
		e.sacks++
	}
	r.pending, r.expires = 0, 0
	s.sendBackward(id, e, f)
}

// delayedAckTimer sends an acknowledgement that no second segment hastened.
func (s *Simulation) delayedAckTimer(id int32) {
	number := s.calendar.slab[id].flow
	if number == none {
		s.calendar.release(id) // an earlier one was planned
		return
	}
	f := &s.subflows[number]
	r := &f.receiver
	if r.expires > s.now && f.state != closed {
		s.calendar.schedule(id, r.expires)
		return
	}
	due := r.expires != 0 && f.state != closed
	r.timer = none
	s.calendar.release(id)
	if due {
		s.acknowledge(number, f)
	}
	s.recycle(number)
}
