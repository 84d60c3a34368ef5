package packet

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Time is a time since the start of the run, or a duration, in picoseconds.
type Time int64

// Units of time.
const (
	Picosecond  Time = 1
	Nanosecond       = 1000 * Picosecond
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond

	never Time = math.MaxInt64
)

// Seconds is t in seconds.
func (t Time) Seconds() float64 { return float64(t) / float64(Second) }

const none int32 = -1

// Wheel sizes: the slots of each level, as a power of two. Together they reach the end of time.
const (
	slotBits = 12
	slots    = 1 << slotBits
	levels   = 6
)

// calendar orders events by time, and those of one time by the order in which they were scheduled.
//
// Most events of a busy network are planned the same time ahead, that which a packet takes on a
// link: they are due in the order in which they are scheduled, and lie in lanes. The others are in
// a radix queue: a hierarchy of wheels, where the slot of an event is given by the highest bit in
// which its time differs from that of the current slot. An event moves down at most once per level,
// and those of the current slot are sorted.
type calendar struct {
	slab   []event
	free   int32
	serial uint32 // of the event that was scheduled last
	now    Time   // of the event that was removed last
	lanes  lanes

	shift uint  // a slot of the lowest level lasts 1<<shift ps
	base  Time  // start of the current slot
	end   Time  // and its end
	bound Time  // no event in a wheel is before
	ready []due // events of the current slot, sorted, from pos on
	pos   int
	wheel [levels]wheel
}

// due is an event that is planned.
type due struct {
	at     Time
	serial uint32
	id     int32
}

// before tells which of two events is first.
func (d due) before(o due) bool {
	return d.at < o.at || d.at == o.at && int32(d.serial-o.serial) < 0
}

// compare is for sorting.
func (d due) compare(o due) int {
	if c := cmp.Compare(d.at, o.at); c != 0 {
		return c
	}
	return int(int32(d.serial - o.serial))
}

// wheel is one level: heads of lists, and which are not empty.
type wheel struct {
	summary uint64 // which words of used are not 0
	used    [slots / 64]uint64
	head    [slots]int32
}

func newCalendar(slot Time) calendar {
	c := calendar{free: none, shift: uint(bits.Len64(uint64(max(slot, 1))) - 1), bound: never,
		lanes: newLanes()}
	c.end = 1 << c.shift
	for i := range c.wheel {
		for j := range c.wheel[i].head {
			c.wheel[i].head[j] = none
		}
	}
	return c
}

// take returns an event of the slab that is not in use. Its fields are what its last user left.
func (c *calendar) take() int32 {
	if id := c.free; id != none {
		c.free = c.slab[id].next
		return id
	}
	c.slab = append(c.slab, event{})
	return int32(len(c.slab) - 1)
}

// release gives an event back.
func (c *calendar) release(id int32) {
	c.slab[id].next = c.free
	c.free = id
}

// schedule plans an event. Its time must not be before that of the event that was removed last.
func (c *calendar) schedule(id int32, at Time) {
	c.slab[id].at = at
	c.scheduleArrival(id, at)
}

// scheduleArrival plans an event whose time nobody asks for. That it has a lane is the rule, for
// which it makes no call.
func (c *calendar) scheduleArrival(id int32, at Time) {
	c.serial++
	d := due{at, c.serial, id}
	ahead := at - c.now
	for i := range c.lanes.ahead {
		if c.lanes.ahead[i] == ahead {
			if c.lanes.heads[i].at == never {
				c.lanes.heads[i] = d
				return
			}
			b := &c.lanes.behind[i]
			if int(b.count) == len(b.ring) {
				b.grow()
			}
			b.ring[(b.head+b.count)&uint32(len(b.ring)-1)] = d
			b.count++
			return
		}
	}
	if c.lanes.begin(d, ahead) {
		return
	}
	e := &c.slab[id]
	e.at, e.serial = at, c.serial
	if at < c.end {
		c.insert(d)
	} else {
		c.file(id, at)
	}
}

// insert puts an event into the current slot.
func (c *calendar) insert(d due) {
	c.ready = append(c.ready, d)
	i := len(c.ready) - 1
	for ; i > c.pos && d.before(c.ready[i-1]); i-- {
		c.ready[i] = c.ready[i-1]
	}
	c.ready[i] = d
}

// file puts an event into the slot of its time, which is not the current one.
func (c *calendar) file(id int32, at Time) {
	slot, w := uint64(at)>>c.shift, &c.wheel[0]
	c.bound = min(c.bound, Time(slot<<c.shift))
	if different := slot ^ uint64(c.base)>>c.shift; different >= slots {
		level := (bits.Len64(different) - 1) / slotBits
		slot >>= uint(level) * slotBits
		w = &c.wheel[level]
	}
	slot %= slots
	c.slab[id].next = w.head[slot]
	w.head[slot] = id
	w.used[slot>>6] |= 1 << (slot & 63)
	w.summary |= 1 << (slot >> 6)
}

// remove removes the first event.
func (c *calendar) remove(d due, lane int32) {
	if lane == none {
		c.pos++
	} else {
		c.lanes.drop(lane)
	}
	c.now = d.at
}

// pending tells whether an event that has no lane may be before a time. Then wheels knows.
func (c *calendar) pending(at Time) bool { return c.pos < len(c.ready) || c.bound <= at }

// wheels is the first event, of which d is the first in a lane. Slots are gone to when no lane has
// an event before them.
func (c *calendar) wheels(d due, lane int32) (due, int32) {
	for c.pos == len(c.ready) && c.bound <= d.at && c.bound != never {
		c.advance()
	}
	if c.pos < len(c.ready) && c.ready[c.pos].before(d) {
		return c.ready[c.pos], none
	}
	return d, lane
}

// advance makes the first slot with events the current one or, if it is of a higher level,
// distributes its events over the levels below.
func (c *calendar) advance() {
	c.ready, c.pos = c.ready[:0], 0
	for level := range c.wheel {
		if w := &c.wheel[level]; w.summary != 0 {
			id := w.empty(w.first())
			c.base = c.bound
			c.end = c.base + 1<<c.shift
			c.distribute(id)
			break
		}
	}
	c.sort()
	c.bound = c.begin()
}

// distribute puts a list of events into their slots, seen from the current one.
func (c *calendar) distribute(id int32) {
	for id != none {
		e := &c.slab[id]
		following := e.next
		if e.at < c.end {
			c.ready = append(c.ready, due{e.at, e.serial, id})
		} else {
			c.file(id, e.at)
		}
		id = following
	}
}

// begin is when the first slot with events begins.
func (c *calendar) begin() Time {
	for level := range c.wheel {
		if w := &c.wheel[level]; w.summary != 0 {
			below := c.shift + uint(level)*slotBits
			return c.base>>(below+slotBits)<<(below+slotBits) | Time(w.first())<<below
		}
	}
	return never
}

// first is the lowest slot with events; there is one. Slots before the current one are empty.
func (w *wheel) first() int {
	word := bits.TrailingZeros64(w.summary) % len(w.used)
	return word<<6 | bits.TrailingZeros64(w.used[word])&63
}

// empty takes all events of a slot.
func (w *wheel) empty(slot int) (first int32) {
	slot %= slots
	first = w.head[slot]
	w.head[slot] = none
	if w.used[slot>>6] &^= 1 << (slot & 63); w.used[slot>>6] == 0 {
		w.summary &^= 1 << (slot >> 6)
	}
	return first
}

// sort orders the current slot.
func (c *calendar) sort() {
	const few = 24
	if len(c.ready) > few {
		slices.SortFunc(c.ready, due.compare)
		return
	}
	for i := 1; i < len(c.ready); i++ {
		d, j := c.ready[i], i
		for ; j > 0 && d.before(c.ready[j-1]); j-- {
			c.ready[j] = c.ready[j-1]
		}
		c.ready[j] = d
	}
}
