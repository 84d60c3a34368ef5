package pathprobe

import (
	"slices"
	"time"
)

// Settings say how often lists are probed, and what follows.
type Settings struct {
	// between two probes of a list; half of it while a probe of some list is missing
	Interval time.Duration
	// a list is silent when so many probes in a row did not come back in time
	Missed int
	// a silent list answers again when so many probes came back without such a gap
	Good int
}

// patience is how long a list that never answered may take to answer first: by then its round-trip
// time is not known.
const patience = time.Second

// lossWindow is over how many probes loss is counted, and lag how many of the latest are left out,
// as they may be on their way.
const (
	lossWindow = 1000
	lag        = 100
)

// Stats is what is known of a list.
type Stats struct {
	Sent, Received uint64
	// LossPermille is the share that did not come back of the last 1,000 probes, without the latest
	// 100.
	LossPermille int
	RTT          time.Duration // smoothed, over the list and the way back; 0: never measured
	Least, Most  time.Duration
	Known        bool // whether it was ever found to answer or to be silent
	Answers      bool
}

// tracker judges one list. Times are those of the prober's clock, which it does not read itself.
type tracker struct {
	settings Settings
	Stats
	begun     time.Duration // when the first probe left
	next      uint32        // number of the next probe
	latest    uint32        // number of the youngest probe that is back, if one is
	heard     time.Duration // when the last one came back
	run       int           // probes that came back without a gap
	gap       int           // regular probes that left since any came back,
	turn      time.Duration // when they became as many as may be missed,
	regular   time.Duration // and when the last one left
	variation time.Duration // of the round-trip time
	left      [lossWindow + lag]time.Duration
	arrived   [lossWindow + lag]bool
}

// place is where a probe's time and fate are kept.
func (t *tracker) place(number uint32) int { return int(number % uint32(len(t.left))) }

// sent counts a probe that leaves now, and returns its number. Probes of one round leave at the
// same time, whatever list they take; one round in each interval is regular.
func (t *tracker) sent(now time.Duration, regular bool) (number uint32) {
	if regular {
		t.regular = now
		if t.gap++; t.gap == t.settings.Missed {
			t.turn = now
		}
	}
	if number = t.next; t.Sent == 0 {
		t.begun = now
	}
	t.next++
	t.Sent++
	t.left[t.place(number)], t.arrived[t.place(number)] = now, false
	return number
}

// came counts a probe that is back, and tells whether the list answers again. Numbers that can't be
// are ignored, doubles too.
func (t *tracker) came(number uint32, now time.Duration) (answers bool) {
	age := t.next - 1 - number
	if age >= uint32(len(t.arrived)) || uint64(age) >= t.Sent || t.arrived[t.place(number)] {
		return false
	}
	if t.Received == 0 || age < t.next-1-t.latest {
		t.latest = number
	}
	t.arrived[t.place(number)] = true
	t.heard, t.gap = now, 0
	t.Received++
	t.measure(now - t.left[t.place(number)])
	t.run++
	if t.Answers || t.Known && t.run < t.settings.Good {
		return false
	}
	t.Known, t.Answers = true, true
	return true
}

// measure smooths as RFC 6298 section 2 does: an eighth of each new time, and a quarter of its
// distance.
func (t *tracker) measure(took time.Duration) {
	if t.RTT == 0 {
		t.RTT, t.variation, t.Least = took, took/2, took
	}
	t.variation += ((took - t.RTT).Abs() - t.variation) / 4
	t.RTT += (took - t.RTT) / 8
	t.Least, t.Most = min(t.Least, took), max(t.Most, took)
}

// allowance is how long a probe may take: what it is likely to take, as of RFC 6298, and about half
// an interval at least.
func (t *tracker) allowance() time.Duration {
	return max(t.RTT+4*t.variation, t.settings.least())
}

// least is what any probe may take: half an interval, but for a hair, as a round may leave late and
// be judged in time.
func (s Settings) least() time.Duration { return s.Interval * 3 / 8 }

// missing is how many probes are overdue in a row, none of which has been back or was followed by
// one that is; counted up to most.
func (t *tracker) missing(now time.Duration, most int) (count int) {
	for count < most && uint64(count) < t.waiting() &&
		now-t.left[t.place(t.firstMissing()+uint32(count))] >= t.allowance() {
		count++
	}
	return count
}

// waiting is how many probes left since the youngest that is back.
func (t *tracker) waiting() uint64 {
	if t.Received == 0 {
		return min(t.Sent, uint64(len(t.left)))
	}
	return uint64(t.next - t.firstMissing())
}

func (t *tracker) firstMissing() uint32 {
	if t.Received == 0 {
		return t.next - uint32(min(t.Sent, uint64(len(t.left))))
	}
	age := t.next - 1 - t.latest
	return t.next - min(age, uint32(len(t.left)))
}

// doubted tells that a list answers, but a probe of it is overdue: that is asked about at twice the
// pace.
func (t *tracker) doubted(now time.Duration) bool { return t.Answers && t.missing(now, 1) > 0 }

// quiet tells that so many regular probes left since one came back, whichever: however long the way
// is, one comes back each interval. So a list is known to be silent on a machine, too, on which
// times vary so much that no probe is overdue soon.
func (t *tracker) quiet(now time.Duration, most int) bool {
	return t.gap > most || t.gap == most && now-t.regular >= t.settings.least()
}

// suspected tells that a list is silent, if that is its own silence and not that of this machine or
// of the way back.
func (t *tracker) suspected(now time.Duration, most int) bool {
	return t.missing(now, most) >= most || t.quiet(now, most)
}

// heardMeanwhile tells that another list was heard while this one was not.
func (t *tracker) heardMeanwhile(o *tracker, now time.Duration) bool {
	return o != t && o.Answers && (t.quiet(now, t.settings.Missed) && o.heard > t.turn ||
		t.outrun(o, now))
}

// outrun tells that what is missing of this list came over another one: a probe that left no
// earlier than the first one that is missing, and that came back no earlier than the last one would
// have, but for a quarter of an interval.
func (t *tracker) outrun(o *tracker, now time.Duration) bool {
	missed, first := t.settings.Missed, t.firstMissing()
	if t.missing(now, missed) < missed {
		return false
	}
	last := t.left[t.place(first+uint32(missed)-1)]
	return o.left[o.place(o.latest)] >= t.left[t.place(first)] &&
		o.heard >= last+t.RTT-t.settings.Interval/4
}

// silenced are those of a group that are found to be silent now. All lists of a group have the same
// ends, and their probes come back the same way: so a list counts as silent if another one
// is heard meanwhile. If none is, it may be the way back, or this machine that does not get to it;
// then all fall silent together, after twice as many probes.
func silenced(group []*tracker, now time.Duration) (fallen []*tracker) {
	together := true
	for _, t := range group {
		if t.Answers {
			together = together && t.suspected(now, 2*t.settings.Missed)
		}
	}
	for _, t := range group {
		if !t.suspected(now, t.settings.Missed) {
			continue
		}
		t.run = 0
		switch {
		case t.Known && !t.Answers:
			continue
		case t.Received == 0:
			if now-t.begun < patience {
				continue
			}
		case !together && !slices.ContainsFunc(group,
			func(o *tracker) bool { return t.heardMeanwhile(o, now) }):
			continue
		}
		fallen = append(fallen, t)
	}
	for _, t := range fallen {
		t.Known, t.Answers = true, false
	}
	return fallen
}

// stats is what is known now.
func (t *tracker) stats() Stats {
	s := t.Stats
	counted, lost := 0, 0
	for age := uint64(lag); age < uint64(len(t.arrived)) && age < t.Sent; age++ {
		counted++
		if !t.arrived[t.place(t.next-1-uint32(age))] {
			lost++
		}
	}
	if counted > 0 {
		s.LossPermille = lost * 1000 / counted
	}
	return s
}
