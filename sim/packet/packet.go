package packet

// Flags of a packet.
const (
	capable     uint8 = 1 << iota // ECN-capable transport
	marked                        // congestion experienced
	echo                          // of an acknowledgement: a marked packet arrived
	retransmit                    // carries a segment that was sent before
	immediate                     // of an acknowledgement: not delayed
	switchPicks                   // each switch chooses the next hop
	hopped                        // left the host that sent it, of lossless queues
)

// packet is a packet under way: 32 bytes, half of a cache line. The links that it is on know when
// it arrives.
type packet struct {
	kind  kind
	flags uint8
	hop   uint8  // of ConWeave: switches that were passed
	sacks uint8  // of an acknowledgement: how many ranges it reports
	route int32  // first link in routes; of a packet that switches route, the destination
	flow  int32  // subflow, or source; of a free packet the next one
	size  int32  // bytes on the wire
	seq   uint32 // of data the segment, of an acknowledgement the first one missing
	// the path that a packet took or an acknowledgement speaks of, of schemes that need it; none
	via  int32
	sent Time // of data when it was sent; of an acknowledgement, echoed
}

// sackRange is segments that arrived beyond a gap, relative to the acknowledgement's seq.
type sackRange struct{ from, to uint16 }

// mostSacks is how many ranges an acknowledgement with timestamps has room for.
const mostSacks = 3

// packets are all packets under way, and those that can be used again.
type packets struct {
	slab []packet
	// of the packet with the same number
	queued []queued
	sack   [][mostSacks]sackRange
	free   int32
}

// take returns a packet that is not in use. Its fields are what its last user left.
func (p *packets) take() int32 {
	if id := p.free; id != none {
		p.free = p.slab[id].flow
		return id
	}
	p.slab = append(p.slab, packet{})
	p.queued = append(p.queued, queued{})
	p.sack = append(p.sack, [mostSacks]sackRange{})
	return int32(len(p.slab) - 1)
}

// release gives a packet back.
func (p *packets) release(id int32) {
	p.slab[id].flow = p.free
	p.free = id
}

// gone ends a packet.
func (s *Simulation) gone(id int32, e *packet) {
	s.inFlight.Packets--
	s.inFlight.Bytes -= uint64(e.size)
	if s.controller != nil {
		s.controller.forget(e)
	}
	if e.kind != datagram {
		s.ended(e.flow)
	}
	s.packets.release(id)
}

// newPacket makes a packet that has not been sent. It may move when another is made.
func (s *Simulation) newPacket(k kind, flow, size int32) (int32, *packet) {
	id := s.packets.take()
	e := &s.packets.slab[id]
	e.kind, e.flags, e.hop, e.sacks, e.flow, e.size, e.sent = k, 0, 0, 0, flow, size, s.now
	e.via = none
	s.totals.Sent.add(size)
	s.inFlight.add(size)
	return id, e
}

// answer makes a packet without data that the receiver of a subflow sends. One that takes no link
// is gone as soon as it is sent, and the next one can use it again.
func (s *Simulation) answer(k kind, number int32, f *subflow) (int32, *packet) {
	if !s.transport.FreeAcks {
		f.packets++
		return s.newPacket(k, number, s.transport.AckSize)
	}
	s.totals.Sent.add(s.transport.AckSize)
	s.totals.Delivered.add(s.transport.AckSize)
	e := &s.packets.slab[s.freeAck]
	e.kind, e.flags, e.hop, e.sacks, e.flow, e.sent = k, 0, 0, 0, number, s.now
	e.size, e.via = s.transport.AckSize, none
	return s.freeAck, e
}

// launch puts a packet onto its route.
func (s *Simulation) launch(id int32, e *packet, route int32) {
	e.route = route
	s.transmit(id, s.wayOf(way(route), e.size), s.routes[route])
}

// deliver gives a packet to the host that it arrived at.
func (s *Simulation) deliver(id int32, e *packet) {
	s.totals.Delivered.add(e.size)
	switch e.kind {
	case data:
		s.receive(e)
	case acknowledgement:
		s.acknowledged(id, e)
	case syn:
		s.accept(e)
	case synAck:
		s.established(e.flow, s.now-e.sent)
	case datagram:
		s.arrived(e)
	}
	// The slab may have moved.
	s.gone(id, &s.packets.slab[id])
}
