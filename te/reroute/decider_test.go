package reroute

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sextant/te/topology"
)

// Figure 1 of the paper: traffic from S1 to S5 goes by S2, whose queue is fuller than that of S3,
// and moves to S1 S3 S4 S5. The figure's own numbers are not legible in the text.
func TestFigure1(t *testing.T) {
	g := network(t, "S1-S2", "S1-S3", "S2-S4", "S3-S4", "S4-S5")
	d := decider(t, g, Defaults(Smoothie), 3)
	old := route(t, g, "S1", "S2", "S4", "S5")
	report := func(at time.Duration) *Report {
		return &Report{Flow: tuple(1), From: 0, To: g.To(old[2]), Path: old, Pause: true, At: at,
			Queues: []Queue{{Edge: old[0], Occupancy: 5.0 / 64},
				{Edge: old[1], Occupancy: 50.0 / 64}, {Edge: old[2], Occupancy: 1.0 / 64}}}
	}
	// Two draws miss S3 with probability 1/4: then there is nothing to do, and a report after the
	// back-off tries again.
	at := time.Duration(0)
	decision := d.Report(report(at))
	for decision.Verdict == NotLighter {
		at += time.Second
		decision = d.Report(report(at))
	}
	if got := nodes(t, g, decision.Path); decision.Verdict != Moved || got != "S1 S3 S4 S5" {
		t.Fatalf("%v %s, not moved to S1 S3 S4 S5", decision.Verdict, got)
	}
	if want := 56.0 / 64; math.Abs(decision.Current.Weight.Value-want) > 1e-12 {
		t.Errorf("the path in use weighs %v, not %v", decision.Current.Weight.Value, want)
	}
	if got := d.Report(report(at + 499*time.Millisecond)).Verdict; got != BackingOff {
		t.Errorf("half a second later: %v", got)
	}
	// A report of a packet that went the old way is no reason to export the same path again.
	for range 20 {
		at += time.Second
		if got := d.Report(report(at)).Verdict; got != Exported && got != NotLighter {
			t.Fatalf("the same path again: %v", got)
		}
	}
}

// Algorithm 1, written down from the paper's lines, on random networks and weights.
func TestAlgorithm1(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 4))
	seen := map[Verdict]int{}
	for i := range 3000 {
		g := randomNetwork(t, random, 8, 20)
		s := Defaults(Smoothie)
		s.Margin = 0.1
		d := decider(t, g, s, uint64(i))
		weight := make([]float64, g.Edges())
		var queues []Queue
		for e := range weight {
			weight[e] = float64(random.IntN(8)) / 8
			queues = append(queues, Queue{Edge: topology.Edge(e), Occupancy: weight[e]})
		}
		from, to := topology.Node(0), topology.Node(1+random.IntN(g.Nodes()-1))
		all := allPaths(g, from, to)
		if len(all) < 2 {
			continue
		}
		r := &Report{Flow: tuple(i), From: from, To: to, Pause: true, Queues: queues,
			Path: all[random.IntN(len(all))]}
		before := all[random.IntN(len(all))]
		d.flow(r).Path = before // "already exported"
		decision := d.Report(r)
		want, path := algorithm1(decision, weight, s.Margin, before)
		if decision.Verdict != want || !slices.Equal(decision.Path, path) {
			t.Fatalf("network %d: %v %v, Algorithm 1 says %v %v", i, decision.Verdict,
				decision.Path, want, path)
		}
		seen[want]++
	}
	for _, v := range []Verdict{Moved, NotLighter, Exported} {
		if seen[v] < 100 {
			t.Errorf("%v came %d times", v, seen[v])
		}
	}
}

// algorithm1 is lines 20 to 35 for the paths that were drawn.
func algorithm1(d Decision, weight []float64, delta float64,
	exported []topology.Edge) (Verdict, []topology.Edge) {
	w := func(path []topology.Edge) (sum float64) {
		for _, e := range path {
			sum += weight[e]
		}
		return sum
	}
	p := d.Candidates[1].Path
	if w(d.Candidates[0].Path) < w(d.Candidates[1].Path) {
		p = d.Candidates[0].Path
	}
	if w(d.Current.Path) < w(p)+delta {
		return NotLighter, nil
	}
	if slices.Equal(p, exported) {
		return Exported, nil
	}
	return Moved, p
}

// Back-offs are spread over the whole of their range, one per flow.
func TestBackoffIsPerFlow(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d")
	d := decider(t, g, Defaults(Smoothie), 1)
	to, _ := g.Lookup("d")
	var least, most time.Duration = time.Hour, 0
	for i := range 2000 {
		d.Report(&Report{Flow: tuple(i), From: 0, To: to, Pause: true})
		f, ok := d.Flow(tuple(i))
		if !ok {
			t.Fatal("the flow is not known")
		}
		least, most = min(least, f.Until), max(most, f.Until)
	}
	if least < 500*time.Millisecond || least > 505*time.Millisecond ||
		most > time.Second || most < 995*time.Millisecond {
		t.Errorf("back-offs from %v to %v: 0.5 s to 1 s are wanted", least, most)
	}
}

// A simulation says what a report would do, and neither it nor the draws after it change anything.
func TestSimulateChangesNothing(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d", "a-e", "e-d")
	to, _ := g.Lookup("d")
	for _, name := range Policies() {
		p, err := ParsePolicy(name)
		if err != nil {
			t.Fatal(err)
		}
		d := decider(t, g, Defaults(p), 1)
		for i := range 50 {
			r := &Report{Flow: tuple(i % 5), From: 0, To: to, Pause: true,
				Path: route(t, g, "a", "b", "d"), At: time.Duration(i) * time.Second,
				Queues: []Queue{{Edge: between(t, g, "b-d"), Occupancy: 0.9}}}
			bare := *r
			bare.Queues = nil
			for _, q := range r.Queues {
				d.weights.Observe(q.Edge, q.Occupancy, r.At)
			}
			first, again := d.Simulate(&bare), d.Simulate(&bare)
			real := d.answer(r) // the queues are noted
			if first.Verdict != again.Verdict || first.Verdict != real.Verdict ||
				!slices.Equal(first.Path, real.Path) {
				t.Fatalf("%s, report %d: simulated %v %v and %v, then came %v %v", name, i,
					first.Verdict, first.Path, again.Verdict, real.Verdict, real.Path)
			}
		}
	}
}

func TestPinnedFlowsStay(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d")
	to, _ := g.Lookup("d")
	d := decider(t, g, Defaults(Sextant), 1)
	path := route(t, g, "a", "b", "d")
	if err := d.Pin(tuple(1), []topology.Edge{path[0], path[0]}, 0); err == nil {
		t.Error("a path with a gap was pinned")
	}
	if err := d.Pin(tuple(1), path, 0); err != nil {
		t.Fatal(err)
	}
	r := &Report{Flow: tuple(1), From: 0, To: to, Path: path, Pause: true,
		Queues: []Queue{{Edge: path[1], Occupancy: 1}}}
	if got := d.Report(r).Verdict; got != Pinned {
		t.Errorf("a pinned flow: %v", got)
	}
	if d.Forget(time.Hour) != 0 {
		t.Error("a pinned flow was forgotten")
	}
	if !d.Unpin(tuple(1)) || d.Unpin(tuple(1)) {
		t.Error("a flow is unpinned once")
	}
	if got := d.Report(r); got.Verdict != Moved || nodes(t, g, got.Path) != "a c d" {
		t.Errorf("afterwards: %v %s", got.Verdict, nodes(t, g, got.Path))
	}
	if n := d.Forget(time.Hour); n != 1 {
		t.Errorf("%d flows were forgotten", n)
	}
}
