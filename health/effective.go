package health

import (
	"math"
	"slices"
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
	ReturnHold    time.Duration // in which a backend that was down, or was not there, is draining before it is up
}

// Effect is what a service's backends are now, and what must be remembered to decide on the next change.
type Effect struct {
	Backends []pool.Backend // in the order of the members
	Panic    bool           // checks are not believed: too few backends would be left
	Next     time.Duration  // when a weight takes its next step, or a hold ends; meaningful if Waits
	Waits    bool
	since    map[uint16]time.Duration // backends in use, with the time when they came up; nil: nothing was in use before
	held     map[uint16]time.Duration // backends that returned a moment ago, with the time until which they are not up
}

// Earlier is the decision of a process that is gone, of which is known who was away.
func Earlier(configured []pool.Backend, away func(i int) bool) Effect {
	e := Effect{Backends: slices.Clone(configured), since: map[uint16]time.Duration{}}
	for i, b := range e.Backends {
		if away(i) {
			e.Backends[i].State = pool.Down
		} else if b.State == pool.Up {
			e.since[b.ID] = math.MinInt64 / 2
		}
	}
	return e
}

// Away says whether a backend of the effect is down, or held.
func (e Effect) Away(b pool.Backend) bool {
	_, held := e.held[b.ID]
	return held || b.State == pool.Down
}

// steps is how many steps a weight takes to grow. With slow start all weights are multiplied by it, always, so that a step
// changes one weight and no relation between the others.
const steps = 16

// Apply decides what the backends are at the time now, after the decision before (the zero Effect at first). The operator's word
// counts for more than the checks: they only turn up into down. A backend that returns is held; one that comes up begins with 1/steps
// of its weight; not so those that are there at first, and those whom a panic puts back into use.
func (u Usage) Apply(members []Member, before Effect, now time.Duration) Effect {
	e := Effect{Backends: make([]pool.Backend, len(members)), Panic: u.panics(members), since: map[uint16]time.Duration{}}
	for i, m := range members {
		e.Backends[i] = m.Backend
		if m.State == pool.Up && !m.Usable && !e.Panic {
			e.Backends[i].State = pool.Down
		}
	}
	if before.since != nil && !e.Panic {
		e.hold(u.ReturnHold, before, now)
	}
	for i, b := range e.Backends {
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

// hold keeps backends that return from getting new connections for a while: an edge that has not heard yet that they are back would
// break those that it meets. If nobody else is up, they are.
func (e *Effect) hold(length time.Duration, before Effect, now time.Duration) {
	away := make(map[uint16]bool, len(before.Backends))
	for _, b := range before.Backends {
		away[b.ID] = b.State == pool.Down
	}
	held, up := map[uint16]time.Duration{}, false
	for _, b := range e.Backends {
		until := before.held[b.ID]
		if down, known := away[b.ID]; down || !known {
			until = now + length
		}
		if b.State != pool.Down && until > now {
			held[b.ID] = until
		} else if b.State == pool.Up && b.Weight > 0 {
			up = true
		}
	}
	if !up {
		return
	}
	for i, b := range e.Backends {
		until, ok := held[b.ID]
		if !ok {
			continue
		}
		if b.State == pool.Up {
			e.Backends[i].State = pool.Draining
		}
		if !e.Waits || until < e.Next {
			e.Next, e.Waits = until, true
		}
	}
	e.held = held
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
