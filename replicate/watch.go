package replicate

import (
	"fmt"
	"time"
)

// Sample is what the counters of a recovery and its paths show at one moment. They count up from any start.
type Sample struct {
	Passed    uint64
	Discarded uint64   // Duplicate + Rogue + OldEpoch
	Paths     []uint64 // packets by path
}

// Finding is a fault that elimination hides: packets still arrive, but with less protection than there should be.
type Finding struct {
	Path   int           // by number from 0; -1: of all
	Silent time.Duration // nothing has come by the path for so long, though packets came by another
	Excess uint64        // copies that came beyond one per path: something duplicates or loops
}

// String says it to an operator. Paths are counted from 1.
func (f Finding) String() string {
	if f.Excess > 0 {
		return fmt.Sprintf("%d copies more than there are paths: something duplicates packets, or they loop", f.Excess)
	}
	return fmt.Sprintf("path %d has been silent for %s", f.Path+1, f.Silent.Round(100*time.Millisecond))
}

// Watch finds latent errors (IEEE 802.1CB-2017 section 7.4.4) in samples. The standard compares sums of all paths, and so can tell
// only that something is wrong; here packets are counted by path, and it can say what.
type Watch struct {
	patience time.Duration
	before   Sample
	heard    []time.Duration // when the path's counter was seen to rise
	begun    bool
}

// excessShare is how many copies beyond one per path are taken for chance, as a share of the packets passed: a period ends in the
// middle of copies.
const excessShare = 0.1

// NewWatch returns a watch that reports a path after it was silent for so long. No shorter than the difference in delay between paths.
func NewWatch(patience time.Duration) *Watch { return &Watch{patience: patience} }

// Observe takes a sample at the time now, measured from any fixed moment, and returns what is wrong.
func (w *Watch) Observe(now time.Duration, s Sample) []Finding {
	if !w.begun || len(s.Paths) != len(w.heard) || s.Passed < w.before.Passed {
		w.begun, w.before, w.heard = true, s, make([]time.Duration, len(s.Paths))
		for i := range w.heard {
			w.heard[i] = now
		}
		return nil
	}
	var findings []Finding
	for i, packets := range s.Paths {
		if packets != w.before.Paths[i] {
			w.heard[i] = now
		}
	}
	for i, heard := range w.heard {
		// A flow that pauses is silent on all paths, and that is no fault.
		if silent := now - heard; silent >= w.patience && w.latest()-heard >= w.patience {
			findings = append(findings, Finding{Path: i, Silent: silent})
		}
	}
	passed, discarded := s.Passed-w.before.Passed, s.Discarded-w.before.Discarded
	most := passed * uint64(len(s.Paths)-1)
	if discarded > most+uint64(excessShare*float64(passed))+1 {
		findings = append(findings, Finding{Path: -1, Excess: discarded - most})
	}
	w.before = s
	return findings
}

// latest returns when any path was heard.
func (w *Watch) latest() time.Duration {
	var latest time.Duration
	for _, heard := range w.heard {
		latest = max(latest, heard)
	}
	return latest
}
