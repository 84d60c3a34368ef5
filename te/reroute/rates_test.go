package reroute

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sextant/te/topology"
)

// fourWays is a network of four paths from a to z, of 1 Gb/s, and a decider for it.
func fourWays(t *testing.T, change func(*Settings)) (*Decider, [][]topology.Edge) {
	t.Helper()
	var links []string
	for _, via := range []string{"b", "c", "d", "e"} {
		links = append(links, "a-"+via+":1000000", via+"-z:1000000")
	}
	g := network(t, links...)
	s := Defaults(Sextant)
	s.Noise, s.BackoffLeast, s.BackoffMost = 0, 0, 0
	s.Window = 10 * time.Millisecond // in which 17 reports come of a full link
	if change != nil {
		change(&s)
	}
	var paths [][]topology.Edge
	for _, via := range []string{"b", "c", "d", "e"} {
		paths = append(paths, route(t, g, "a", via, "z"))
	}
	return decider(t, g, s, 1), paths
}

// The share of one more flow is what filling the link in small steps gives it: each step goes to
// all flows that want more.
func TestShareIsMaxMin(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		d, paths := fourWays(t, nil)
		r, e := d.rates, paths[0][0]
		wants := make([]float64, random.IntN(8))
		for i := range wants {
			f := &rated{key: tuple(i), reports: 20 * random.Float64() / float64(1+random.IntN(9))}
			wants[i] = f.reports * r.unit
			r.flows[f.key] = f
			r.put(f, paths[0])
		}
		var but *rated
		if len(wants) > 0 && random.IntN(2) == 0 {
			but = r.flows[tuple(0)]
			wants = wants[1:]
		}
		got := make([]float64, len(wants))
		fresh, left := 0.0, 1.0
		const step = 1e-4
		for left > 0 {
			for i := range got {
				if got[i] < wants[i] {
					got[i] += step
					left -= step
				}
			}
			fresh += step
			left -= step
		}
		if share := r.share(e, but, 0, 0); math.Abs(share-fresh) > 20*step {
			t.Fatalf("others want %.4v: share %.4f, filling gives %.4f", wants, share, fresh)
		}
	}
}

// Rates follow from the part of packets with telemetry, and end with the flow.
func TestRatesFollowReports(t *testing.T) {
	d, paths := fourWays(t, nil)
	random := rand.New(rand.NewPCG(3, 4))
	// 0.4 of 1 Gb/s are 33.3 packets of 1500 bytes per ms, a fiftieth of which is reported.
	gap := 1.0 / (0.4 * 1e9 / 12000 * 0.02)
	at, sum, n := 0.0, 0.0, 0
	for at < 2 {
		at += random.ExpFloat64() * gap
		now := time.Duration(at * float64(time.Second))
		d.Observe(&Report{Flow: tuple(1), Path: paths[0],
			Queues: []Queue{{Edge: paths[0][0]}}, At: now})
		// just before the next one, an estimate has no report of its own
		sum += (d.rates.flows[tuple(1)].reports - 1) * d.rates.unit
		n++
	}
	if mean := sum / float64(n); mean < 0.36 || mean > 0.46 {
		t.Errorf("a flow at 0.4 of a link: %.3f in the mean of %d reports", mean, n)
	}
	later := time.Duration(at*float64(time.Second)) + 200*time.Millisecond
	d.Observe(&Report{Flow: tuple(2), Path: paths[1],
		Queues: []Queue{{Edge: paths[1][0]}}, At: later})
	if d.rates.flows[tuple(1)] != nil || len(d.rates.on[paths[0][0]]) != 0 {
		t.Error("a flow that ended is still counted")
	}
}

// Flows that share one path spread over all, one by one, until each path has as many, and then they
// stay: also if all report at the same moment, and queues tell nothing.
func TestFastFlowsSpread(t *testing.T) {
	d, paths := fourWays(t, func(s *Settings) { s.Choices = 8 })
	const flows = 8
	at := make([]int, flows) // path of each
	moves, late := 0, 0
	for step := range 400 {
		now := time.Duration(step) * 600 * time.Microsecond
		count := make([]int, len(paths))
		for _, p := range at {
			count[p]++
		}
		var reports []*Report
		for i, p := range at {
			// of a flow with the n-th part of 1 Gb/s, a report comes in n steps
			if step%count[p] == i%count[p] {
				reports = append(reports, &Report{Flow: tuple(i), From: 0,
					To: d.graph.To(paths[0][1]), Path: paths[p], At: now,
					Queues: []Queue{{Edge: paths[p][0], Occupancy: 0.26}}})
			}
		}
		d.Batch(reports, func(decision Decision) {
			if decision.Verdict != Moved {
				return
			}
			if moves++; step > 200 {
				late++
			}
			at[decision.Flow.SrcPort] = slices.IndexFunc(paths, func(p []topology.Edge) bool {
				return slices.Equal(p, decision.Path)
			})
		})
	}
	count := make([]int, len(paths))
	for _, p := range at {
		count[p]++
	}
	if most := slices.Max(count); most > 3 || late > 1 || moves > 3*flows {
		t.Errorf("%v flows on the paths after %d moves, %d of them late", count, moves, late)
	}
}

// A link that is full of what no report tells of leaves a flow what it has there; one that is free,
// all.
func TestUnseenTraffic(t *testing.T) {
	d, paths := fourWays(t, func(s *Settings) { s.Sampling = 1 })
	for _, e := range slices.Concat(paths[1:]...) {
		d.weights.Observe(e, 0.9, 0)
	}
	r := &Report{Flow: tuple(1), From: 0, To: d.graph.To(paths[0][1]), Path: paths[0],
		Queues: []Queue{{Edge: paths[0][0], Occupancy: 0.3}}}
	if got := d.Report(r); got.Verdict != NotLighter {
		t.Errorf("all others are full, and the flow is %v", got.Verdict)
	}
	d.weights.SetUp(paths[2][0], false)
	d.weights.SetUp(paths[2][0], true)
	d.weights.SetUp(paths[2][1], false)
	d.weights.SetUp(paths[2][1], true)
	r.At = 100 * time.Microsecond
	if got := d.Report(r); got.Verdict != Moved || !slices.Equal(got.Path, paths[2]) {
		t.Errorf("one is free, and the flow is %v onto %v", got.Verdict, got.Path)
	}
}
