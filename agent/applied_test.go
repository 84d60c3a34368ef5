package agent_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
	for end := time.Now().Add(20 * time.Second); a.weight() != 1; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it runs on")
		}
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
