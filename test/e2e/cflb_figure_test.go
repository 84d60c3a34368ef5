package e2e_test

import (
	"os"
	"strings"
	"testing"

	"sextant/experiment"
	"sextant/experiment/cflb"
)

// TestCFLBFigure10 is the experiment cut short: connections of the kernel's MPTCP whose ports are
// chosen use all seven links.
func TestCFLBFigure10(t *testing.T) {
	t.Parallel()
	needsRoot(t)
	for _, e := range cflb.All() {
		if e.Name != "cflb-fig10" {
			continue
		}
		file, err := experiment.Conduct(t.Context(), e, experiment.Options{Folder: t.TempDir(),
			Quick: true})
		must(t, err)
		text, err := os.ReadFile(file)
		must(t, err)
		if !strings.Contains(string(text), "| 400 of 400 | 6 of 6 | as the source |") {
			t.Errorf("connections of chosen ports are not on all links:\n%s", text)
		}
		return
	}
	t.Fatal("there is no such experiment")
}
