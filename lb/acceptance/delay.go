package acceptance

import (
	"math"
	"sort"
	"time"
)

// Pace is how fast a server is, by what it did lately: the time that its cores worked, and how many
// connections ended in it. Both fade, to a half within 4.3 s.
type Pace struct {
	At   uint64 // tick up to which it is known
	Work uint64 // ticks of all cores together
	Done uint64 // connections, in 1/65536
}

const (
	tickShift  = 10 // a tick is 1,024 ns
	paceShift  = 22 // ticks in which a pace fades to a half
	paceMost   = 1 << 28
	doneOne    = 16 // bits behind the point
	usualCount = 16 // connections like those of all servers that each server's own are added to
	coresMost  = 1 << 12
	powerMost  = 16
	shareOne   = 10 // bits behind the point
	shareMost  = 1 << 26
)

// until brings a pace up to date, after so many cores worked. Time that goes back is none. Fading
// by 1/(1 + t/T) needs no power, and is that of 2^(-t/T) or so while there is work.
func (a Pace) until(now time.Duration, working uint32) Pace {
	passed := max(int64(uint64(now)>>tickShift)-int64(a.At), 0)
	a.At += uint64(passed)
	passed = min(passed, paceMost)
	whole := uint64(1<<paceShift + passed)
	a.Work = (a.Work + uint64(passed)*uint64(working)) << paceShift / whole
	a.Done = a.Done << paceShift / whole
	return a
}

// Moved is called before the number of a server's connections changes, since one begins or ends. It
// returns the state for the next offer; only Delay's is another one.
func (p Policy) Moved(s State, busy uint32, ends bool, now time.Duration) State {
	if p.Kind != Delay {
		return s
	}
	s.Pace = s.Pace.until(now, p.working(busy))
	if ends {
		s.Pace.Done += 1 << doneOne
	}
	return s
}

// working is how many cores have something to do.
func (p Policy) working(busy uint32) uint32 { return min(busy, max(p.Cores, 1), coresMost) }

// each is how long a core works on a connection: by what this server did, and by what is usual for
// as many connections as stand for not knowing. 0: nothing is known.
func (s *State) each() Level {
	work, done := s.Pace.Work<<doneOne, s.Pace.Done
	if s.Usual != 0 {
		work += usualCount * uint64(s.Usual) << doneOne
		done += usualCount << doneOne
	}
	if done < 1<<doneOne {
		return 0
	}
	return Level(min(max(work/done, 1), math.MaxUint32))
}

// Power is how steeply a delay grows once connections share the cores: the root of their number.
// What has to wait in front of many servers is rare until nearly all of them work, and then comes
// soon (Halfin and Whitt, 1981); so one of many cores that has nothing to do is worth a slow one.
func (p Policy) Power() uint32 {
	return max(1, min(uint32(math.Round(math.Sqrt(float64(p.Cores)))), powerMost))
}

// delay is what a connection takes that comes to so many others: as long as a core works on it, and
// longer if it has to share. A quarter of the load is added, since others will come.
func (p Policy) delay(each Level, busy uint32) Level {
	cores, n := uint64(max(p.Cores, 1)), uint64(min(busy, busyMax))
	share := max((n+1)<<shareOne/cores, 1<<shareOne)
	longer := share
	for range p.Power() - 1 {
		longer = min(longer*share>>shareOne, shareMost)
	}
	longer = min(longer+(2*n+1)<<shareOne/(8*cores), shareMost)
	return Level(min(uint64(each)*longer>>shareOne, math.MaxUint32))
}

// decideDelay learns from an offer and answers it.
func (p Policy) decideDelay(s State, o Offer) (Answer, State) {
	s.Pace = s.Pace.until(o.Now, p.working(o.Busy))
	delay, usual := o.Told.delays()
	if delay != 0 {
		s.Levels[0] = s.Levels[0].towards(delay, agreeShift)
	}
	if usual != 0 {
		s.Usual = s.Usual.towards(usual, agreeShift)
	}
	each := s.each()
	if each == 0 {
		return Answer{Accept: o.Left == 0 || o.Busy < max(p.Cores, 1)}, s
	}
	s.Usual = s.Usual.towards(each, forgetShift)
	delay = p.delay(each, o.Busy)
	s.meets(delay)
	if o.Left == 0 || delay <= s.limit(o.Left) {
		return Answer{Accept: true}, s
	}
	s.Attempts++
	if s.Attempts%2 == 0 {
		return Answer{Tell: delayNote(s.Usual, true)}, s
	}
	return Answer{Tell: delayNote(s.Levels[0], false)}, s
}

// delayThreshold is the least number of connections to which another one is too many.
func (p Policy) delayThreshold(s State) uint32 {
	each := s.each()
	if each == 0 {
		return max(p.Cores, 1)
	}
	return uint32(sort.Search(busyMax, func(n int) bool {
		return p.delay(each, uint32(n)) > s.Levels[0]
	}))
}

// seconds is a level of Delay.
func (l Level) seconds() float64 { return float64(l) * (1 << tickShift) / 1e9 }
