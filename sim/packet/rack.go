package packet

// rack finds losses by time, beside counting (RFC 8985; Linux's tcp_recovery.c): what was sent
// before a segment that arrived is lost when a quarter of the least round trip has passed since. So
// the loss of one of the last segments, which too few follow, needs no retransmission timeout.
type rack struct {
	timer  int32  // event; none
	before uint32 // transmissions before this one are lost when it expires
}

// timerSlack is what Linux adds to the time, TCP_TIMEOUT_MIN_US.
const timerSlack = 2 * Millisecond

// tolerated is how many later transmissions may arrive before a segment counts as lost. By time,
// that is none once a loss is certain, as long as no segment was seen to arrive late.
func (s *Simulation) tolerated(f *subflow) int32 {
	if s.transport.Linux && f.reordering == s.transport.Reordering &&
		(f.recovery || f.nxt-f.una-uint32(f.flight+f.lostCount) >= f.reordering) {
		return 1
	}
	return int32(f.reordering)
}

// hasOvertaken says whether a segment that is under way was sent before one that arrived.
func (f *subflow) hasOvertaken() bool {
	if f.scan != f.nxt && int32(f.newest-f.at(f.scan).order) > 0 {
		return true
	}
	return f.resentHead < len(f.resentQueue) &&
		int32(f.newest-f.resentQueue[f.resentHead].order) > 0
}

// armRack plans the time at which what was overtaken is lost.
func (s *Simulation) armRack(number int32, f *subflow) {
	if f.rack.timer == none && f.hasOvertaken() {
		f.rack.before = f.newest
		f.rack.timer = s.at(overtaken, number, s.now+min(f.minRTT/4, f.srtt)+timerSlack)
	}
}

// rackTimer takes what was overtaken as lost.
func (s *Simulation) rackTimer(id int32) {
	number := s.calendar.slab[id].flow
	s.calendar.release(id)
	if number == none {
		return // the subflow has ended
	}
	f := &s.subflows[number]
	f.rack.timer = none
	if f.state != open {
		return
	}
	s.loseOlder(f, f.rack.before-1)
	switch {
	case f.lostCount > 0 && !f.recovery:
		s.recover(number, f, 0)
	case f.lostCount > 0 && f.prr.on:
		f.prr.acknowledged(f, 0, false)
	}
	s.armRack(number, f)
	s.send(number, f)
}
