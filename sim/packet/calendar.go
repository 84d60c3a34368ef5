package packet

import (
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

// Wheel sizes: the slots of each level, as a power of two. Together with the shift they must reach
// the end of time.
const (
	lowBits  = 12
	highBits = 10
	levels   = 6
)

// calendar orders events by time, and those of one time by the order in which they were scheduled.
// It is a radix queue: a hierarchy of wheels, where the slot of an event is given by the highest
// bit in which its time differs from that of the current slot. An event moves down at most once per
// level, and those of the current slot are sorted.
//
// An event is a member of the slab, and links to the next of its slot; scheduling touches the event
// and the head of its slot.
type calendar struct {
	slab  []event
	free  int32
	shift uint  // a slot of the lowest level lasts 1<<shift ps
	base  Time  // start of the current slot
	end   Time  // and its end
	ready []due // events of the current slot, sorted, from pos on
	pos   int
	wheel [levels]wheel
	count int // events that are scheduled
}

// due is an event of the current slot.
type due struct {
	at Time
	id int32
}

// wheel is one level: heads of lists, and which are not empty.
type wheel struct {
	head    []int32
	used    []uint64
	summary uint64 // which words of used are not 0
}

func newCalendar(slot Time) calendar {
	c := calendar{free: none, shift: uint(bits.Len64(uint64(max(slot, 1))) - 1)}
	c.end = 1 << c.shift
	for i := range c.wheel {
		slots := 1 << c.bits(i)
		c.wheel[i].head = make([]int32, slots)
		c.wheel[i].used = make([]uint64, (slots+63)/64)
		for j := range c.wheel[i].head {
			c.wheel[i].head[j] = none
		}
	}
	return c
}

func (c *calendar) bits(level int) uint {
	if level == 0 {
		return lowBits
	}
	return highBits
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

// schedule plans an event. Its time must not be before that of the event that next returned last.
func (c *calendar) schedule(id int32, at Time) {
	c.count++
	c.slab[id].at = at
	if at < c.end {
		c.insert(due{at, id})
		return
	}
	c.file(id, at)
}

// insert puts an event into the current slot, behind those of the same time.
func (c *calendar) insert(d due) {
	c.ready = append(c.ready, d)
	i := len(c.ready) - 1
	for ; i > c.pos && c.ready[i-1].at > d.at; i-- {
		c.ready[i] = c.ready[i-1]
	}
	c.ready[i] = d
}

// file puts an event into the slot of its time, which is not the current one.
func (c *calendar) file(id int32, at Time) {
	different := uint64(at^c.base) >> c.shift
	level, below := 0, uint(0)
	for width := uint(lowBits); different>>width != 0; width += highBits {
		level++
		below = width
	}
	slot := uint64(at) >> (c.shift + below) & (1<<c.bits(level) - 1)
	w := &c.wheel[level]
	c.slab[id].next = w.head[slot]
	w.head[slot] = id
	w.used[slot>>6] |= 1 << (slot & 63)
	w.summary |= 1 << (slot >> 6)
}

// next removes the first event and returns it; none if there are no more.
func (c *calendar) next() int32 {
	for c.pos == len(c.ready) {
		if !c.advance() {
			return none
		}
	}
	id := c.ready[c.pos].id
	c.pos++
	c.count--
	return id
}

// peek is the time of the first event, or never.
func (c *calendar) peek() Time {
	for c.pos == len(c.ready) {
		if !c.advance() {
			return never
		}
	}
	return c.ready[c.pos].at
}

// advance goes to the next slot that has events.
func (c *calendar) advance() bool {
	c.ready, c.pos = c.ready[:0], 0
	for level := range c.wheel {
		slot := c.wheel[level].first()
		if slot < 0 {
			continue
		}
		below := c.shift
		for l := range level {
			below += c.bits(l)
		}
		width := c.bits(level)
		c.base = c.base>>(below+width)<<(below+width) | Time(slot)<<below
		c.end = c.base + 1<<c.shift
		first := c.empty(level, slot)
		if level == 0 {
			c.collect(first)
			return true
		}
		for id := c.reversed(first); id != none; {
			e := &c.slab[id]
			following := e.next
			if e.at < c.end {
				c.ready = append(c.ready, due{e.at, id})
			} else {
				c.file(id, e.at)
			}
			id = following
		}
		if len(c.ready) > 0 {
			c.sort()
			return true
		}
		return c.advance()
	}
	return false
}

// first is the lowest slot with events, -1 if none has. Slots before the current one are empty.
func (w *wheel) first() int {
	if w.summary == 0 {
		return -1
	}
	word := bits.TrailingZeros64(w.summary)
	return word<<6 | bits.TrailingZeros64(w.used[word])
}

// empty takes all events of a slot.
func (c *calendar) empty(level, slot int) (first int32) {
	w := &c.wheel[level]
	first = w.head[slot]
	w.head[slot] = none
	if w.used[slot>>6] &^= 1 << (slot & 63); w.used[slot>>6] == 0 {
		w.summary &^= 1 << (slot >> 6)
	}
	return first
}

// reversed turns a list around, so that the event that was filed first comes first.
func (c *calendar) reversed(id int32) int32 {
	previous := none
	for id != none {
		e := &c.slab[id]
		id, e.next, previous = e.next, previous, id
	}
	return previous
}

// collect makes a list the current slot.
func (c *calendar) collect(id int32) {
	for ; id != none; id = c.slab[id].next {
		c.ready = append(c.ready, due{c.slab[id].at, id})
	}
	slices.Reverse(c.ready)
	c.sort()
}

// sort orders the current slot, and leaves events of one time as they are.
func (c *calendar) sort() {
	const few = 24
	if len(c.ready) > few {
		slices.SortStableFunc(c.ready, func(a, b due) int {
			switch {
			case a.at < b.at:
				return -1
			case a.at > b.at:
				return 1
			}
			return 0
		})
		return
	}
	for i := 1; i < len(c.ready); i++ {
		d, j := c.ready[i], i
		for ; j > 0 && c.ready[j-1].at > d.at; j-- {
			c.ready[j] = c.ready[j-1]
		}
		c.ready[j] = d
	}
}
