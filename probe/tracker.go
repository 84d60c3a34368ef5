package probe

import "time"

// Settings say how often lists are probed, and what follows.
type Settings struct {
	Interval time.Duration // between two probes of a list
	Missed   int           // a list is silent when so many probes left, half an interval ago, and none came back since
	Good     int           // a silent list answers again when so many probes came back without such a gap
}

// patience is how long a list that never answered may take to answer first: by then its round-trip time is not known.
const patience = time.Second

// lossWindow is over how many probes loss is counted, and lag how many of the latest are left out, as they may be on their way.
const (
	lossWindow = 1000
	lag        = 100
)

// Stats is what is known of a list.
type Stats struct {
	Sent, Received uint64
	// LossPermille is the share that did not come back of the last 1,000 probes, without the latest 100.
	LossPermille int
	RTT          time.Duration // smoothed, over the list and the way back; 0: never measured
	Least, Most  time.Duration
	Known        bool // whether it was ever found to answer or to be silent
	Answers      bool
}

// tracker judges one list. It knows no clock: sent is called when a probe leaves, each interval, judge half an interval later, and
// came when a probe is back.
type tracker struct {
	settings Settings
	Stats
	next    uint32 // number of the next probe
	gap     int    // probes that left since one came back
	run     int    // probes that came back without a gap
	arrived [lossWindow + lag]bool
}

// sent counts a probe, whose number it returns.
func (t *tracker) sent() (number uint32) {
	number = t.next
	t.next++
	t.Sent++
	t.arrived[number%uint32(len(t.arrived))] = false
	t.gap++
	return number
}

// judge tells whether the list fell silent. However long the way is, a probe comes back each interval, so what counts is how many
// left since one did.
func (t *tracker) judge() (changed bool) {
	limit := t.settings.Missed
	if t.Received == 0 {
		limit = max(limit, int(patience/t.settings.Interval))
	}
	if t.gap < limit {
		return false
	}
	t.run = 0
	changed = !t.Known || t.Answers
	t.Known, t.Answers = true, false
	return changed
}

// came counts a probe that is back, and tells whether the list's state changed. Numbers that can't be are ignored, doubles too.
func (t *tracker) came(number uint32, took time.Duration) (changed bool) {
	age := t.next - 1 - number
	if age >= uint32(len(t.arrived)) || uint64(age) >= t.Sent || t.arrived[number%uint32(len(t.arrived))] {
		return false
	}
	t.arrived[number%uint32(len(t.arrived))] = true
	t.Received++
	t.measure(took)
	t.gap = 0
	t.run++
	if t.Answers || t.Known && t.run < t.settings.Good {
		return false
	}
	t.Known, t.Answers = true, true
	return true
}

// smoothing is that of RFC 6298: an eighth of each new time.
const smoothing = 8

func (t *tracker) measure(took time.Duration) {
	if t.RTT == 0 {
		t.RTT, t.Least = took, took
	}
	t.RTT += (took - t.RTT) / smoothing
	t.Least, t.Most = min(t.Least, took), max(t.Most, took)
}

// stats is what is known now.
func (t *tracker) stats() Stats {
	s := t.Stats
	counted, lost := 0, 0
	for age := uint64(lag); age < uint64(len(t.arrived)) && age < t.Sent; age++ {
		counted++
		if !t.arrived[(t.next-1-uint32(age))%uint32(len(t.arrived))] {
			lost++
		}
	}
	if counted > 0 {
		s.LossPermille = lost * 1000 / counted
	}
	return s
}
