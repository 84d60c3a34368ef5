package agent_test

import (
	"strings"
	"testing"
)

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
