package packet

// hystart ends the slow start of CUBIC when the window is near what the path holds (Ha and Rhee,
// "Taming the elephants", 2011), as Linux does.
type hystart struct {
	found    bool
	begin    Time   // of the round
	end      uint32 // the segment that ends the round
	last     Time   // when the last acknowledgement of the train came
	shortest Time   // round trip of this round
	least    Time   // round trip of data; with Linux's rules the handshake's does not count
	samples  uint8  // round trips that were measured in this round, few at most
}

// The constants of Linux.
const (
	hystartLow     = 16 // window from which on it looks
	hystartSpacing = 2 * Millisecond
	hystartSamples = 8
	hystartLeast   = 4 * Millisecond // by which round trips must be longer than the shortest
	hystartMost    = 16 * Millisecond
	hystartSuper   = 4 * 65536 // bytes that a host may send together, four times
	hystartHost    = Millisecond
)

// leaveSlowStart looks at an acknowledgement: slow start ends when those of a round that follow
// each other closely take half of the shortest round trip, or when the round trips of a round are
// longer than the shortest by an eighth, and at least hystartLeast. As in Linux, the time that a
// host needs for what it sends together is not the path's, and a round begins behind the
// acknowledgement of the last one's last segment: between both may be a pause. The shortest round
// trip is that of data: a handshake may have found empty what data finds full.
func (w *window) leaveSlowStart(s *Simulation, f *subflow) {
	h := &w.hystart
	behind := int32(0)
	if s.transport.Linux {
		behind = 1
	}
	if int32(f.una-h.end) >= behind {
		*h = hystart{found: h.found, begin: s.now, last: s.now, end: f.nxt, shortest: never,
			least: h.least}
	}
	least := f.minRTT
	if s.transport.Linux {
		if h.least == 0 || f.latest < h.least {
			h.least = f.latest
		}
		least = h.least
	}
	if h.found || w.cwnd < hystartLow {
		return
	}
	if s.now-h.last <= hystartSpacing {
		h.last = s.now
		h.found = s.now-h.begin > (least+w.hostDelay(s, f))/2
	}
	h.shortest = min(h.shortest, f.latest)
	if h.samples < hystartSamples {
		h.samples++
	} else if h.shortest > least+min(max(least/8, hystartLeast), hystartMost) {
		h.found = true
	}
	if h.found {
		w.ssthresh = w.cwnd
	}
}

// hostDelay is the time for four of the largest packets that Linux hands over at once, at the rate
// of slow start: two windows in a round trip.
func (w *window) hostDelay(s *Simulation, f *subflow) Time {
	if !s.transport.Linux {
		return 0
	}
	bytes := 2 * w.cwnd * float64(s.transport.Payload)
	return min(hystartHost, Time(hystartSuper/bytes*float64(f.srtt)))
}
