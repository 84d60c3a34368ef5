package packet

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The calendar yields what a stable sort by time does, whatever the slot, while events come and go.
func TestCalendarOrder(t *testing.T) {
	for _, slot := range []Time{1, 100, Microsecond, Second} {
		r := rand.New(rand.NewPCG(uint64(slot), 5))
		c := newCalendar(slot)
		type planned struct {
			at Time
			id int32
		}
		var oracle []planned
		now := Time(0)
		for step := range 30000 {
			if len(oracle) == 0 || step < 20000 && r.IntN(5) < 3 {
				delay := Time(r.Uint64() >> (10 + r.IntN(54)))
				if r.IntN(4) == 0 && len(oracle) > 0 {
					delay = oracle[r.IntN(len(oracle))].at - now // a tie
				}
				if r.IntN(3) == 0 { // as most packets: lanes
					delay = []Time{7, 1000, 1200, 50_000, Microsecond, Second}[r.IntN(6)]
				}
				delay = min(delay, 1<<61-now)
				id := c.take()
				c.schedule(id, now+delay)
				at, _ := slices.BinarySearchFunc(oracle, now+delay, func(p planned, x Time) int {
					if p.at <= x {
						return -1
					}
					return 1
				})
				oracle = slices.Insert(oracle, at, planned{now + delay, id})
				continue
			}
			first, lane := c.wheels(c.lanes.first())
			c.remove(first, lane)
			id := first.id
			if id != oracle[0].id || first.at != oracle[0].at {
				t.Fatalf("slot %d, step %d: event %d at %d, want %d at %d", slot, step, id,
					first.at, oracle[0].id, oracle[0].at)
			}
			now = oracle[0].at
			c.release(id)
			oracle = oracle[1:]
		}
		if d, _ := c.wheels(c.lanes.first()); d.at != never || len(oracle) > 0 {
			t.Errorf("slot %d: %+v is left, want %d events", slot, d, len(oracle))
		}
	}
}

// heap4 is a heap whose nodes have four children, to measure the calendar against.
type heap4 []due

func (h *heap4) push(d due) {
	*h = append(*h, d)
	i := len(*h) - 1
	for i > 0 {
		up := (i - 1) / 4
		if (*h)[up].at <= d.at {
			break
		}
		(*h)[i] = (*h)[up]
		i = up
	}
	(*h)[i] = d
}

func (h *heap4) pop() due {
	top := (*h)[0]
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	n, i := len(*h), 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(4*i+5, n); c++ {
			if (*h)[c].at < (*h)[least].at {
				least = c
			}
		}
		if (*h)[least].at >= last.at {
			break
		}
		(*h)[i] = (*h)[least]
		i = least
	}
	if n > 0 {
		(*h)[i] = last
	}
	return top
}

// The hold model: the next event is taken, and one is scheduled. 768 links, a packet takes up to
// 120 µs, as in the fat tree of BenchmarkMPTCP8.
const (
	heldEvents = 768
	heldTime   = 120 * Microsecond
)

func BenchmarkCalendar(b *testing.B) {
	c, r := newCalendar(heldTime/heldEvents*3), rand.New(rand.NewPCG(1, 1))
	for range heldEvents {
		c.schedule(c.take(), Time(r.Int64N(int64(heldTime))))
	}
	for b.Loop() {
		first, lane := c.wheels(c.lanes.first())
		c.remove(first, lane)
		id := first.id
		c.schedule(id, c.slab[id].at+Time(r.Int64N(int64(heldTime))))
	}
}

func BenchmarkHeap4(b *testing.B) {
	var h heap4
	r := rand.New(rand.NewPCG(1, 1))
	for i := range int32(heldEvents) {
		h.push(due{at: Time(r.Int64N(int64(heldTime))), id: i})
	}
	for b.Loop() {
		d := h.pop()
		h.push(due{at: d.at + Time(r.Int64N(int64(heldTime))), id: d.id})
	}
}
