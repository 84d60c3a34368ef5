package e2e_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"sextant/experiment"
	experiments "sextant/experiment/fabric"
)

// TestSmoothieLab is the experiment on the paper's network in the lab cut short: with either policy
// of the controller flows end, and telemetry of their packets comes to the controller. How long
// they take, and which are rerouted, is a matter of chance.
func TestSmoothieLab(t *testing.T) {
	needsRoot(t)
	all := experiments.All()
	i := slices.IndexFunc(all, func(e experiment.Experiment) bool {
		return e.Name == "smoothie-fig4-lab"
	})
	file, err := experiment.Conduct(t.Context(), all[i], experiment.Options{Folder: t.TempDir(),
		Quick: true, Workers: 1})
	must(t, err)
	text, err := os.ReadFile(file)
	must(t, err)
	for _, row := range []string{
		`\| smoothie \| 100 \| 50 \| 4 \| (\d+) \| \d+ \| (\d+) \| \d+ \| \d+ \|`,
		`\| clove \| 100 \| 1 \| 4 \| (\d+) \| \d+ \| \d+ \| \d+ \| \d+ \|`, // reports: of full queues
		`\| smoothie \| 100 \| 50 \| 4 \| [\d.]+ \| - \| [\d.]+ \| (\d+) \| \d+ \| \d+ \|`,
		`\| clove \| 100 \| 1 \| 4 \| [\d.]+ \| - \| [\d.]+ \| (\d+) \| \d+ \| \d+ \|`,
	} {
		found := regexp.MustCompile(row).FindSubmatch(text)
		if found == nil {
			t.Fatalf("the report has no row %s:\n%s", row, text)
		}
		for _, number := range found[1:] {
			if n, _ := strconv.Atoi(string(number)); n < 5 {
				t.Errorf("the row %s has %s, not more than 4 connections, reports and flows:\n%s",
					row, number, text)
			}
		}
	}
}
