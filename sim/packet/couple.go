package packet

// uncouple lets alpha be computed again, because a window was reduced or a subflow began.
func (s *Simulation) uncouple(f *subflow) { s.connections[f.connection].coupled = false }

// growLIA lets a window grow for n segments (RFC 6356, section 3). As the RFC suggests, alpha is
// not computed for every acknowledgement, but when the window has grown to another number of
// segments.
func (s *Simulation) growLIA(f *subflow, n float64) {
	c := &s.connections[f.connection]
	if !c.coupled {
		c.alpha, c.total = s.alphaLIA(c)
		c.coupled = true
	}
	w := &f.window
	before := int32(w.cwnd)
	step := n * min(c.alpha/c.total, 1/w.cwnd)
	w.cwnd += step
	c.total += step
	c.coupled = int32(w.cwnd) == before
}

// alphaLIA is the aggressiveness of a connection, with windows in segments, and the window of all
// its subflows.
func (s *Simulation) alphaLIA(c *connection) (alpha, total float64) {
	best, sum := 0.0, 0.0
	for _, sub := range c.subflows {
		o := &s.subflows[sub]
		if !o.coupled() {
			continue
		}
		rtt := float64(o.srtt)
		rate := o.window.cwnd / rtt
		best = max(best, rate/rtt)
		sum += rate
		total += o.window.cwnd
	}
	return total * best / (sum * sum), total
}

// increaseOLIA is how much a window grows for one segment (Khalili et al., equation 4).
func (s *Simulation) increaseOLIA(f *subflow) float64 {
	c := &s.connections[f.connection]
	sum, bestQuality, largest := 0.0, 0.0, 0.0
	open := 0
	for _, sub := range c.subflows {
		o := &s.subflows[sub]
		if !o.coupled() {
			continue
		}
		open++
		sum += o.window.cwnd / o.srtt.Seconds()
		bestQuality = max(bestQuality, o.quality())
		largest = max(largest, o.window.cwnd)
	}
	w, rtt := f.window.cwnd, f.srtt.Seconds()
	growth := w / (rtt * rtt) / (sum * sum)
	// best paths whose window is not the largest; paths of the largest window
	var collected, maximal int
	for _, sub := range c.subflows {
		o := &s.subflows[sub]
		if !o.coupled() {
			continue
		}
		if o.window.cwnd >= largest {
			maximal++
		} else if o.quality() >= bestQuality {
			collected++
		}
	}
	alpha := 0.0
	switch {
	case collected == 0:
	case w >= largest:
		alpha = -1 / float64(open*maximal)
	case f.quality() >= bestQuality:
		alpha = 1 / float64(open*collected)
	}
	return growth + alpha/w
}

func (f *subflow) coupled() bool { return f.state == open && f.srtt > 0 }

// quality is l²/rtt, where l is the larger of the segments sent between the last two losses and
// since the last.
func (f *subflow) quality() float64 {
	l := max(f.window.between, f.window.since)
	return l * l / f.srtt.Seconds()
}
