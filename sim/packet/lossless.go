package packet

import (
	"fmt"
	"math"

	"sextant/te/topology"
)

// Lossless lets nodes that forward pause their senders before a buffer is full (priority flow
// control, IEEE 802.1Qbb), with all packets in one class. Each port has a buffer for what came in
// by it and has not left the node. When less than a full frame fits below XOFF, the port sends a
// pause frame, and when no more than XON is left another one that ends the pause. A frame waits
// for the packet that is being sent, takes the link like other packets, and goes ahead of those
// that wait; the sender finishes the packet that it is sending. A pause lasts until it is ended:
// what refreshes it takes no bandwidth here.
type Lossless struct {
	XOFF, XON int // bytes
	// Headroom is the bytes beyond XOFF for what arrives until the sender has stopped; below 0:
	// as many as can arrive (see headroom).
	Headroom int
	Frame    int // bytes of the longest packet
}

// pauseFrame is the bytes that a pause frame takes on a link, the shortest that Ethernet has.
const pauseFrame = 64

// lossless is the state of a run.
type lossless struct {
	Lossless
	ports   []port  // by link
	came    []int32 // the link by which a packet came, of those that have the flag hopped
	victims map[uint64]struct{}
}

// port is both ends of a link: the queue before it, and the buffer behind it.
type port struct {
	// The sender.
	waiting fifo  // with the times since when
	first   Time  // since when the first of them waits
	backlog int64 // bytes that wait
	busy    Time  // until when a packet or pause frames take the link
	event   int32 // that ends it
	sending bool  // the event is planned
	from    int32 // of the packet that is being sent: the link by which it came
	size    int32 // and its bytes; 0: none is
	paused  bool
	since   Time // when the pause began
	ended   Time // when the last one ended
	stats   PauseStats

	// The receiver.
	held   int64 // bytes that came by this link and have not left the node
	room   int64 // what it admits
	asked  bool  // the last frame that it sent asks for a pause
	frames int32 // pause frames that are under way
	age    int32 // counts failures of the way back, which frames do not outlive
}

// PauseStats count what pauses did to a link.
type PauseStats struct {
	Pauses uint64 // that reached the sender
	Paused Time   // how long they lasted together
	// Packets that a pause delayed although the link that they were to take next had no queue, when
	// they left: head-of-line blocking.
	Victims uint64
	Peak    int64 // the most bytes in the buffer behind the link
}

// headroom is how many bytes can arrive by a link between the time at which its receiver decides to
// pause it and the last one: those that are on their way, those that leave until the pause frame
// arrives, which waits for a packet that has just begun, and one packet that has just begun then.
func (n *Network) headroom(link int32, frame int) int64 {
	l, back := &n.links[link], &n.links[n.reverse(link)]
	wait := Time(int64(frame+pauseFrame) * back.perByte >> fraction)
	travels := float64(l.delay + back.delay + wait)
	return int64(math.Ceil(travels/float64(Second)*l.rate())) + int64(frame)
}

// reverse is the link in the other direction; none if there is none.
func (n *Network) reverse(link int32) int32 {
	if e := n.Graph.Reverse(edgeOf(link)); e != topology.NoEdge {
		return int32(e)
	}
	return none
}

// checkLossless says what is wrong with the settings of lossless queues.
func (n *Network) checkLossless() error {
	c := n.lossless
	if c == nil {
		return nil
	}
	if c.Frame < 1 || c.XON < 0 || c.XON >= c.XOFF || c.XOFF < c.Frame {
		return fmt.Errorf("lossless queues: XON %d must be below XOFF %d, and that hold a frame "+
			"of %d bytes", c.XON, c.XOFF, c.Frame)
	}
	for l := range n.links {
		if n.reverse(int32(l)) == none {
			e := n.Graph.Edge(edgeOf(int32(l)))
			return fmt.Errorf("lossless queues: the link from %s to %s has none in the other "+
				"direction, over which it could be paused", n.Graph.Node(e.From).Name,
				n.Graph.Node(e.To).Name)
		}
	}
	return nil
}

func (s *Simulation) prepareLossless() {
	c := s.network.lossless
	if c == nil {
		return
	}
	k := &lossless{Lossless: *c, ports: make([]port, len(s.links)),
		victims: map[uint64]struct{}{}}
	for i := range k.ports {
		p := &k.ports[i]
		p.event = s.calendar.take()
		s.calendar.slab[p.event] = event{kind: sent, link: int32(i)}
		p.from, p.waiting = none, empty()
		s.links[i].limit, s.links[i].least = -1, -1
		if p.room = int64(c.XOFF + c.Headroom); c.Headroom < 0 {
			p.room = int64(c.XOFF) + s.network.headroom(int32(i), c.Frame)
		}
	}
	s.lossless = k
}

// Pauses is what pauses did to a link so far.
func (s *Simulation) Pauses(link int) (stats PauseStats) {
	if s.lossless == nil {
		return stats
	}
	p := &s.lossless.ports[link]
	stats = p.stats
	if p.paused {
		stats.Paused += s.now - p.since
	}
	return stats
}

// VictimFlows is how many flows had packets that PauseStats.Victims counts.
func (s *Simulation) VictimFlows() int {
	if s.lossless == nil {
		return 0
	}
	return len(s.lossless.victims)
}

// work is how long a link needs for what waits before it, if it is not paused.
func (s *Simulation) work(number int32) Time {
	l := &s.links[number]
	if s.lossless == nil {
		return max(l.free-s.now, 0)
	}
	p := &s.lossless.ports[number]
	return max(p.busy-s.now, 0) + Time(p.backlog*l.perByte>>fraction)
}

// cameBy is the link by which a packet came to the node where it is; none: the node sends it.
func (k *lossless) cameBy(id int32, e *packet) int32 {
	if e.flags&hopped == 0 {
		return none
	}
	return k.came[id]
}

// admit is transmit where queues are lossless.
func (s *Simulation) admit(id int32, w way, number int32) {
	k, l, e := s.lossless, &s.links[number], &s.packets.slab[id]
	wait, size, limit := s.work(number), e.size, s.network.links[number].limit
	takes := Time(int64(size) * l.perByte >> fraction)
	from := k.cameBy(id, e)
	switch {
	case l.down,
		from == none && (wait+takes > limit || wait > l.patient),
		from != none && k.ports[from].held+int64(size) > k.ports[from].room:
		s.drop(id, number)
		return
	}
	if wait+takes > l.mark {
		s.mark(id, l)
	}
	if s.meters != nil {
		s.meter(e, number, takes)
	} else if s.controller != nil {
		s.collect(e, w, number, wait)
	}
	l.stats.Packets++
	l.stats.Bytes += uint64(size)
	p := &k.ports[number]
	if p.waiting.empty() {
		p.first = s.now
	}
	s.packets.push(&p.waiting, id, w, none, s.now)
	p.backlog += int64(size)
	if from != none {
		in := &k.ports[from]
		in.held += int64(size)
		in.stats.Peak = max(in.stats.Peak, in.held)
		s.full(from)
	}
	s.serve(number)
}

// serve begins to send the next packet over a link, if it may.
func (s *Simulation) serve(number int32) {
	k, l := s.lossless, &s.links[number]
	p := &k.ports[number]
	switch {
	case p.sending:
		return
	case p.busy > s.now: // with pause frames
		p.sending = true
		s.calendar.schedule(p.event, p.busy)
		return
	case p.paused || p.waiting.empty():
		return
	}
	id, q := s.packets.pop(&p.waiting)
	e, since := &s.packets.slab[id], p.first
	p.first = q.nextAt
	if since < p.ended && s.idleAfter(q.way, e, l.to) {
		p.stats.Victims++
		k.victims[s.flowOf(e)] = struct{}{}
	}
	p.from, p.size = k.cameBy(id, e), e.size
	p.backlog -= int64(e.size)
	p.busy, p.sending = s.now+Time(int64(e.size)*l.perByte>>fraction), true
	s.calendar.schedule(p.event, p.busy)
	e.flags |= hopped
	for int(id) >= len(k.came) {
		k.came = append(k.came, none)
	}
	k.came[id] = number
	s.carry(l, id, q.way, p.busy+l.delay)
}

// served ends the sending of a packet or of pause frames.
func (s *Simulation) served(number int32) {
	p := &s.lossless.ports[number]
	p.sending = false
	if p.size > 0 {
		from, size := p.from, p.size
		p.from, p.size = none, 0
		s.left(from, size)
	}
	s.serve(number)
}

// left takes bytes out of the buffer behind a link.
func (s *Simulation) left(from, size int32) {
	if from == none {
		return
	}
	p := &s.lossless.ports[from]
	p.held -= int64(size)
	if p.asked && p.held <= int64(s.lossless.XON) {
		s.ask(from, false)
	}
}

// full asks for a pause of a link if less than a frame fits the buffer behind it.
func (s *Simulation) full(link int32) {
	k := s.lossless
	if p := &k.ports[link]; !p.asked && p.held+int64(k.Frame) > int64(k.XOFF) {
		s.ask(link, true)
	}
}

// ask sends a pause frame against the direction of a link, to begin a pause or to end it.
func (s *Simulation) ask(link int32, pause bool) {
	back := s.network.reverse(link)
	if s.links[back].down {
		return
	}
	p, r := &s.lossless.ports[link], &s.lossless.ports[back]
	p.asked = pause
	r.busy = max(s.now, r.busy) + Time(pauseFrame*s.links[back].perByte>>fraction)
	id := s.at(pausing, p.age<<1, r.busy+s.links[back].delay)
	e := &s.calendar.slab[id]
	e.link = link
	if pause {
		e.flow |= 1
	}
	p.frames++
	s.serve(back)
}

// pause lets a pause frame reach the sender of a link.
func (s *Simulation) pause(link int32, age int32, begins bool) {
	p := &s.lossless.ports[link]
	if age != p.age {
		return // it was lost with the way back
	}
	p.frames--
	switch {
	case begins && !p.paused:
		p.paused, p.since = true, s.now
		p.stats.Pauses++
	case !begins && p.paused:
		s.unpause(link)
	}
}

// unpause ends a pause.
func (s *Simulation) unpause(link int32) {
	p := &s.lossless.ports[link]
	p.paused, p.ended = false, s.now
	p.stats.Paused += s.now - p.since
	s.serve(link)
}

// altered lets pauses follow the failure or return of a link. Without a way back no frame comes, so
// that a pause ends, as it does when nothing refreshes it.
func (s *Simulation) altered(number int32) {
	k := s.lossless
	other := s.network.reverse(number)
	p := &k.ports[other]
	if !s.links[number].down {
		s.full(other)
		return
	}
	p.age++
	p.frames, p.asked = 0, false
	if p.paused {
		s.unpause(other)
	}
	w := &k.ports[number]
	for !w.waiting.empty() {
		id, _ := s.packets.pop(&w.waiting)
		e := &s.packets.slab[id]
		from, size := k.cameBy(id, e), e.size
		w.backlog -= int64(size)
		s.lose(id, number)
		s.left(from, size)
	}
}

// flowOf tells the flows of packets apart.
func (s *Simulation) flowOf(e *packet) uint64 {
	if e.kind == datagram {
		return uint64(e.flow)
	}
	return s.connections[s.subflows[e.flow].connection].label | 1<<63
}

// idleAfter says whether a link that a packet may take from a node, if it ends there none, has no
// queue.
func (s *Simulation) idleAfter(w way, e *packet, v Node) bool {
	n := s.network
	switch {
	case w.place() != chosen:
		following := s.routes[w.place()+1]
		return following != none && s.idle(following)
	case v == e.route:
		return false
	case v == n.entry[e.route]:
		return s.idle(n.access(e.route))
	case n.entry[v] != v:
		return s.idle(n.out[v][0])
	}
	for _, l := range s.routing.next(v, n.entry[e.route]) {
		if s.idle(l) {
			return true
		}
	}
	return false
}

func (s *Simulation) idle(link int32) bool {
	p := &s.lossless.ports[link]
	return p.backlog == 0 && !p.paused && !s.links[link].down
}
