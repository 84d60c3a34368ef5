// Package experimenttest reads the reports of experiments, for tests.
package experimenttest

import (
	"context"
	"os"
	"strings"
	"testing"

	"sextant/experiment"
)

// Report conducts an experiment that only reports, and returns the text of the report.
func Report(t *testing.T, write func(*experiment.Recorder) error) string {
	t.Helper()
	e := experiment.Experiment{Name: "test",
		Run: func(_ context.Context, r *experiment.Recorder) error { return write(r) }}
	file, err := experiment.Conduct(t.Context(), e, experiment.Options{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Has wants all lines in a report.
func Has(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the report lacks %q:\n%s", line, text)
		}
	}
}
