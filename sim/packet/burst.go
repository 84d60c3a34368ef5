package packet

// burst is what Linux's receiver remembers beside the RFCs.
type burst struct {
	last  Time   // when a segment came
	hole  uint32 // segment that is missing
	count uint8  // acknowledgements that were sent for it at once
}

// duplicates is how many acknowledgements Linux sends for a hole at once, TCP_FASTRETRANS_THRESH.
const duplicates = 3

// paused has segments after a pause that is longer than the retransmission timeout acknowledged at
// once, as at the start: the sender begins again with one (tcp_event_data_recv).
func (s *Simulation) paused(f *subflow, r *receiver) {
	if s.now-r.burst.last > s.transport.MinRTO+f.minRTT {
		r.quick = 0
	}
	r.burst.last = s.now
}

// held says whether the acknowledgement of a segment beyond a hole waits for others. Of those
// beyond the third, one leaves in a millisecond, or in a twentieth of the round trip
// (tcp_comp_sack_delay_ns).
func (s *Simulation) held(number int32, f *subflow) bool {
	r := &f.receiver
	if len(r.blocks) == 0 {
		return false // the hole is filled
	}
	if r.burst.hole != r.next {
		r.burst.hole, r.burst.count = r.next, 0
	}
	if r.burst.count < duplicates {
		r.burst.count++
		return false
	}
	if r.expires == 0 {
		s.delay(number, r, min(Millisecond, f.srtt/20))
	}
	return true
}
