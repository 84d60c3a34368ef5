package packet

import "math"

// acknowledged takes an acknowledgement into account.
func (s *Simulation) acknowledged(id int32, e *packet) {
	number := e.flow
	f := &s.subflows[number]
	if f.state != open {
		return
	}
	before := f.delivered
	f.late, f.lateBy = false, 0
	flightBefore := f.flight
	ackedInOrder := e.seq - f.una
	advanced := int32(ackedInOrder) > 0
	if advanced {
		s.cumulative(f, e.seq)
	}
	s.selective(f, e, s.packets.sack[id][:e.sacks])
	newly := uint32(f.delivered - before)
	if newly > 0 {
		s.measured(f, s.now-e.sent)
	}
	if f.late && f.recovery && e.sent < f.resentAt {
		s.undo(f)
	}
	lostBefore := f.lostCount
	s.detectLoss(f)
	s.pathFeedback(f, e, newly)
	s.control(f, e, newly, flightBefore, advanced && f.lostCount <= lostBefore)
	if advanced {
		f.backoff = 0
		f.expires = never
		c := &s.connections[f.connection]
		if f.una == f.nxt && c.unassigned == 0 && s.finished(c) {
			s.close(c)
			return
		}
		if f.una != f.nxt {
			s.arm(number, f)
		}
	}
	if s.transport.Linux {
		s.armRack(number, f)
	}
	s.send(number, f)
}

// control lets congestion control answer: it reduces the window once per window of data, and lets
// it grow otherwise. An acknowledgement is safe if it moves forward and no further loss is seen.
func (s *Simulation) control(f *subflow, e *packet, newly uint32, flightBefore int32, safe bool) {
	if f.recovery && int32(f.una-f.recoverUntil) >= 0 {
		f.recovery = false
		if f.prr.on {
			f.prr.on = false
			f.window.cwnd = f.window.ssthresh
		}
	}
	if f.window.marks(s, f, e, newly) {
		return
	}
	if f.lostCount > 0 && !f.recovery {
		s.recover(e.flow, f, newly)
		return
	}
	if f.recovery && f.prr.on {
		f.prr.acknowledged(f, newly, safe)
		return
	}
	if newly > 0 && (!f.recovery || f.window.slowStart()) &&
		(f.waits || flightBefore >= f.window.allowed()-int32(newly)) {
		f.window.grow(s, f, newly)
	}
}

// recover begins a recovery: the window is reduced, and the first lost segment is sent at once (RFC
// 6675, section 5, step 4.3).
func (s *Simulation) recover(number int32, f *subflow, newly uint32) {
	f.recovery, f.recoverUntil = true, f.nxt
	f.lostFrom = f.una
	f.before, f.resentAt, f.resentFrom = f.window, s.now, f.order+1
	f.window.loss(s, f)
	f.prr = prr{on: true, window: float64(f.nxt - f.una), delivered: float64(newly)}
	s.resend(number, f)
}

// prr is proportional rate reduction (RFC 6937): in a recovery, as much is sent as arrives, reduced
// in the proportion of the windows, so that many losses at once make no burst. As in Linux, more is
// sent than arrives only while acknowledgements are safe.
type prr struct {
	on              bool
	window          float64 // segments sent and not acknowledged when the recovery began
	delivered, sent float64
}

// acknowledged sets the window to what may be sent now.
func (p *prr) acknowledged(f *subflow, newly uint32, safe bool) {
	w := &f.window
	p.delivered += float64(newly)
	flight, n := float64(f.flight), 0.0
	if flight > w.ssthresh {
		n = math.Ceil(p.delivered*w.ssthresh/p.window) - p.sent
	} else {
		n = max(p.delivered-p.sent, float64(newly))
		if safe {
			n++
		}
		n = min(w.ssthresh-flight, n)
	}
	w.cwnd = flight + max(n, 0)
}

// cumulative marks all below seq as arrived.
func (s *Simulation) cumulative(f *subflow, seq uint32) {
	for ; f.una != seq; f.una++ {
		b := f.at(f.una)
		if b.state&sacked == 0 {
			f.arrived(f.una, b)
		}
	}
	if int32(f.scan-f.una) < 0 {
		f.scan = f.una
	}
	if int32(f.lostFrom-f.una) < 0 {
		f.lostFrom = f.una
	}
}

// arrived counts one segment that is reported for the first time.
func (f *subflow) arrived(seq uint32, b *segment) {
	if b.state&inNetwork != 0 {
		f.flight--
	}
	if b.state&lost != 0 {
		f.lostCount--
	}
	if b.state&resent != 0 && int32(b.order-f.resentFrom) >= 0 {
		f.late = true
		f.lateBy = max(f.lateBy, int32(f.highestSack-seq))
	}
	if b.state&resent == 0 && int32(f.highestSack-seq) > 0 {
		f.reordering = min(max(f.reordering, f.highestSack-seq), maxReordering)
	}
	if int32(b.order-f.newest) > 0 {
		f.newest = b.order
	}
	f.delivered++
	b.state = b.state&^(inNetwork|lost) | sacked
}

// undo takes a reduction of the window back: a segment that was sent again was not lost, since the
// acknowledgement echoes a time before that (Eifel, RFC 3522 and 4015; Linux's undo by timestamps).
// Others that were marked with it count as under way again.
func (s *Simulation) undo(f *subflow) {
	f.reordering = min(max(f.reordering, uint32(f.lateBy)), maxReordering)
	f.window.undo(&f.before)
	s.uncouple(f)
	f.recovery, f.resentAt, f.prr.on = false, 0, false
	for seq := f.una; seq != f.nxt; seq++ {
		b := f.at(seq)
		if b.state&lost == 0 {
			continue
		}
		b.state &^= lost
		f.lostCount--
		b.state |= inNetwork
		f.flight++
	}
	f.scan = f.una
	s.totals.Undone++
}

// maxReordering is the default of Linux's net.ipv4.tcp_max_reordering.
const maxReordering = 300

// selective takes the ranges of an acknowledgement into account, and notes them.
func (s *Simulation) selective(f *subflow, e *packet, ranges []sackRange) {
	if len(ranges) == 0 && f.ranges == 0 {
		return
	}
	for _, r := range ranges {
		f.selective(e.seq+uint32(r.from), e.seq+uint32(r.to))
	}
	f.ranges = uint8(len(ranges))
	for i, r := range ranges {
		f.seen[i] = sackRange32{e.seq + uint32(r.from), e.seq + uint32(r.to)}
	}
}

// selective marks a range as arrived; what the last acknowledgement reported already is skipped.
func (f *subflow) selective(from, to uint32) {
	if int32(from-f.una) < 0 {
		from = f.una
	}
	if int32(to-f.nxt) > 0 || int32(to-from) <= 0 {
		return
	}
	for _, known := range f.seen[:f.ranges] {
		if known.to != known.from && int32(known.from-to) < 0 && int32(from-known.to) < 0 {
			if int32(known.from-from) > 0 {
				f.mark(from, known.from)
			}
			if int32(to-known.to) > 0 {
				f.mark(known.to, to)
			}
			return
		}
	}
	f.mark(from, to)
}

func (f *subflow) mark(from, to uint32) {
	for seq := from; seq != to; seq++ {
		if b := f.at(seq); b.state&sacked == 0 {
			f.arrived(seq, b)
			if int32(seq+1-f.highestSack) > 0 {
				f.highestSack = seq + 1
			}
		}
	}
}

// detectLoss marks segments as lost of which as many later transmissions arrived as reordering
// allows (RFC 6675, section 4, by order of transmission, so that the loss of a retransmission is
// found as well, RFC 8985).
func (s *Simulation) detectLoss(f *subflow) {
	s.loseOlder(f, f.newest-uint32(s.tolerated(f)))
}

// loseOlder marks segments as lost whose last transmission was none after a given one, in their
// order up to the first that was.
func (s *Simulation) loseOlder(f *subflow, last uint32) {
	for ; f.scan != f.nxt; f.scan++ {
		b := f.at(f.scan)
		if b.state&(sacked|resent|lost) != 0 {
			continue
		}
		if int32(b.order-last) > 0 {
			break
		}
		f.lose(f.scan, b)
		s.pathLost(f, b)
	}
	for ; f.resentHead < len(f.resentQueue); f.resentHead++ {
		r := f.resentQueue[f.resentHead]
		if int32(r.seq-f.una) < 0 {
			continue
		}
		b := f.at(r.seq)
		if b.state&(sacked|lost) != 0 || b.order != r.order {
			continue
		}
		if int32(b.order-last) > 0 {
			break
		}
		f.lose(r.seq, b)
		s.pathLost(f, b)
	}
	if f.resentHead == len(f.resentQueue) {
		f.resentQueue, f.resentHead = f.resentQueue[:0], 0
	}
}

func (f *subflow) lose(seq uint32, b *segment) {
	if b.state&inNetwork != 0 {
		f.flight--
	}
	b.state = b.state&^inNetwork | lost
	f.lostCount++
	if int32(seq-f.lostFrom) < 0 {
		f.lostFrom = seq
	}
}
