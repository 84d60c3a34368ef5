package reroute

import (
	"math"
	"testing"
	"time"
)

// The baselines, each by what sets it off and how often it moves where.
func TestBaselines(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d", "a-e", "e-d", "a-f", "f-d")
	to, _ := g.Lookup("d")
	current := route(t, g, "a", "b", "d")
	const n = 8000
	for _, c := range []struct {
		policy  Policy
		pause   bool
		queue   float64
		moved   float64 // part of the flows
		emptied string  // where all of them go, "" is anywhere
	}{
		{Clove, true, 50.0 / 64, 0, ""},             // not beyond the threshold
		{Clove, false, 51.0 / 64, 0.25 * 3 / 4, ""}, // one of the four may be its own
		{LetFlow, false, 1, 0, ""},
		{LetFlow, true, 0, 0.75, ""},
		{CloveINT, false, 1, 0, ""},
		{CloveINT, true, 0.4, 1 - math.Pow(3.0/4, 4), "e"}, // unless e is not among four draws
		{ECMP, true, 1, 0, ""},
	} {
		d := decider(t, g, Defaults(c.policy), 1)
		d.weights.Observe(between(t, g, "c-d"), 0.6, 0)
		d.weights.Observe(between(t, g, "f-d"), 0.5, 0)
		moves := 0
		for i := range n {
			decision := d.Report(&Report{Flow: tuple(i), From: 0, To: to, Path: current,
				Pause: c.pause, Queues: []Queue{{Edge: current[1], Occupancy: c.queue}}})
			if decision.Verdict != Moved {
				continue
			}
			moves++
			if via := g.Node(g.To(decision.Path[0])).Name; c.emptied != "" && via != c.emptied {
				t.Fatalf("%v moves to %s, where the fullest queue is not the least full", c.policy,
					via)
			}
		}
		if got := float64(moves) / n; math.Abs(got-c.moved) > 0.02 {
			t.Errorf("%v moves %.3f of flows, not %.3f", c.policy, got, c.moved)
		}
	}
}

// Where pauses are sampled, those alone count of which a packet with telemetry tells.
func TestSampledPauses(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d")
	to, _ := g.Lookup("d")
	current := route(t, g, "a", "b", "d")
	for _, policy := range []Policy{Smoothie, CloveINT, LetFlow} {
		for _, sampled := range []bool{false, true} {
			settings := Defaults(policy)
			settings.Sampled = sampled
			d := decider(t, g, settings, 1)
			asked := func(queues ...Queue) bool {
				return d.Report(&Report{Flow: tuple(1), From: 0, To: to, Path: current,
					Pause: true, Queues: queues}).Verdict != Untouched
			}
			if told := asked(Queue{Edge: current[1], Occupancy: 0.5}); !told {
				t.Errorf("%v, sampled %v: a pause with telemetry asks for nothing", policy, sampled)
			}
			if told := asked(); told == sampled {
				t.Errorf("%v, sampled %v: a pause without telemetry: %v", policy, sampled, told)
			}
		}
	}
}

// All flows left a path when it was full, and nothing reports of it since: CloveINT takes it again
// before a second has passed, not at once.
func TestCloveINTReturns(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d")
	to, _ := g.Lookup("d")
	d := decider(t, g, Defaults(CloveINT), 1)
	left, current := between(t, g, "b-d"), route(t, g, "a", "c", "d")
	d.weights.Observe(left, 1, 0)
	moved := func(at time.Duration) bool {
		for i := range 100 { // one draw may have none but the current path
			if d.Report(&Report{Flow: tuple(i), From: 0, To: to, Path: current, At: at, Pause: true,
				Queues: []Queue{{Edge: current[1], Occupancy: 0.9}}}).Verdict == Moved {
				return true
			}
		}
		return false
	}
	if moved(50 * time.Millisecond) {
		t.Error("a flow goes to where the queue was full a moment ago")
	}
	if !moved(time.Second) {
		t.Error("no flow goes to where nothing was seen for a second")
	}
}

// Clove leaves a flow alone after it moved, not after chance was against it.
func TestCloveBacksOff(t *testing.T) {
	g := network(t, "a-b", "b-d", "a-c", "c-d")
	to, _ := g.Lookup("d")
	d := decider(t, g, Defaults(Clove), 1)
	after := map[Verdict]map[Verdict]int{NoChance: {}, Moved: {}, NotLighter: {}}
	for i := range 1000 {
		r := &Report{Flow: tuple(i), From: 0, To: to, Path: route(t, g, "a", "b", "d"),
			Queues: []Queue{{Edge: 0, Occupancy: 1}}}
		first := d.Report(r).Verdict
		after[first][d.Report(r).Verdict]++
	}
	if after[NoChance][BackingOff] > 0 || len(after[Moved]) != 1 || after[Moved][BackingOff] == 0 {
		t.Errorf("second verdicts by the first: %v", after)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, name := range Policies() {
		p, err := ParsePolicy(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := Defaults(p).Check(); err != nil || p.String() != name {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if _, err := ParsePolicy("hula"); err == nil {
		t.Error("hula is no policy here")
	}
	if _, err := ParseMetric("delay"); err == nil {
		t.Error("delay is no metric here")
	}
	for what, spoil := range map[string]func(*Settings){
		"choices": func(s *Settings) { s.Choices = ChoicesMax + 1 },
		"none":    func(s *Settings) { s.Choices = 0 },
		"margin":  func(s *Settings) { s.Margin = math.NaN() },
		"noise":   func(s *Settings) { s.Noise = -1 },
		"backoff": func(s *Settings) { s.BackoffLeast = time.Hour },
		"expiry":  func(s *Settings) { s.Expiry = -1 },
		"gain":    func(s *Settings) { s.Gain = 0 },
		"unknown": func(s *Settings) { s.Unknown = 2 },
		"chance":  func(s *Settings) { s.Chance = math.NaN() },
		"policy":  func(s *Settings) { s.Policy = policies },
	} {
		s := Defaults(Sextant)
		spoil(&s)
		if _, err := NewDecider(network(t, "a-b").All(), s, 1); err == nil {
			t.Errorf("%s: taken", what)
		}
	}
}
