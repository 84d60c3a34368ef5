package agent_test

import (
	"strings"
	"testing"

	"sextant/agent/api"
)

// Checks that can't begin, since the interface of their routes is away, are begun when it is back,
// without another change of the node.
func TestChecksBeginLater(t *testing.T) {
	m := newMachine(t)
	r := m.start(nodeText)
	defer r.stop()
	must(t, m.ns.Do(func() error { return renameLink("edge0", "away0") }))
	checked := strings.Replace(nodeText, "      port: 80\n", "      port: 80\n      check: "+
		"{kind: exec, command: [/bin/true], interval: 100ms, timeout: 100ms, rise: 1}\n", 1)
	_, err := r.Apply(t.Context(), "node.yaml", []byte(m.text(checked)), false)
	must(t, err)
	r.await("a warning that nothing is checked", func(s api.Status) bool {
		return strings.Contains(strings.Join(s.Warnings, "\n"), "backends are not checked: find "+
			"interface edge0")
	})
	must(t, m.ns.Do(func() error { return renameLink("away0", "edge0") }))
	r.await("all backends are healthy", func(s api.Status) bool {
		list, err := r.Backends(t.Context(), "web")
		must(t, err)
		for _, b := range list {
			if b.Health == nil || b.Health.Status != "healthy" {
				return false
			}
		}
		return !strings.Contains(strings.Join(s.Warnings, "\n"), "not checked")
	})
}
