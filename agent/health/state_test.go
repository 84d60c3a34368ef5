package health_test

import (
	"testing"

	"pgregory.net/rapid"

	"sextant/agent/health"
)

// Each letter is a result, + or -, and what the status is after it: h, f or u.
func TestState(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules health.Rules
		steps string
	}{
		{"a first success confirms", health.Rules{Rise: 2, Fall: 3}, "+h -h -h -f -f +f +h"},
		{"a failure is not enough", health.Rules{Rise: 2, Fall: 3}, "-u -u +h -h -h +h -h -h -f"},
		{"never checked, then failing", health.Rules{Rise: 2, Fall: 3}, "-u -u -f +f -f +f +h"},
		{"down until it rises", health.Rules{Rise: 2, Fall: 3, StartDown: true}, "+u +h -h -h -f"},
		{"down, and rightly so", health.Rules{Rise: 2, Fall: 3, StartDown: true}, "-f +f +h"},
		{"down, interrupted", health.Rules{Rise: 3, Fall: 1, StartDown: true},
			"+u +u -f +f +f +h -f"},
		{"at once", health.Rules{Rise: 1, Fall: 1}, "-f +h -f +h"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var state health.State
			for i := 0; i < len(c.steps); i += 3 {
				state = state.After(c.steps[i] == '+', c.rules)
				if got := state.Status.String()[0]; got != c.steps[i+1] {
					t.Fatalf("after %q the status is %s", c.steps[:i+1], state.Status)
				}
			}
		})
	}
}

// A backend's use changes only after as many contradicting results in a row as the rules say, and
// then it does.
func TestStateAgainstHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := health.Rules{
			Rise: rapid.IntRange(1, 4).Draw(t, "rise"), Fall: rapid.IntRange(1, 4).Draw(t, "fall"),
			StartDown: rapid.Bool().Draw(t, "start down"),
		}
		var state health.State
		usable, run := !rules.StartDown, 0
		for _, success := range rapid.SliceOf(rapid.Bool()).Draw(t, "results") {
			state = state.After(success, rules)
			if run++; success == usable {
				run = 0
			}
			if success && run >= rules.Rise || !success && run >= rules.Fall {
				usable, run = success, 0
			}
			if state.Usable(rules) != usable || state.Run != run {
				t.Fatalf("state %+v, want usable %v with %d results against it", state, usable, run)
			}
		}
	})
}
