package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
)

var heavierText = strings.Replace(nodeText, weight1, weight3, 1)

// editUnconfirmed changes what the state of an agent that has ended says of the configuration that
// waits for its confirmation.
func (m *machine) editUnconfirmed(values map[string]any) {
	m.t.Helper()
	file := filepath.Join(m.dir, "state", "both1.json")
	text, err := os.ReadFile(file)
	must(m.t, err)
	var state map[string]any
	must(m.t, json.Unmarshal(text, &state))
	unconfirmed, ok := state["unconfirmed"].(map[string]any)
	if !ok {
		m.t.Fatalf("nothing waits for a confirmation in\n%s", text)
	}
	for key, value := range values {
		unconfirmed[key] = value
	}
	text, err = json.Marshal(state)
	must(m.t, err)
	must(m.t, os.WriteFile(file, text, 0o600))
}

// Node files are edited where they are, and then applied: what is changed at run time after that
// outlives a restart, and so does a rollback of the file.
func TestChangesAfterApplyOutliveARestart(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	ctx := t.Context()
	_, err := a.apply(m.text(heavierText), false)
	must(t, err)
	weight := 5
	_, err = a.PutBackend(ctx, api.Update, "web", "web1", api.BackendSpec{Weight: &weight})
	must(t, err)
	a.stop()
	a = m.start(heavierText)
	if w := a.weight(); w != 5 {
		t.Errorf("with the file that was applied, the next agent has the weight %d, not 5", w)
	}
	_, err = a.apply(m.text(nodeText), false)
	must(t, err)
	_, err = a.Rollback(ctx, 0, false)
	must(t, err)
	a.stop()
	a = m.start(nodeText)
	if w := a.weight(); w != 5 {
		t.Errorf("after a rollback, the next agent has the weight %d, not 5", w)
	}
	// a file that says what runs is one that was applied, too
	text, err := a.Config(ctx, true)
	must(t, err)
	_, err = a.apply(string(text), false)
	must(t, err)
	weight = 7
	_, err = a.PutBackend(ctx, api.Update, "web", "web1", api.BackendSpec{Weight: &weight})
	must(t, err)
	a.stop()
	a = m.start(string(text))
	if w := a.weight(); w != 7 {
		t.Errorf("with a file that changed nothing, the next agent has the weight %d, not 7", w)
	}
	a.stop()
	a = m.start(heavierText) // another one
	defer a.stop()
	if w := a.weight(); w != 3 {
		t.Errorf("with another file, the next agent has the weight %d, not 3", w)
	}
}

// A node file that was applied on condition that it is confirmed waits for that, or is undone, also
// where the next agent begins with it.
func TestUnconfirmedFileIsUndoneAfterARestart(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	unconfirmed := func(within time.Duration) {
		t.Helper()
		_, err := a.ApplyUnconfirmed(t.Context(), "node.yaml", []byte(m.heavier()), within)
		must(t, err)
	}
	next := func(want int, when string) {
		t.Helper()
		a.stop()
		a = m.start(heavierText)
		if w := a.weight(); w != want {
			t.Errorf("%s the next agent has the weight %d, not %d", when, w, want)
		}
	}
	unconfirmed(time.Hour)
	next(3, "before the time is over")
	if !a.warnsOfUndoing() {
		t.Error("the next agent waits for no confirmation")
	}
	a.stop()
	m.editUnconfirmed(map[string]any{"until": time.Now().Add(-time.Second)})
	a = m.start(heavierText)
	if w := a.weight(); w != 1 {
		t.Errorf("after the time is over the next agent has the weight %d", w)
	}
	next(1, "later")
	unconfirmed(time.Second)
	for a.weight() != 1 {
		time.Sleep(10 * time.Millisecond)
	}
	next(1, "after the agent before has undone it")
	unconfirmed(time.Hour)
	must(t, a.Confirm(t.Context()))
	next(3, "after a confirmation")
	a.stop()
}

// A clock that is set back gives what waits for a confirmation no more time than it had.
func TestClockDoesNotConfirm(t *testing.T) {
	m := newMachine(t)
	a := m.start(nodeText)
	_, err := a.ApplyUnconfirmed(t.Context(), "node.yaml", []byte(m.heavier()), 2*time.Second)
	must(t, err)
	a.stop()
	m.editUnconfirmed(map[string]any{"until": time.Now().AddDate(30, 0, 0)})
	a = m.start(nodeText)
	defer a.stop()
	for end := time.Now().Add(20 * time.Second); a.weight() != 1; {
		if time.Now().After(end) {
			t.Fatal("it runs on")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Another secret that was applied is that of the next agent, too, which begins with the same file.
func TestAppliedSecretOutlivesARestart(t *testing.T) {
	const secret, other = "00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"
	m := newMachine(t)
	a := m.start(nodeText)
	_, err := a.apply(m.text(strings.Replace(nodeText, secret, other, 1)), false)
	must(t, err)
	a.stop()
	a = m.start(nodeText)
	defer a.stop()
	text, err := a.Config(t.Context(), true)
	must(t, err)
	if !strings.Contains(string(text), other) {
		t.Errorf("the next agent has the configuration\n%s", text)
	}
}
