package health

import (
	"time"

	"sextant/pool"
)

// Member is a backend as the operator wants it, and whether its checks let it be used.
type Member struct {
	pool.Backend
	Usable bool
}

// Usage is how a service uses what is known of its backends.
type Usage struct {
	PanicPermille int           // of the backends that should be up: with a smaller share of usable ones, all of them are used
	SlowStart     time.Duration // in which a backend that comes up grows to its whole weight; 0: at once
}

// Effect is what a service's backends are now, and what must be remembered to decide on the next change.
type Effect struct {
	Backends []pool.Backend // in the order of the members
	Panic    bool           // checks are not believed: too few backends would be left
	Next     time.Duration  // when a weight takes its next step; meaningful if Waits
	Waits    bool
	since    map[uint16]time.Duration // backends in use, with the time when they came up; nil: nothing was in use before
}

// steps is how many steps a weight takes to grow. With slow start all weights are multiplied by it, always, so that a step
// changes one weight and no relation between the others.
const steps = 16

// Apply decides what the backends are at the time now, after the decision before (the zero Effect at first). The operator's word
// counts for more than the checks: they only turn up into down. A backend that comes up begins with 1/steps of its weight;
// not so those that are there at first, and those whom a panic puts back into use.
func (u Usage) Apply(members []Member, before Effect, now time.Duration) Effect {
	e := Effect{Backends: make([]pool.Backend, len(members)), Panic: u.panics(members), since: map[uint16]time.Duration{}}
	for i, m := range members {
		b := m.Backend
		if b.State == pool.Up && !m.Usable && !e.Panic {
			b.State = pool.Down
		}
		step := uint32(steps)
		if b.State == pool.Up {
			step = e.step(b.ID, u.SlowStart, before, now)
		}
		if u.SlowStart > 0 {
			b.Weight *= step
		}
		e.Backends[i] = b
	}
	return e
}

// panics says whether too few of those that should be up are usable.
func (u Usage) panics(members []Member) bool {
	wanted, usable := 0, 0
	for _, m := range members {
		if m.State == pool.Up {
			wanted++
			if m.Usable {
				usable++
			}
		}
	}
	return usable*1000 < wanted*u.PanicPermille
}

// step is how far the weight of a backend that is in use has grown.
func (e *Effect) step(id uint16, slowStart time.Duration, before Effect, now time.Duration) uint32 {
	since, known := before.since[id]
	switch {
	case known:
	case before.since == nil || e.Panic:
		since = now - slowStart
	default:
		since = now
	}
	e.since[id] = since
	age := now - since
	if age >= slowStart {
		return steps
	}
	// Step k begins at the age (k-1)/(steps-1) of the whole.
	step := 1 + age*(steps-1)/slowStart
	if next := since + (step*slowStart+steps-2)/(steps-1); !e.Waits || next < e.Next {
		e.Next, e.Waits = next, true
	}
	return uint32(step)
}
