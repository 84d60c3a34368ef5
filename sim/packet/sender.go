package packet

// segment is what a sender knows of one segment in its window.
type segment struct {
	order uint32 // of its last transmission, counted over the subflow
	state segmentState
	path  uint8 // of its last transmission, of REPS
}

type segmentState uint8

const (
	inNetwork segmentState = 1 << iota // believed to be under way
	sacked                             // reported by selective acknowledgement
	lost                               // believed to be lost, and not sent again yet
	resent                             // sent more than once
)

// subflow is one TCP connection, or one of several of an MPTCP connection. Sequence numbers count
// segments.
type subflow struct {
	connection int32
	state      subflowState
	packets    int32 // of this subflow that are under way
	path       pathState

	// The sender.
	// the first segment that is not acknowledged, and the first that was not sent
	una, nxt     uint32
	short        uint32 // the segment that carries the connection's last bytes
	board        []segment
	flight       int32 // segments believed to be under way
	lostCount    int32 // segments marked lost
	lostFrom     uint32
	scan         uint32 // no first transmission below is to be looked at for loss
	order        uint32 // of the last transmission
	newest       uint32 // highest order of those that arrived
	highestSack  uint32 // first segment above all that were reported
	reordering   uint32 // how many transmissions later ones may arrive earlier
	recovery     bool
	waits        bool // segments that the window allows wait for an acknowledgement
	recoverUntil uint32
	late         bool   // the acknowledgement is for a segment that was sent more than once
	resentFrom   uint32 // first transmission of the recovery
	resentAt     Time   // when the first segment of the recovery was sent again
	lateBy       int32  // by how many segments, at most
	prr          prr
	before       window // as it was when the recovery began
	resentQueue  []resentSegment
	resentHead   int
	seen         [mostSacks]sackRange32 // ranges of the last acknowledgement
	ranges       uint8                  // how many

	window    window
	latest    Time // round trip
	srtt      Time
	rttvar    Time
	rto       Time
	backoff   uint8
	timer     int32 // event; none
	expires   Time
	lastSent  Time
	minRTT    Time
	receiver  receiver
	rack      rack
	delivered uint64 // segments acknowledged
	times     []Time // when the board's segments were sent last, with Linux's rules
}

type resentSegment struct{ seq, order uint32 }

type sackRange32 struct{ from, to uint32 }

type subflowState uint8

const (
	idle subflowState = iota
	opening
	open
	closed
)

const noSegment = ^uint32(0)

// at is the segment's entry of the board.
func (f *subflow) at(seq uint32) *segment { return &f.board[seq&uint32(len(f.board)-1)] }

// reset makes a subflow ready for a connection; slices are kept.
func (f *subflow) reset(c int32, t *Transport) {
	board, times, queue := f.board, f.times, f.resentQueue[:0]
	blocks := f.receiver.blocks[:0]
	*f = subflow{connection: c, board: board, times: times, resentQueue: queue, short: noSegment,
		reordering: t.Reordering,
		rto:        t.InitialRTO, timer: none, minRTT: never}
	f.receiver.blocks = blocks
	f.receiver.timer, f.rack.timer = none, none
	f.path.table, f.path.choice, f.path.color = none, none, none
	f.window.reset(t)
	if len(f.board) == 0 {
		f.board = make([]segment, 16)
	}
}

// grow doubles the board when the window does not fit it.
func (f *subflow) grow() {
	old := f.board
	f.board = make([]segment, 2*len(old))
	for seq := f.una; seq != f.nxt; seq++ {
		*f.at(seq) = old[seq&uint32(len(old)-1)]
	}
}

// open begins the handshake of a subflow.
func (s *Simulation) open(number int32) {
	f := &s.subflows[number]
	f.state = opening
	s.route(number, f)
	s.sendSYN(number, f)
}

func (s *Simulation) sendSYN(number int32, f *subflow) {
	f.packets++
	f.lastSent = s.now
	s.arm(number, f)
	id, e := s.newPacket(syn, number, s.transport.AckSize)
	s.sendForward(id, e, f)
}

// accept answers a SYN.
func (s *Simulation) accept(e *packet) {
	number, sent := e.flow, e.sent
	f := &s.subflows[number]
	if f.state == closed {
		return
	}
	id, answer := s.answer(synAck, number, f)
	answer.sent = sent
	s.sendBackward(id, answer, f)
}

// established ends the handshake: data follows, and with MPTCP the other subflows.
func (s *Simulation) established(number int32, rtt Time) {
	f := &s.subflows[number]
	if f.state != opening {
		return
	}
	f.state = open
	f.backoff = 0
	s.measured(f, rtt)
	f.expires = never
	c := &s.connections[f.connection]
	if c.subflows[0] == number {
		for _, other := range c.subflows[1:] {
			s.open(other)
		}
	}
	s.send(number, &s.subflows[number])
}

// measured takes a round-trip time into account (RFC 6298, with Linux's floor under the variation).
func (s *Simulation) measured(f *subflow, rtt Time) {
	f.latest = rtt
	f.minRTT = min(f.minRTT, rtt)
	if f.srtt == 0 {
		f.srtt, f.rttvar = rtt, rtt/2
	} else {
		f.rttvar += (max(f.srtt-rtt, rtt-f.srtt) - f.rttvar) / 4
		f.srtt += (rtt - f.srtt) / 8
	}
	f.rto = f.srtt + max(4*f.rttvar, s.transport.MinRTO)
}

// send sends what the window allows: lost segments first, then new ones.
func (s *Simulation) send(number int32, f *subflow) {
	if f.state != open {
		return
	}
	left := int32(0) // of the segments that are sent at once
	f.waits = false
	for f.flight < f.window.allowed() {
		if f.lostCount > 0 {
			s.resend(number, f)
			continue
		}
		if s.transport.Linux && left == 0 {
			if left = s.together(f); left == 0 {
				f.waits = true
				break
			}
		}
		if f.nxt-f.una >= s.transport.MaxWindow || !s.sendNew(number, f) {
			break
		}
		left--
	}
	if f.una != f.nxt && f.expires == never {
		s.arm(number, f)
	}
}

// sendNew sends the next segment, if there is data.
func (s *Simulation) sendNew(number int32, f *subflow) bool {
	c := &s.connections[f.connection]
	if c.unassigned == 0 {
		return false
	}
	payload := min(c.unassigned, int64(s.transport.Payload))
	c.unassigned -= payload
	if payload < int64(s.transport.Payload) {
		f.short = f.nxt
	}
	if int(f.nxt-f.una) == len(f.board) {
		f.grow()
	}
	seq := f.nxt
	f.nxt++
	*f.at(seq) = segment{}
	s.sendSegment(number, f, seq, 0)
	return true
}

// payload is how many bytes of data a segment carries.
func (s *Simulation) payload(f *subflow, seq uint32) int32 {
	if seq == f.short {
		c := &s.connections[f.connection]
		return int32(c.size % int64(s.transport.Payload))
	}
	return s.transport.Payload
}

// resend sends the first lost segment again.
func (s *Simulation) resend(number int32, f *subflow) {
	seq := f.lostFrom
	for f.at(seq).state&lost == 0 {
		seq++
	}
	f.lostFrom = seq + 1
	b := f.at(seq)
	b.state = b.state&^lost | resent
	f.lostCount--
	f.resentQueue = append(f.resentQueue, resentSegment{seq, f.order + 1})
	s.sendSegment(number, f, seq, retransmit)
	s.connections[f.connection].retransmissions++
	s.totals.Retransmissions++
}

func (s *Simulation) sendSegment(number int32, f *subflow, seq uint32, flags uint8) {
	b := f.at(seq)
	f.order++
	b.order = f.order
	b.state |= inNetwork
	f.flight++
	f.prr.sent++
	id, e := s.newPacket(data, number, s.payload(f, seq)+s.transport.Header)
	f.packets++
	e.seq = seq
	e.flags = flags
	if s.transport.ECN {
		e.flags |= capable
	}
	f.lastSent = s.now
	if s.transport.Linux {
		f.noteSent(seq, s.now)
	}
	s.sendForward(id, e, f)
	b.path = uint8(f.path.choice)
}

// maxRTO is Linux's TCP_RTO_MAX.
const maxRTO = 120 * Second

// arm starts the retransmission timer. The event that waits is not moved: when it comes too early,
// it waits again.
func (s *Simulation) arm(number int32, f *subflow) {
	f.expires = s.now + min(f.rto<<min(f.backoff, 16), maxRTO)
	if f.timer == none {
		f.timer = s.at(retransmission, number, f.expires)
	} else if s.calendar.slab[f.timer].at > f.expires {
		s.calendar.slab[f.timer].flow = none // it will find no subflow
		f.timer = s.at(retransmission, number, f.expires)
	}
}

// retransmissionTimer is RFC 6298, section 5, and RFC 6675, section 5.1: all that was not reported
// is lost.
func (s *Simulation) retransmissionTimer(id int32) {
	number := s.calendar.slab[id].flow
	if number == none {
		s.calendar.release(id)
		return
	}
	f := &s.subflows[number]
	if f.state == closed || f.expires == never {
		f.timer = none
		s.calendar.release(id)
		s.recycle(number)
		return
	}
	if f.expires > s.now {
		s.calendar.schedule(id, f.expires)
		return
	}
	f.timer = none
	s.calendar.release(id)
	f.backoff++
	s.connections[f.connection].timeouts++
	s.totals.Timeouts++
	s.pathTimeout(f)
	if f.state == opening {
		s.sendSYN(number, f)
		return
	}
	for seq := f.una; seq != f.nxt; seq++ {
		if b := f.at(seq); b.state&(sacked|lost) == 0 {
			b.state = b.state&^inNetwork | lost
			f.lostCount++
			s.pathLost(f, b)
		}
	}
	if !f.recovery {
		f.before, f.resentAt, f.resentFrom = f.window, s.now, f.order+1
	}
	f.window.timeout(s, f)
	f.flight, f.lostFrom, f.scan = 0, f.una, f.nxt
	f.resentQueue, f.resentHead = f.resentQueue[:0], 0
	f.recovery, f.recoverUntil, f.prr.on = true, f.nxt, false
	f.expires = never
	if s.paths.Scheme == REPS && f.path.cache.untried(s.cachedPaths(f)) {
		f.backoff = 0 // what is sent now takes another path
	}
	s.send(number, f)
}
