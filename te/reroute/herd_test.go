package reroute

import (
	"math"
	"testing"
)

// Many flows on one path pause at once. With herd at 0, all of them leave for the other path, which
// gets what the first had; with it, flows stay as soon as what moved is expected to make both
// alike. When reports have had the time to show it, the expectation is gone.
func TestHerd(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d")
	full := route(t, g, "a", "b", "d")
	from, to := g.From(full[0]), g.To(full[1])
	for _, herd := range []float64{0, 0.01, 0.02, 0.05, 0.1} {
		s := Defaults(Sextant)
		s.Ratio = 0
		s.Herd, s.Noise, s.BackoffLeast, s.BackoffMost = herd, 0, 0, 0
		d := decider(t, g, s, 1)
		d.weights.Observe(full[0], 0.9, 0)
		d.weights.links[full[0]].variance = 0
		var reports []*Report
		for i := range 40 {
			reports = append(reports, &Report{Flow: tuple(i), From: from, To: to, Path: full,
				Pause: true})
		}
		moved := 0
		d.Batch(reports, func(d Decision) {
			if d.Verdict == Moved {
				moved++
			}
		})
		// A move adds herd to both links of the other path, and takes it off the first one here; of
		// the second one, nothing waits. So flows move while 0.9 - k herd > 2 k herd + margin.
		want := 40
		if herd > 0 {
			want = min(want, int(math.Ceil((0.9-s.Margin)/(3*herd))))
		}
		// without herd, now and then all that a flow draws is the path that it has
		if moved != want && (herd > 0 || moved < 35) {
			t.Errorf("herd %v: %d of 40 flows have moved, not %d", herd, moved, want)
		}
		later := d.Simulate(&Report{Flow: tuple(99), From: from, To: to, Path: full, Pause: true,
			At: s.Settle})
		if later.Verdict != Moved || later.Candidates[0].Weight.Value != 0 {
			t.Errorf("herd %v, later: %+v", herd, later)
		}
	}
}
