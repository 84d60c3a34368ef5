package controller

import (
	"testing"
	"time"

	"sextant/packet/flow"
	"sextant/te/reroute"
)

// A verdict without a choice is said once in a while for each flow; all others always.
func TestRepeats(t *testing.T) {
	said := repeats{}
	for i, step := range []struct {
		port    uint16
		verdict reroute.Verdict
		at      time.Duration
		again   bool
	}{
		{1, reroute.OnlyPath, 0, false},
		{1, reroute.OnlyPath, time.Second, true},
		{2, reroute.OnlyPath, time.Second, false},
		{1, reroute.Pinned, 2 * time.Second, false},
		{1, reroute.Pinned, 3 * time.Second, true},
		{1, reroute.Moved, 3 * time.Second, false},
		{1, reroute.Moved, 3 * time.Second, false},
		{1, reroute.Pinned, 4 * time.Second, false},
		{1, reroute.NotLighter, 4 * time.Second, false},
		{1, reroute.NotLighter, 4 * time.Second, false},
		{2, reroute.OnlyPath, 10 * time.Second, true},
		{2, reroute.OnlyPath, 11 * time.Second, false},
	} {
		d := reroute.Decision{Flow: flow.Tuple{SrcPort: step.port}, Verdict: step.verdict,
			At: step.at}
		if got := said.again(&d); got != step.again {
			t.Errorf("step %d: %v of flow %d at %v is left out: %v, want %v", i, step.verdict,
				step.port, step.at, got, step.again)
		}
	}
	for i := range 2 * repeatsMost {
		d := reroute.Decision{Flow: flow.Tuple{SrcPort: uint16(i), DstPort: uint16(i >> 16)},
			Verdict: reroute.OnlyPath}
		said.again(&d)
	}
	if len(said) > repeatsMost {
		t.Errorf("%d flows are remembered, want %d at most", len(said), repeatsMost)
	}
}
