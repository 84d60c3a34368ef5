package e2e_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"sextant/experiment"
	"sextant/experiment/together"
)

// TestTogetherSites is the experiment of two sites cut short: no connection is broken.
func TestTogetherSites(t *testing.T) {
	needsRoot(t)
	all := together.All()
	i := slices.IndexFunc(all, func(e experiment.Experiment) bool { return e.Name == "together-b" })
	report, err := experiment.Conduct(t.Context(), all[i],
		experiment.Options{Folder: t.TempDir(), Requests: 200})
	must(t, err)
	text, err := os.ReadFile(report)
	must(t, err)
	if !strings.Contains(string(text), "| broken connections | - | 0 of 200 |") {
		t.Errorf("connections are broken:\n%s", text)
	}
}
