package reroute

import (
	"slices"
	"testing"
	"time"

	"sextant/te/topology"
)

// What two paths share says nothing about which is better, nor does its noise.
func TestSextantLeavesOutWhatIsShared(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d", "d-e")
	to, _ := g.Lookup("e")
	d := decider(t, g, Defaults(Sextant), 1)
	current, shared := route(t, g, "a", "b", "d", "e"), between(t, g, "d-e")
	for i := range 100 { // noisy
		d.weights.Observe(shared, float64(i%2), time.Duration(i))
	}
	r := &Report{Flow: tuple(1), From: 0, To: to, Path: current, Pause: true, At: 100,
		Queues: []Queue{{Edge: current[1], Occupancy: 0.1}}}
	if got := d.Simulate(r).Verdict; got != NotLighter {
		t.Errorf("nothing differs, and the flow is %v", got)
	}
	for range 100 {
		d.Observe(r)
	}
	if got := d.Report(r); got.Verdict != Moved {
		t.Errorf("0.1 against 0 with no noise of its own: %v", got.Verdict)
	}
}

// The noisier the weights, the greater the difference that moves a flow.
func TestSextantHeedsNoise(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d")
	to, _ := g.Lookup("d")
	for _, c := range []struct {
		swing float64
		want  Verdict
	}{{0, Moved}, {0.02, Moved}, {0.29, NotLighter}} {
		s := Defaults(Sextant)
		s.Ratio = 0
		d := decider(t, g, s, 1)
		current := route(t, g, "a", "b", "d")
		for i := range 400 {
			d.weights.Observe(current[1], 0.3+c.swing*float64(i%2*2-1), time.Duration(i))
			d.weights.Observe(between(t, g, "c-d"), 0.15, time.Duration(i))
		}
		r := &Report{Flow: tuple(1), From: 0, To: to, Path: current, Pause: true, At: 400}
		if got := d.Report(r).Verdict; got != c.want {
			t.Errorf("queues that swing by %v: %v, not %v", c.swing, got, c.want)
		}
	}
}

// When a link fails, the flows on it move at once, also those that were moved a moment ago, the
// watched ones first; and no path over the link is drawn until it is back.
func TestSextantAvoidsWhatFailed(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d", "a-e", "e-d")
	to, _ := g.Lookup("d")
	d := decider(t, g, Defaults(Sextant), 1)
	failing := between(t, g, "b-d")
	via := map[int]bool{}
	for i := range 60 {
		r := &Report{Flow: tuple(i), From: 0, To: to, Pause: true, Class: i % 3}
		if contains(d.Report(r).Path, failing) {
			via[i] = true
		}
	}
	var classes []int
	moved := map[int]bool{}
	d.SetUp(failing, false, 0, func(decision Decision) {
		if decision.Verdict != Moved || contains(decision.Path, failing) {
			t.Errorf("%v onto %s", decision.Verdict, nodes(t, g, decision.Path))
		}
		classes = append(classes, decision.Class)
		moved[int(decision.Flow.SrcPort)] = true
	})
	if len(via) < 10 || len(moved) != len(via) {
		t.Errorf("%d flows were on the link, %d moved", len(via), len(moved))
	}
	slices.Reverse(classes)
	if !slices.IsSorted(classes) {
		t.Errorf("classes moved in the order %v", classes)
	}
	for _, f := range d.flows {
		if contains(f.Path, failing) {
			t.Error("a flow is still on the link")
		}
	}
	d.SetUp(failing, true, time.Minute, func(Decision) { t.Error("a flow moved back") })
	if got := d.paths.Count(0, to); got != 3 {
		t.Errorf("%v paths are back, not 3", got)
	}
}

// Of reports that come together, all queues count for all decisions, and higher classes are first.
func TestBatchTakesWatchedFlowsFirst(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d")
	to, _ := g.Lookup("d")
	s := Defaults(Sextant)
	s.Herd, s.Ratio = 0, 0 // so that all move
	d := decider(t, g, s, 1)
	current := route(t, g, "a", "b", "d")
	var reports []*Report
	for i := range 9 {
		reports = append(reports, &Report{Flow: tuple(i), From: 0, To: to, Path: current,
			Pause: i != 4, Class: i % 3})
	}
	reports[8].Queues = []Queue{{Edge: current[0], Occupancy: 0.8}}
	var order []int
	d.Batch(reports, func(decision Decision) {
		if decision.Verdict != Moved {
			t.Errorf("flow %d: %v", decision.Flow.SrcPort, decision.Verdict)
		}
		order = append(order, int(decision.Flow.SrcPort))
	})
	if want := []int{2, 5, 8, 1, 7, 0, 3, 6}; !slices.Equal(order, want) {
		t.Errorf("decided in the order %v, not %v", order, want)
	}
}

// A path has to be lighter by a part of the current one's weight, whatever that is: a difference
// that settles nothing moves no flow.
func TestSextantWantsAPart(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d")
	to, _ := g.Lookup("d")
	for _, c := range []struct {
		old, other float64
		want       Verdict
	}{{0.8, 0.32, NotLighter}, {0.8, 0.29, Moved}, {0.2, 0.08, NotLighter}, {0.2, 0.05, Moved}} {
		s := Defaults(Sextant)
		s.Margin, s.Noise = 0.01, 0
		d := decider(t, g, s, 1)
		current := route(t, g, "a", "b", "d")
		d.weights.Observe(current[1], c.old, 0)
		d.weights.Observe(between(t, g, "c-d"), c.other, 0)
		r := &Report{Flow: tuple(1), From: 0, To: to, Path: current, Pause: true}
		if got := d.Report(r).Verdict; got != c.want {
			t.Errorf("from %v to %v: %v, not %v", c.old, c.other, got, c.want)
		}
	}
}

// A queue beyond the threshold asks for another path without a pause, if the settings say so.
func TestSextantHeedsQueues(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d")
	to, _ := g.Lookup("d")
	for _, c := range []struct {
		threshold, queue float64
		want             Verdict
	}{{0.2, 0.19, Untouched}, {0.2, 0.21, Moved}, {1, 1, Untouched}} {
		s := Defaults(Sextant)
		s.Noise, s.Threshold = 0, c.threshold
		d := decider(t, g, s, 1)
		current := route(t, g, "a", "b", "d")
		r := &Report{Flow: tuple(1), From: 0, To: to, Path: current,
			Queues: []Queue{{Edge: current[1], Occupancy: c.queue}}}
		if got := d.Report(r).Verdict; got != c.want {
			t.Errorf("threshold %v, queue %v: %v, not %v", c.threshold, c.queue, got, c.want)
		}
	}
}

// However the queues of its paths take turns, a flow moves twice within the back-off that follows,
// and again after that.
func TestSextantMovesTwice(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d", "a-e", "e-d")
	to, _ := g.Lookup("d")
	s := Defaults(Sextant).Scaled(time.Millisecond)
	if s.BackoffLeast != 50*time.Millisecond || s.BackoffMost != 100*time.Millisecond {
		t.Fatalf("back-off %v to %v for pauses of 1 ms", s.BackoffLeast, s.BackoffMost)
	}
	s.Forget = 20 * time.Millisecond // but not while it is left alone
	d := decider(t, g, s, 1)
	path := route(t, g, "a", "b", "d")
	var moves []time.Duration
	for at := time.Duration(0); at < 12*time.Second; at += 10 * time.Millisecond {
		for e := range topology.Edge(g.Edges()) {
			occupancy := 0.0
			if contains(path, e) {
				occupancy = 0.9
			}
			for range 8 {
				d.weights.Observe(e, occupancy, at)
			}
		}
		decision := d.Report(&Report{Flow: tuple(1), From: 0, To: to, Path: path, Pause: true,
			At: at})
		if decision.Verdict == Moved {
			path = decision.Path
			moves = append(moves, at)
		}
		d.Forget(at)
	}
	if len(moves) < 3 {
		t.Fatalf("moved at %v, and the queues follow the flow", moves)
	}
	if first := moves[1] - moves[0]; first < s.BackoffLeast || first > 3*s.BackoffMost {
		t.Errorf("the second move came after %v", first)
	}
	for i := 2; i < len(moves); i++ {
		if pause := moves[i] - moves[i-1]; pause < 100*s.BackoffLeast {
			t.Errorf("move %d came after %v", i+1, pause)
		}
	}
}
