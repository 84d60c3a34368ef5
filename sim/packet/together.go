package packet

// The constants by which Linux sizes what it hands over at once (tcp_tso_autosize).
const (
	leastTogether  = 2     // segments
	mostTogether   = 65536 // bytes
	togetherRTT    = 512 * Microsecond
	togetherPerSec = 1024        // as much as is sent in this part of a second
	deferrals      = 3           // part of the window that never waits, tcp_tso_win_divisor
	promptly       = Millisecond // in which an acknowledgement is expected that is worth a wait
)

// together is how many new segments are sent at once, of those that the window allows; 0: they wait
// for the next acknowledgement. Linux hands over as many as the rate has in a millisecond, two at
// least, and lets fewer wait if it sent others just now and the next acknowledgement is about to
// come (tcp_tso_should_defer). So a segment that the window gained in a group of acknowledgements
// moves to a later group, and groups become smaller.
func (s *Simulation) together(f *subflow) int32 {
	allowed, full := f.window.allowed(), s.fullBurst(f)
	quota := allowed - f.flight
	switch {
	case quota >= full:
		return full
	case f.recovery, f.una == f.nxt, quota*deferrals >= allowed,
		s.now-f.lastSent > promptly,
		s.connections[f.connection].unassigned <= int64(s.transport.Payload),
		f.sentAt(f.una)+f.srtt-s.now > min(f.srtt/2, promptly):
		return quota
	}
	return 0
}

// fullBurst is how many segments are handed over at once: what is sent in a millisecond at the rate
// at which Linux would pace the flow, more where round trips are short.
func (s *Simulation) fullBurst(f *subflow) int32 {
	w, payload := &f.window, float64(s.transport.Payload)
	if f.srtt == 0 {
		return leastTogether
	}
	const slowStart, later = 2, 1.2
	ratio := later
	if w.cwnd < w.ssthresh/2 {
		ratio = slowStart
	}
	bytes := ratio * w.cwnd * payload / f.srtt.Seconds() / togetherPerSec
	bytes += float64(uint64(mostTogether) >> min(uint64(f.minRTT/togetherRTT), 63))
	return max(leastTogether, int32(min(bytes, mostTogether)/payload))
}

// sentAt is when a segment was sent last. It is known with Linux's rules alone.
func (f *subflow) sentAt(seq uint32) Time { return f.times[seq&uint32(len(f.times)-1)] }

// noteSent notes when a segment is sent.
func (f *subflow) noteSent(seq uint32, now Time) {
	if len(f.times) != len(f.board) {
		old := f.times
		f.times = make([]Time, len(f.board))
		for i := f.una; len(old) > 0 && i != f.nxt; i++ {
			f.times[i&uint32(len(f.times)-1)] = old[i&uint32(len(old)-1)]
		}
	}
	f.times[seq&uint32(len(f.times)-1)] = now
}
