package linkemu

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Frames leave by their times, and those of the same time as they came.
func TestHeapOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h dueHeap
		var want, got []due
		for i, at := range rapid.SliceOf(rapid.Int64Range(0, 20)).Draw(t, "times") {
			d := due{at: time.Duration(at), order: uint64(i)}
			h.push(d)
			want = append(want, d)
		}
		slices.SortStableFunc(want, func(a, b due) int { return int(a.at - b.at) })
		for len(h) > 0 {
			got = append(got, h.pop())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v leave, want %v", got, want)
		}
	})
}
