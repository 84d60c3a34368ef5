package loadgen

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Percentiles lie between the least and the greatest time, whichever they are.
func TestPercentilesAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSample()
		for _, d := range rapid.SliceOfN(rapid.Int64Range(1, int64(2*time.Hour)), 1,
			20).Draw(t, "times") {
			s.add(time.Duration(d))
		}
		d := s.distribution()
		order := []float64{d.MinMs, d.P50Ms, d.P90Ms, d.P99Ms, d.P999Ms, d.MaxMs}
		if !slices.IsSorted(order) {
			t.Errorf("not in order: %v", order)
		}
	})
}
