package merge

import (
	"fmt"
	"slices"
	"time"

	"sextant/agent/api"
	"sextant/datapath"
	"sextant/te/frer"
)

// Elimination hides faults: with one path dead all packets still arrive. So the paths are watched
// (IEEE 802.1CB-2017 section 7.4.4).

const (
	// watchInterval is how often the counters of paths are looked at.
	watchInterval = 250 * time.Millisecond
	// leastPatience is how long a path is silent before that is said, at least; a path that is
	// later than others by design gets more.
	leastPatience = time.Second
	// RecentSpan is the time over which the present loss and delay are measured.
	RecentSpan = 10 * time.Second
)

// mergeWatch is what is known of an instance beside its counters.
type mergeWatch struct {
	watch    *frer.Watch
	copies   int // that it expects
	findings []frer.Finding
	recent   []mergeSample // of recentSpan, oldest first
}

// mergeSample are the counters at one moment.
type mergeSample struct {
	at    time.Duration
	stats datapath.InstanceStats
}

// watchMerges looks at all protected flows once, and tells of paths that have fallen silent or come
// back.
func (m *Room) watchMerges() {
	if m.Runs == nil {
		return
	}
	watches := map[uint32]*mergeWatch{}
	for _, i := range m.Runs.Instances {
		w := m.Runs.watches[i.Index]
		if w == nil || w.copies != i.Copies {
			w = &mergeWatch{watch: frer.NewWatch(max(leastPatience, 4*i.Skew), i.Copies),
				copies: i.Copies}
		}
		watches[i.Index] = w
		stats, err := m.Runs.Program.Stats(i.Index, len(i.Flows))
		if err != nil {
			m.Log.Warn("the paths of a protected flow can't be watched", "sid", i.Prefix,
				"error", err)
			continue
		}
		found := w.watch.Observe(m.Now(), sampleOf(stats))
		m.tellFindings(i, w.findings, found)
		w.findings = found
		w.remember(mergeSample{m.Now(), stats})
	}
	m.Runs.watches = watches
}

func sampleOf(s datapath.InstanceStats) frer.Sample {
	sample := frer.Sample{Passed: s.Passed, Discarded: s.Duplicate + s.Rogue + s.OldEpoch}
	for _, p := range s.Paths {
		sample.Paths = append(sample.Paths, p.Packets)
	}
	return sample
}

// remember keeps the samples of recentSpan.
func (w *mergeWatch) remember(s mergeSample) {
	w.recent = append(w.recent, s)
	for len(w.recent) > 1 && s.at-w.recent[0].at > RecentSpan {
		w.recent = w.recent[1:]
	}
}

// tellFindings tells what is new and what is over.
func (m *Room) tellFindings(i MergeInstance, before, now []frer.Finding) {
	for _, f := range now {
		if !finds(before, f) {
			m.Tell(findingEvent(i, f, false))
		}
	}
	for _, f := range before {
		if !finds(now, f) {
			m.Tell(findingEvent(i, f, true))
		}
	}
}

// finds reports whether the fault is in the list, for however long, and however many copies.
func finds(list []frer.Finding, fault frer.Finding) bool {
	return slices.ContainsFunc(list, func(f frer.Finding) bool {
		return f.Path == fault.Path && (f.Excess > 0) == (fault.Excess > 0)
	})
}

func findingEvent(i MergeInstance, f frer.Finding, over bool) api.Event {
	e := api.Event{SID: i.Prefix}
	switch {
	case f.Short > 0 && over:
		e.Status, e.Reason = "paths complete", "packets come by as many paths as there are copies"
	case f.Short > 0:
		e.Status, e.Reason = "paths short", f.String()
	case f.Path < 0 && over:
		e.Status, e.Reason = "excess over", "there are no more copies than paths"
	case f.Path < 0:
		e.Status, e.Reason = "excess", f.String()
	case over:
		e.Flow, e.Status, e.Reason = uint32(i.Flows[f.Path]), "back",
			"packets come by this path again"
	default:
		e.Flow, e.Status = uint32(i.Flows[f.Path]), "silent"
		e.Reason = fmt.Sprintf("nothing has come by this path for %s, though packets came by "+
			"another", f.Silent.Round(100*time.Millisecond))
	}
	return e
}

// Warnings tells of what elimination hides.
func (m *Room) Warnings() []string {
	var warnings []string
	if m.Runs == nil {
		return nil
	}
	if warning := m.ordering.warning(); warning != "" {
		warnings = append(warnings, warning)
	}
	for _, i := range m.Runs.Instances {
		w := m.Runs.watches[i.Index]
		if w == nil {
			continue
		}
		for _, f := range w.findings {
			if f.Path < 0 {
				warnings = append(warnings, fmt.Sprintf("sid %s: %s", i.Prefix, f))
				continue
			}
			warnings = append(warnings, fmt.Sprintf("sid %s: the path of flow %d has been silent "+
				"for %s: packets of the others have no "+
				"copy there any more; see: sextant merge list", i.Prefix, i.Flows[f.Path],
				f.Silent.Round(100*time.Millisecond)))
		}
	}
	return warnings
}
