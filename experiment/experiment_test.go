package experiment_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sextant/experiment"
	"sextant/experiment/chart"
)

// counted is an experiment whose part is computed once per run from nothing, and which fails as
// often as told.
type counted struct{ computed, failures int }

var errBroken = errors.New("the lab is on fire")

func (c *counted) experiment() experiment.Experiment {
	return experiment.Experiment{
		Name: "counted", Title: "A title", Source: "A source, figure 1", Shows: "It shows that.",
		Lasts: "no time",
		Run: func(_ context.Context, r *experiment.Recorder) error {
			value, err := experiment.Part(r, "numbers", func() ([]int, error) {
				c.computed++
				return []int{1, 2}, nil
			})
			if err != nil {
				return err
			}
			if c.failures--; c.failures >= 0 {
				return errBroken
			}
			r.Compare(experiment.Comparison{What: "a|b", Source: "1", Ours: "2", Says: "twice"})
			r.Table(experiment.Table{Name: "t", Title: "The table", Columns: []string{"x", "y"},
				Rows: [][]string{{"1", "2,5"}}})
			r.Note("%d numbers", len(value))
			return r.Chart("c", chart.Chart{Title: "The chart"})
		},
	}
}

func conduct(t *testing.T, c *counted, o experiment.Options) (string, error) {
	t.Helper()
	report, err := experiment.Conduct(t.Context(), c.experiment(), o)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), nil
}

func TestConduct(t *testing.T) {
	c := &counted{failures: 1}
	o := experiment.Options{Folder: t.TempDir(), Version: "v1"}
	if _, err := conduct(t, c, o); !errors.Is(err, errBroken) || !strings.Contains(err.Error(),
		"the next run resumes") {
		t.Fatalf("the error %v does not say what happened", err)
	}
	text, err := conduct(t, c, o)
	if err != nil {
		t.Fatal(err)
	}
	if c.computed != 1 {
		t.Errorf("after an interrupted run, the part was computed %d times", c.computed)
	}
	for _, part := range []string{
		"# counted: A title\n", "It shows that.", "Source: A source, figure 1.",
		`| a\|b | 1 | 2 | twice |`, "![c](c.svg)", "## The table",
		"| 1 | 2,5 |", "- 2 numbers", "Sextant v1", "--fresh",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("the report has no %q:\n%s", part, text)
		}
	}
	csv, err := os.ReadFile(filepath.Join(o.Folder, "counted", "t.csv"))
	if err != nil || string(csv) != "x,y\n1,\"2,5\"\n" {
		t.Errorf("the table as CSV is %q: %v", csv, err)
	}
}

// A quick run has parts of its own, a fresh run takes none, and a finished one leaves none.
func TestPartsAreNotMixed(t *testing.T) {
	c := &counted{}
	folder := t.TempDir()
	for i, run := range []struct {
		fails bool
		o     experiment.Options
		want  int
	}{
		{true, experiment.Options{Folder: folder, Quick: true}, 1},
		{true, experiment.Options{Folder: folder}, 2},
		{true, experiment.Options{Folder: folder, Fresh: true}, 3},
		{false, experiment.Options{Folder: folder}, 3},
		{false, experiment.Options{Folder: folder}, 4},
		{false, experiment.Options{Folder: folder, Quick: true}, 4},
	} {
		c.failures = 0
		if run.fails {
			c.failures = 1
		}
		text, err := conduct(t, c, run.o)
		if (err != nil) != run.fails {
			t.Fatal(err)
		}
		if c.computed != run.want {
			t.Errorf("run %d: computed %d times so far, want %d", i, c.computed, run.want)
		}
		if !run.fails && strings.Contains(text, "quick run") != run.o.Quick {
			t.Errorf("run %d: the report is\n%s", i, text)
		}
	}
}
