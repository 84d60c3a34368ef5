package health

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"sextant/lb/pool"
)

// Member is a backend as the operator wants it, and what its checks say.
type Member struct {
	pool.Backend
	Usable bool // it counts as healthy
	Wavers bool // the latest result speaks against Usable, but not yet often enough
}

// Usage is how a service uses what is known of its backends.
type Usage struct {
	// of the backends that should be up: with a smaller share of usable ones, all of them are used
	PanicPermille int
	// in which a backend that comes up grows to its whole weight; 0: at once
	SlowStart time.Duration
	Kills     bool          // a backend that fails is down a round later; else it drains
	Round     time.Duration // in which each backend is checked once
	Settle    time.Duration // in which a backend that lives rises once checks get through
	// in which a backend that was down, or was not there, is draining before it is up: twice that
	// at most, so that those that come within it are up together
	ReturnHold time.Duration
}

// Effect is what a service's backends are now, and what must be remembered to decide on the next
// change.
type Effect struct {
	Backends []pool.Backend // in the order of the members
	Panic    bool           // checks are not believed: too few backends would be left
	// when a weight takes its next step, or a hold ends; meaningful if Waits
	Next  time.Duration
	Waits bool
	// backends in use, with the time when they came up; nil: nothing was in use before
	since map[uint16]time.Duration
	// backends that returned a moment ago, with the time until which they are not up at least
	held    map[uint16]time.Duration
	failed  map[uint16]time.Duration // backends that fail, with the time since when
	failing map[uint16]bool          // the same backends, and whether they waver
	changed time.Duration            // when these became others
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

// steps is how many steps a weight takes to grow. With slow start all weights are multiplied by it,
// always, so that a step changes one weight and no relation between the others.
const steps = 16

// Apply decides what the backends are at the time now, after the decision before (the zero Effect
// at first). The operator's word counts for more than the checks: they only turn up into draining,
// or down. A backend that fails is a suspect, too. A backend that returns is held; one that comes
// up begins with 1/steps of its weight; not so those that are there at first, and those whom a
// panic puts back into use.
func (u Usage) Apply(members []Member, before Effect, now time.Duration) Effect {
	e := Effect{
		Backends: make([]pool.Backend, len(members)),
		since:    map[uint16]time.Duration{}, failed: map[uint16]time.Duration{},
	}
	e.note(members, before, now)
	e.Panic = u.panics(&e, members, before, now)
	for i, m := range members {
		e.Backends[i] = m.Backend
		e.Backends[i].Suspect = (m.Suspect || !m.Usable) && m.State != pool.Down
		if !m.Usable && m.State == pool.Up {
			e.Backends[i].State = u.fails(&e, m.ID, before, now)
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

// hold keeps backends that return from getting new connections for a while: an edge that has not
// heard yet that they are back would break those that it meets. If nobody else is up, they are.
func (e *Effect) hold(length time.Duration, before Effect, now time.Duration) {
	away := make(map[uint16]bool, len(before.Backends))
	for _, b := range before.Backends {
		away[b.ID] = b.State == pool.Down
	}
	held := map[uint16]time.Duration{}
	for _, b := range e.Backends {
		until, ok := before.held[b.ID]
		if down, known := away[b.ID]; down || !known {
			until, ok = now+length, true
		}
		if ok && b.State != pool.Down {
			held[b.ID] = until
		}
	}
	ends := together(held, length)
	maps.DeleteFunc(held, func(id uint16, _ time.Duration) bool { return ends[id] <= now })
	if !slices.ContainsFunc(e.Backends, func(b pool.Backend) bool {
		_, ok := held[b.ID]
		return !ok && b.State == pool.Up && b.Weight > 0
	}) {
		return
	}
	for i, b := range e.Backends {
		if _, ok := held[b.ID]; !ok {
			continue
		}
		if b.State == pool.Up {
			e.Backends[i].State = pool.Draining
		}
		e.wait(ends[b.ID])
	}
	e.held = held
}

// together says when backends are up that are held until the times given: those whose times are
// within a length of the first one's with the last of these. A bucket whose owners come one after
// another has all of them in its chain; of those that come together, it has the best alone.
func together(held map[uint16]time.Duration, length time.Duration) map[uint16]time.Duration {
	ids := slices.SortedFunc(maps.Keys(held), func(a, b uint16) int {
		return cmp.Compare(held[a], held[b])
	})
	ends := make(map[uint16]time.Duration, len(held))
	for len(ids) > 0 {
		first, count := held[ids[0]], 1
		for count < len(ids) && held[ids[count]] <= first+length {
			count++
		}
		for _, id := range ids[:count] {
			ends[id] = held[ids[count-1]]
		}
		ids = ids[count:]
	}
	return ends
}

// note remembers who fails.
func (e *Effect) note(members []Member, before Effect, now time.Duration) {
	e.failing, e.changed = map[uint16]bool{}, before.changed
	for _, m := range members {
		if m.State == pool.Up && !m.Usable {
			e.failing[m.ID] = m.Wavers
		}
	}
	if !maps.Equal(e.failing, before.failing) {
		e.changed = now
	}
}

// fails returns the state of a backend that should be up and fails. Only after a round in which
// each of the others was checked too is one given up: until then it may turn out that many fail,
// and so the way of the checks.
func (u Usage) fails(e *Effect, id uint16, before Effect, now time.Duration) pool.State {
	if e.Panic {
		return pool.Up
	}
	since, known := before.failed[id]
	if !known || before.Panic {
		since = now
	}
	e.failed[id] = since
	given := before.givenUp(id) || now-since >= u.Round
	switch {
	case !u.Kills:
		return pool.Draining
	case given:
		return pool.Down
	}
	e.wait(since + u.Round)
	return pool.Draining
}

// givenUp says whether a backend was down.
func (e *Effect) givenUp(id uint16) bool {
	return slices.ContainsFunc(e.Backends, func(b pool.Backend) bool {
		return b.ID == id && b.State == pool.Down
	})
}

// panics says whether the checks are not believed. That begins when too few backends would be
// left: of those that should be up, less those that fail, and in the round in which one more fails
// also less those whose latest check failed. It ends when all have risen; or when enough have, and
// the rest, which would have risen since if only the way of the checks had failed, has not. It does
// not end where a backend whose latest check failed would have it begin again.
func (u Usage) panics(e *Effect, members []Member, before Effect, now time.Duration) bool {
	c := u.census(members, before, now)
	few := c.left*1000 < c.wanted*u.PanicPermille
	again := (c.left-c.doubted)*1000 < c.wanted*u.PanicPermille
	switch {
	case len(e.failing) == 0:
		return false
	case !before.Panic || few:
		return few
	case c.rising > 0:
		return true
	case now < e.changed+u.Settle:
		e.wait(e.changed + u.Settle)
		return true
	}
	return again
}

// census counts the backends that should be up: all, those that would be left, of these those whose
// latest check failed, and those that fail but not in their latest check.
type census struct{ wanted, left, doubted, rising int }

func (u Usage) census(members []Member, before Effect, now time.Duration) (c census) {
	doubted, fresh := 0, false
	for _, m := range members {
		if m.State != pool.Up {
			continue
		}
		c.wanted++
		switch since, known := before.failed[m.ID]; {
		case m.Usable && m.Wavers:
			doubted++
		case m.Usable:
			c.left++
		default:
			fresh = fresh || !known || now-since < u.Round
			if m.Wavers {
				c.rising++
			}
		}
	}
	if !fresh || before.Panic {
		c.left, c.doubted = c.left+doubted, doubted
	}
	return c
}

// wait has the next decision at a time, or earlier.
func (e *Effect) wait(at time.Duration) {
	if !e.Waits || at < e.Next {
		e.Next, e.Waits = at, true
	}
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
	e.wait(since + (step*slowStart+steps-2)/(steps-1))
	return uint32(step)
}
