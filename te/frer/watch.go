package frer

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Sample is what the counters of a recovery and its paths show at one moment. They count up from
// any start.
type Sample struct {
	Passed    uint64
	Discarded uint64   // Duplicate + Rogue + OldEpoch
	Paths     []uint64 // packets by path
}

// Finding is a fault that elimination hides: packets still arrive, but with less protection than
// there should be.
type Finding struct {
	Path   int           // by number from 0; -1: of all
	Silent time.Duration // nothing has come by the path since a packet that it missed, so long ago
	Short  int           // so many paths are missing, of which none has ever brought a packet
	Excess uint64        // copies that came beyond one per path: something duplicates or loops
}

// String says it to an operator. Paths are counted from 1.
func (f Finding) String() string {
	switch {
	case f.Excess > 0:
		return fmt.Sprintf("%d copies more than there are paths: something duplicates packets, "+
			"or they loop", f.Excess)
	case f.Short > 0:
		return fmt.Sprintf("packets come by %d paths fewer than there are copies", f.Short)
	}
	return fmt.Sprintf("path %d has been silent for %s", f.Path+1,
		f.Silent.Round(100*time.Millisecond))
}

// Watch finds latent errors (IEEE 802.1CB-2017 section 7.4.4) in samples. The standard compares
// sums of all paths, and so can tell only that something is wrong; here packets are counted by
// path, and it can say what. A path is silent if packets come by another one that it misses: time
// in which the flow itself sends nothing does not count.
type Watch struct {
	patience time.Duration
	copies   int
	before   Sample
	paths    []watched
	awaited  []awaited // oldest first
	begun    bool
}

// awaited are copies of packets that passed, which have not come yet: the slower path brings them
// later, when the flow may pause already.
type awaited struct {
	since  time.Duration
	copies uint64
}

// watched is what is known of a path.
type watched struct {
	counts []uint64      // of all paths, when a packet last came by this one
	missed time.Duration // when one was first seen to be missed since; -1: none was
	heard  time.Duration // when the last one came; -1: never since the watch began
}

const (
	// excessShare is how many copies beyond one per path are taken for chance, as a share of the
	// packets passed: a period ends in the middle of copies.
	excessShare = 0.1
	// leastMissed is how many packets in a row a path misses before it is taken for silent: fewer
	// can be lost one by one.
	leastMissed = 5
)

// NewWatch returns a watch that reports a path when it has missed all packets for so long, and 5 of
// them. No shorter than the difference in delay between paths. Copies is how many paths are to
// carry each packet, the others being spares of which nothing is expected; 0: all of them.
func NewWatch(patience time.Duration, copies int) *Watch {
	return &Watch{patience: patience, copies: copies}
}

// Observe takes a sample at the time now, measured from any fixed moment, and returns what is
// wrong.
func (w *Watch) Observe(now time.Duration, s Sample) []Finding {
	if !w.begun || len(s.Paths) != len(w.paths) || s.lessThan(w.before) {
		w.begin(now, s)
		return nil
	}
	for i := range w.paths {
		w.paths[i].observe(now, s, i, w.before)
	}
	findings := w.silent(now, s)
	passed, discarded := s.Passed-w.before.Passed, s.Discarded-w.before.Discarded
	w.await(now, passed*uint64(max(1, w.expected(), w.bringing(now))-1))
	excess := w.unexpected(discarded)
	if excess > uint64(excessShare*float64(passed))+1 {
		findings = append(findings, Finding{Path: -1, Excess: excess})
	}
	w.before = s
	return findings
}

// lessThan tells that counters began anew: one has fallen back.
func (s Sample) lessThan(before Sample) bool {
	for i, packets := range s.Paths {
		if packets < before.Paths[i] {
			return true
		}
	}
	return s.Passed < before.Passed || s.Discarded < before.Discarded
}

// await expects copies of packets that passed just now, for as long as a path may be late.
func (w *Watch) await(now time.Duration, copies uint64) {
	w.awaited = slices.DeleteFunc(w.awaited,
		func(a awaited) bool { return a.copies == 0 || now-a.since > w.patience })
	w.awaited = append(w.awaited, awaited{now, copies})
}

// unexpected is how many of the copies that came were awaited no more.
func (w *Watch) unexpected(came uint64) uint64 {
	for i := range w.awaited {
		a := &w.awaited[i]
		taken := min(a.copies, came)
		a.copies -= taken
		came -= taken
	}
	return came
}

// bringing is how many paths have just brought packets: a silent path that is tried again is one
// more than expected.
func (w *Watch) bringing(now time.Duration) (count int) {
	for _, p := range w.paths {
		if p.heard == now && p.missed < 0 {
			count++
		}
	}
	return count
}

// begin takes a sample to compare later ones with. Which copies have not come yet is not known: it
// can be all that are missing.
func (w *Watch) begin(now time.Duration, s Sample) {
	w.begun, w.before, w.paths, w.awaited = true, s, make([]watched, len(s.Paths)), nil
	for i, packets := range s.Paths {
		w.paths[i] = watched{counts: s.Paths, missed: -1, heard: -1}
		if packets > 0 {
			w.paths[i].heard = 0
		}
	}
	if all := s.Passed * uint64(max(1, w.expected())-1); all > s.Discarded {
		w.await(now, all-s.Discarded)
	}
}

// observe compares a path with the others.
func (p *watched) observe(now time.Duration, s Sample, path int, before Sample) {
	if s.Paths[path] != before.Paths[path] {
		*p = watched{counts: s.Paths, missed: -1, heard: now}
		return
	}
	if p.missed < 0 && p.misses(s) > 0 {
		p.missed = now
	}
}

// misses is how many packets came by another path since one came by this.
func (p *watched) misses(s Sample) (most uint64) {
	for i, packets := range s.Paths {
		most = max(most, packets-p.counts[i])
	}
	return most
}

// expected is how many paths are to carry.
func (w *Watch) expected() int {
	if w.copies == 0 || w.copies > len(w.paths) {
		return len(w.paths)
	}
	return w.copies
}

// silent lists as many silent paths as are missing, those first that brought packets last.
func (w *Watch) silent(now time.Duration, s Sample) (findings []Finding) {
	var silent []int
	for i, p := range w.paths {
		if p.missed >= 0 && now-p.missed >= w.patience && p.misses(s) >= leastMissed {
			silent = append(silent, i)
		}
	}
	short := w.expected() - (len(w.paths) - len(silent))
	if short <= 0 {
		return nil
	}
	slices.SortStableFunc(silent, func(a, b int) int {
		return cmp.Compare(w.paths[b].heard,
			w.paths[a].heard)
	})
	never := 0
	for _, i := range silent[:short] {
		if w.paths[i].heard < 0 && w.expected() < len(w.paths) {
			never++ // which of the spares was to carry is not known
			continue
		}
		findings = append(findings, Finding{Path: i, Silent: now - w.paths[i].missed})
	}
	if never > 0 {
		findings = append(findings, Finding{Path: -1, Short: never})
	}
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Compare(uint(a.Path),
			uint(b.Path))
	})
	return findings
}
