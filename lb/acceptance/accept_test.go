package acceptance_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sextant/lb/acceptance"
)

// paper is Dynamic with the parameters of the paper's experiments, for 32 workers.
var paper = acceptance.Policy{Kind: acceptance.Dynamic, Threshold: 1, Window: 50, Workers: 32,
	LowPermille: 400, HighPermille: 600}

// decide offers a connection that another candidate could take.
func decide(p acceptance.Policy, s acceptance.State, busy uint32) (bool, acceptance.State) {
	answer, next := p.Decide(s, acceptance.Offer{Busy: busy, Left: 1})
	return answer.Accept, next
}

func TestInitial(t *testing.T) {
	if got, want := (acceptance.Policy{Threshold: 7}).Initial(),
		(acceptance.State{Threshold: 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAlways(t *testing.T) {
	p := acceptance.Policy{Kind: acceptance.Always}
	for _, busy := range []uint32{0, 1, math.MaxUint32} {
		if ok, next := decide(p, p.Initial(), busy); !ok || next != p.Initial() {
			t.Errorf("%d busy: accept is %v, state %+v", busy, ok, next)
		}
	}
}

// Algorithm 1: accept if and only if b < c.
func TestStatic(t *testing.T) {
	tests := []struct {
		threshold, busy uint32
		want            bool
	}{
		{0, 0, false}, // c = 0: all go to the second candidate
		{1, 0, true},
		{1, 1, false},
		{4, 3, true},
		{4, 4, false},
		{4, 5, false},
		{33, 32, true}, // c = n + 1: all stay at the first
		{math.MaxUint32, math.MaxUint32, false},
	}
	for _, test := range tests {
		p := acceptance.Policy{Kind: acceptance.Static, Threshold: test.threshold}
		if got, next := decide(p, p.Initial(), test.busy); got != test.want || next != p.Initial() {
			t.Errorf("threshold %d, %d busy: accept is %v, want %v; state %+v", test.threshold,
				test.busy, got, test.want, next)
		}
	}
}

// A server that reports that it is full gets what nobody else may take, whatever its policy, and
// that teaches the policy nothing.
func TestFull(t *testing.T) {
	for _, kind := range []acceptance.Kind{acceptance.Always, acceptance.Static, acceptance.Dynamic,
		acceptance.Average} {
		p := acceptance.Policy{Kind: kind, Threshold: math.MaxUint32, Window: 1,
			Workers: math.MaxUint32, Reported: true}
		state := acceptance.State{Threshold: math.MaxUint32,
			Levels: [acceptance.MaxLevels]acceptance.Level{math.MaxUint32 >> 1, math.MaxUint32 >> 1,
				math.MaxUint32 >> 1}}
		for left := range uint32(3) {
			answer, next := p.Decide(state, acceptance.Offer{Busy: acceptance.Full, Left: left,
				Told: 7})
			if answer != (acceptance.Answer{Accept: left == 0}) || next != state {
				t.Errorf("%s, full, %d left: %+v, state %+v", kind, left, answer, next)
			}
		}
		if answer, _ := p.Decide(state, acceptance.Offer{Busy: 1, Left: 1}); !answer.Accept {
			t.Errorf("%s refuses though it is not full", kind)
		}
	}
}

// The last candidate must accept, whatever its policy, and the paper's policies learn nothing from
// that.
func TestLastCandidateAccepts(t *testing.T) {
	for _, kind := range []acceptance.Kind{acceptance.Always, acceptance.Static, acceptance.Dynamic,
		acceptance.Average} {
		p := acceptance.Policy{Kind: kind, Window: 50, Workers: 32, LowPermille: 400,
			HighPermille: 600}
		answer, next := p.Decide(p.Initial(), acceptance.Offer{Busy: 1000})
		if !answer.Accept || kind != acceptance.Average && next != p.Initial() {
			t.Errorf("%v: accept is %v, state %+v", kind, answer.Accept, next)
		}
	}
}

// Algorithm 2, one step: the state before, the busy connections, the answer and the state after.
func TestDynamicStep(t *testing.T) {
	dynamicState := func(threshold, attempts, accepted uint32) acceptance.State {
		return acceptance.State{Threshold: threshold, Attempts: attempts, Accepted: accepted}
	}
	tests := map[string]struct {
		policy acceptance.Policy
		before acceptance.State
		busy   uint32
		want   bool
		after  acceptance.State
	}{
		"accepted within a window": {paper, dynamicState(4, 10, 5), 3, true,
			dynamicState(4, 11, 6)},
		"refused within a window": {paper, dynamicState(4, 10, 5), 4, false,
			dynamicState(4, 11, 5)},
		"end of window, few accepted: up; decided with the new threshold, counted in the new " +
			"window": {
			paper, dynamicState(4, 49, 19), 4, true, dynamicState(5, 0, 1)},
		"end of window, refused with the new threshold": {paper, dynamicState(4, 49, 19), 5, false,
			dynamicState(5, 0, 0)},
		"end of window, many accepted: down": {paper, dynamicState(4, 49, 31), 3, false,
			dynamicState(3, 0, 0)},
		"just 0.4 is not below": {paper, dynamicState(4, 49, 20), 3, true,
			dynamicState(4, 0, 1)},
		"just 0.6 is not above": {paper, dynamicState(4, 49, 30), 3, true,
			dynamicState(4, 0, 1)},
		"not above the number of workers": {paper, dynamicState(32, 49, 0), 32, false,
			dynamicState(32, 0, 0)},
		"not below 0": {paper, dynamicState(0, 49, 49), 0, false,
			dynamicState(0, 0, 0)},
		"workers 0: never up": {acceptance.Policy{Kind: acceptance.Dynamic, Window: 1,
			LowPermille: 400, HighPermille: 600}, dynamicState(0, 0, 0), 0, false,
			dynamicState(0, 0, 0)},
		"window 0: never adapts": {acceptance.Policy{Kind: acceptance.Dynamic, Workers: 9,
			LowPermille: 400, HighPermille: 600}, dynamicState(2, 49, 0), 2, false,
			dynamicState(2, 50, 0)},
		"window 1: adapts at each offer": {acceptance.Policy{Kind: acceptance.Dynamic, Window: 1,
			Workers: 9, LowPermille: 400, HighPermille: 600}, dynamicState(2, 0, 1), 0, true,
			dynamicState(1, 0, 1)},
		"products beyond 32 bits: 0.5 of the longest window": {
			acceptance.Policy{Kind: acceptance.Dynamic, Window: math.MaxUint32, Workers: 9,
				LowPermille: 400, HighPermille: 600},
			dynamicState(2, math.MaxUint32-1, math.MaxUint32/2), 0, true, dynamicState(2, 0, 1)},
		"a threshold above the workers, from before they were lowered, comes down": {paper,
			dynamicState(40, 49, 49), 0, true, dynamicState(39, 0, 1)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, after := decide(test.policy, test.before, test.busy)
			if got != test.want || after != test.after {
				t.Errorf("accept is %v, state %+v; want %v, %+v", got, after, test.want, test.after)
			}
		})
	}
}

// load is how often, of 50 arrivals, a server has so many busy connections: the states that
// arrivals find at an M/M/2 queue with rho = 0.88 (they see its stationary distribution), rounded.
// Index is the number of busy connections.
var load = []int{3, 6, 5, 4, 4, 4, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}

// arrivals is load as a sequence: all states evenly mixed by a stride that has no divisor in common
// with 50.
func arrivals() []uint32 {
	var states []uint32
	for busy, times := range load {
		for range times {
			states = append(states, uint32(busy))
		}
	}
	mixed := make([]uint32, len(states))
	for i := range mixed {
		mixed[i] = states[i*21%len(states)]
	}
	return mixed
}

// Whatever it starts from, Dynamic finds a threshold with which between 0.4 and 0.6 of the offers
// are accepted, moves by at most one per window, and stays.
func TestDynamicConverges(t *testing.T) {
	offers := arrivals()
	if len(offers) != 50 {
		t.Fatalf("%d arrivals, want 50, the window", len(offers))
	}
	for _, initial := range []uint32{0, 1, 5, 20, 32} {
		p := paper
		p.Threshold = initial
		s := p.Initial()
		accepted := 0
		for window := range 40 {
			accepted = 0
			for _, busy := range offers {
				ok, next := decide(p, s, busy)
				if distance := int64(next.Threshold) - int64(s.Threshold); distance < -1 ||
					distance > 1 {
					t.Fatalf("start %d, window %d: threshold went from %d to %d", initial, window,
						s.Threshold, next.Threshold)
				}
				if s = next; ok {
					accepted++
				}
			}
		}
		if accepted < 20 || accepted > 30 {
			t.Errorf("start %d: %d of 50 accepted at the end, want 20 to 30; state %+v", initial,
				accepted, s)
		}
	}
}

// Decide never leaves the bounds of Algorithm 2.
func TestDynamicInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := acceptance.Policy{
			Kind: acceptance.Dynamic, Workers: rapid.Uint32Range(0, 40).Draw(t, "workers"),
			Window:       rapid.Uint32Range(1, 60).Draw(t, "window"),
			LowPermille:  rapid.Uint32Range(0, 1000).Draw(t, "low"),
			HighPermille: rapid.Uint32Range(0, 1000).Draw(t, "high"),
		}
		p.Threshold = rapid.Uint32Range(0, p.Workers).Draw(t, "threshold")
		s := p.Initial()
		for _, busy := range rapid.SliceOfN(rapid.Uint32Range(0, 50), 0, 300).Draw(t, "busy") {
			ok, next := decide(p, s, busy)
			if ok != (busy < next.Threshold) {
				t.Fatalf("accept is %v with %d busy and the threshold %d", ok, busy, next.Threshold)
			}
			if next.Threshold > p.Workers || next.Attempts >= p.Window ||
				next.Accepted > next.Attempts+1 {
				t.Fatalf("state out of bounds: %+v of %+v", next, p)
			}
			s = next
		}
	})
}

func TestKinds(t *testing.T) {
	for kind, name := range map[acceptance.Kind]string{acceptance.Always: "always",
		acceptance.Static: "static", acceptance.Dynamic: "dynamic", acceptance.Average: "average",
		acceptance.Delay: "delay"} {
		if kind.String() != name {
			t.Errorf("String of kind %d is %q, want %q", kind, kind, name)
		}
		if got, err := acceptance.ParseKind(name); err != nil || got != kind {
			t.Errorf("ParseKind(%q) = %v, %v", name, got, err)
		}
	}
	if got := acceptance.Kind(9).String(); got != "Kind(9)" {
		t.Errorf("String of an unknown kind is %q", got)
	}
	if _, err := acceptance.ParseKind("sometimes"); err == nil || !strings.Contains(err.Error(),
		`"sometimes"; use always, static, dynamic, average or delay`) {
		t.Errorf("ParseKind(sometimes): error %v", err)
	}
}
