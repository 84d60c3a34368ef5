package fabric

import (
	"bytes"
	"math"
	"testing"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
)

// The report has the source's rows beside ours.
func TestReportOfFigure9(t *testing.T) {
	var cells []cell9
	for _, f := range fabrics9 {
		for _, scheme := range f.schemes {
			for subflows := 1; subflows <= subflows9; subflows++ {
				cells = append(cells, cell9{Fabric: f.name, Scheme: scheme, Subflows: subflows,
					Goodput: 0.9, Least: 0.5, Fairness: 0.75, Drops: 7, Timeouts: 3})
			}
		}
	}
	text := experimenttest.Report(t,
		func(r *experiment.Recorder) error { return reportFigure9(r, cells) })
	experimenttest.Has(t, text,
		"| fat tree: random, 8 subflows | 91.2 % (csg-htsim) | 90.0 % | -1.2 points |",
		"| fat-tree | cflb | 2 | 90.0 | 50.0 | 0.750 | 93.9 | 7 | 3 |",
		"| fat-tree-acks | cflb | 2 | 90.0 | 50.0 | 0.750 | - | 7 | 3 |",
		"![fig9-bcube](fig9-bcube.svg)")
}

// Every fabric and scheme is a scenario that runs: one subflow on the small fabrics.
func TestScenariosOfFigure9(t *testing.T) {
	for _, f := range fabrics9 {
		for _, scheme := range f.schemes {
			c, err := f.cell(t.Context(), scheme, 1, 1, true)
			if err != nil || c.Goodput < 0.1 || c.Goodput > 1 || c.Least > c.Goodput {
				t.Errorf("%s, %s: %+v, %v", f.name, scheme, c, err)
			}
			if scheme == "coloring" && !f.acks && c.Least < 0.99 {
				t.Errorf("%s: the worst host has %.3f of its link with coloring", f.name, c.Least)
			}
		}
	}
}

// The scenario of the whole figure gives what csg-htsim does, within a few points: a second and one
// seed are enough for that, and more subflows on chosen paths do better. Without an end of slow
// start they did not.
func TestFigure9AgainstHtsim(t *testing.T) {
	before := 0.0
	for _, subflows := range []int{2, 4} {
		text := bytes.Replace(fabrics9[0].scenario9(subflows, false), []byte("duration: 4s"),
			[]byte("duration: 1s"), 1)
		results, err := play(t.Context(), text, "cflb", 1)
		if err != nil {
			t.Fatal(err)
		}
		percent, want := 100*results[0].Goodput/filled, htsim["cflb"][subflows]
		t.Logf("%d subflows: %.1f %%, csg-htsim %.1f", subflows, percent, want)
		if math.Abs(percent-want) > 5 || percent < before {
			t.Errorf("%d subflows: %.1f %%, want %.1f ± 5, and more than %.1f", subflows, percent,
				want, before)
		}
		before = percent
	}
}
