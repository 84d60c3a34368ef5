package e2e_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sextant/experiment"
	"sextant/experiment/together"
)

// TestTogetherFabric is the experiment of congested paths and busy servers cut short: all requests
// are answered. How long they take is a matter of a quiet machine.
func TestTogetherFabric(t *testing.T) {
	needsRoot(t)
	text := conducted(t, "together-a-lab", experiment.Options{Quick: true})
	for _, scheme := range []string{"random", "hunting alone", "path control alone", "both"} {
		row := regexp.MustCompile(`\| 0\.4 \| ` + scheme + ` \| [\d.]+ \| [\d.]+ \| (\d+) \| 0 \|`)
		if found := row.FindStringSubmatch(text); len(found) != 2 || len(found[1]) < 2 {
			t.Errorf("%s: fewer than 10 requests, or some failed:\n%s", scheme, text)
		}
	}
}

// conducted is the report of an experiment.
func conducted(t *testing.T, name string, o experiment.Options) string {
	t.Helper()
	all := together.All()
	i := slices.IndexFunc(all, func(e experiment.Experiment) bool { return e.Name == name })
	o.Folder = t.TempDir()
	report, err := experiment.Conduct(t.Context(), all[i], o)
	must(t, err)
	text, err := os.ReadFile(report)
	must(t, err)
	return string(text)
}

// TestTogetherSites is the experiment of two sites cut short: no connection is broken.
func TestTogetherSites(t *testing.T) {
	needsRoot(t)
	text := conducted(t, "together-b", experiment.Options{Requests: 200})
	if !strings.Contains(text, "| broken connections | - | 0 of 200 |") {
		t.Errorf("connections are broken:\n%s", text)
	}
}
