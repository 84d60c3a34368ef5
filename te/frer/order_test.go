package frer

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestOrderer(t *testing.T) {
	o := NewOrderer[uint32](10*ms, time.Second)
	push := func(n uint32, at time.Duration, want ...uint32) {
		t.Helper()
		if got := o.Push(n, n, at); !slices.Equal(got, want) {
			t.Errorf("push %d at %s releases %v, want %v", n, at, got, want)
		}
	}
	push(1<<32-2, 0, 1<<32-2)
	push(0, 1*ms)
	push(1<<32-1, 2*ms, 1<<32-1, 0) // the gap closes, over the end of the numbers
	push(3, 3*ms)
	push(2, 5*ms)
	if at, ok := o.Due(); !ok || at != 13*ms {
		t.Errorf("due %s, %v; want 13ms", at, ok)
	}
	push(5, 6*ms)
	if got := o.Expire(12 * ms); got != nil {
		t.Errorf("released %v before its time", got)
	}
	// Number 1 is lost. 3 was held the longest, but 2 goes first.
	if got := o.Expire(13 * ms); !slices.Equal(got, []uint32{2, 3}) {
		t.Errorf("released %v, want 2 and 3", got)
	}
	push(1, 14*ms, 1) // late: at once
	push(4, 15*ms, 4, 5)
	push(900, 2*time.Second, 900) // after a silence
	if _, ok := o.Due(); ok {
		t.Error("something is due though nothing is held")
	}
}

// Whatever the order of arrival: each packet is released once, none is held beyond the bound, and
// packets that come within the bound leave in order.
func TestOrdererKeepsItsPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const bound = 20 * ms
		start := rapid.Uint32().Draw(t, "start")
		// in ms; -: in the order of numbers
		late := rapid.SliceOfN(rapid.IntRange(0, 15), 1, 200).Draw(t, "lateness")
		type arrival struct {
			number uint32
			at     time.Duration
		}
		var arrivals []arrival
		for i, l := range late {
			arrivals = append(arrivals, arrival{start + uint32(i), time.Duration(i+l) * ms})
		}
		slices.SortStableFunc(arrivals, func(a, b arrival) int { return int(a.at - b.at) })
		o := NewOrderer[uint32](bound, time.Hour)
		var released []uint32
		for _, a := range arrivals {
			released = append(released, o.Push(a.number, a.number, a.at)...)
			if due, ok := o.Due(); ok && due > a.at+bound {
				t.Fatalf("a packet is held until %s at %s", due, a.at)
			}
		}
		released = append(released, o.Expire(time.Hour)...)
		if len(released) != len(late) {
			t.Fatalf("%d of %d packets released", len(released), len(late))
		}
		// Those from the first arrival on can all be put in order.
		from := slices.Index(released, arrivals[0].number)
		behind := slices.DeleteFunc(released[from:],
			func(n uint32) bool { return int32(n-arrivals[0].number) < 0 })
		if !slices.IsSortedFunc(behind, func(a, b uint32) int { return int(int32(a - b)) }) {
			t.Fatalf("released %v", behind)
		}
	})
}
