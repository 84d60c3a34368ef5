package protection

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Where nothing probes a list that fell silent, it is tried again: it is sent copies beside those
// that carry, and the egress says whether they come. Trials back off.

// Retry says when a silent list is tried.
type Retry struct {
	// from when it fell silent to the first trial, at most; twice as much after each failed trial
	First time.Duration
	Most  time.Duration // between two trials
	// a trial, at least: longer if so few packets are sent that nothing can be said
	Lasts time.Duration
	// of the jitter: up to a quarter of a time is left out, so that not all are tried at once that
	// fell silent together
	Seed uint64
}

// enoughPackets say something: fewer can be lost one by one.
const enoughPackets = 5

// Trials are those of a list. The zero value is a list that has not been silent.
type Trials struct {
	Vain  int           // trials in a row after which it was not believed, or not for long
	Next  time.Duration // when the next one begins, if the list is held down
	state trialState
	since time.Duration    // when the trial, or the time in which the list is trusted, began
	came  [MaxSlots]uint64 // packets that had come by each list when the trial began
}

type trialState uint8

const (
	untried trialState = iota // not silent, or not noticed yet
	held
	tried
	believed // it came back from silence
)

// Tried is the list that is sent copies for a trial; false: none is. There is one at a time, as
// each loads links.
func (s State) Tried() (slot int, ok bool) {
	slot = slices.IndexFunc(s.Slots[:], func(l Slot) bool {
		return l.Used && l.Fault == "" && l.Answer == Silent && l.Trials.state == tried
	})
	return slot, slot >= 0
}

// HeldUntil is when the silent list of a slot is tried next; false: it is not silent, or is tried
// now.
func (s State) HeldUntil(slot int) (at time.Duration, ok bool) {
	l := s.Slots[slot]
	return l.Trials.Next, l.Used && l.Answer == Silent && l.Trials.state == held
}

// Counted takes in how many packets the egress says have come by each slot's list, at the time now
// from any fixed moment on: trials begin and end. May tells whether a list may be sent copies now,
// as links may be too full for it.
func (s State) Counted(now time.Duration, came [MaxSlots]uint64, r Retry,
	may func(Path) bool) State {
	if s.Intent.Copies < 2 { // nothing else comes that a list could be compared with
		return s
	}
	_, busy := s.Tried()
	carrying := s.Carrying()
	for i := range s.Slots {
		l := &s.Slots[i]
		switch t := &l.Trials; {
		case !l.Used:
		case l.Fault != "":
			if t.state == tried {
				t.hold(now, r, i)
			}
		case l.Answer != Silent:
			t.wasBelieved(now, r)
		case t.state == tried:
			busy = !s.judged(i, now, came, r)
		case t.state != held:
			t.hold(now, r, i)
		case now >= t.Next && !busy && !slices.Contains(carrying, i) && may(l.Path):
			t.state, t.since, t.came = tried, now, came
			busy = true
		}
	}
	return s.settled()
}

// judged ends the trial of a slot if enough is known: it fails unless at least half as many
// packets came by the list as by each other one that carries.
func (s *State) judged(slot int, now time.Duration, came [MaxSlots]uint64, r Retry) bool {
	t := &s.Slots[slot].Trials
	most := uint64(0)
	for i := range came {
		if came[i] < t.came[i] { // the egress began to count anew
			t.since, t.came = now, came
			return false
		}
		if i != slot {
			most = max(most, came[i]-t.came[i])
		}
	}
	if most == 0 { // time in which nothing is sent does not count
		t.since = now
	}
	if now-t.since < r.Lasts || most < enoughPackets {
		return false
	}
	if 2*(came[slot]-t.came[slot]) < most {
		t.Vain++
		t.hold(now, r, slot)
		return true
	}
	s.Slots[slot].Answer, s.Slots[slot].Trial = Answers, false
	t.state, t.since = believed, now
	return true
}

// hold keeps a list away until the next trial.
func (t *Trials) hold(now time.Duration, r Retry, slot int) {
	if t.state == believed {
		t.Vain++ // not for long: wasBelieved would have forgotten
	}
	const doublings = 16 // a First of an hour does not overflow
	wait := min(r.First<<min(t.Vain, doublings), r.Most)
	jitter := rand.New(rand.NewPCG(r.Seed, uint64(slot)<<32|uint64(t.Vain)))
	t.state, t.Next = held, now+wait-time.Duration(jitter.Int64N(int64(wait)/4+1))
}

// wasBelieved forgets trials once a list has carried for the longest time between two.
func (t *Trials) wasBelieved(now time.Duration, r Retry) {
	if t.state == believed && now-t.since < r.Most {
		return
	}
	*t = Trials{}
}
