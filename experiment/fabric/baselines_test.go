package fabric

import (
	"fmt"
	"slices"
	"testing"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
	"sextant/sim/packet/scenario"
)

// The report compares what the literature compares, and says whether the order is the same.
func TestReportOfBaselines(t *testing.T) {
	w := sweepOf(true)
	var cells []cellOfBaselines
	for _, k := range fabricKinds {
		for _, load := range w.loads {
			for i, scheme := range baselineSchemes {
				cells = append(cells, cellOfBaselines{Fabric: k.name, Sizes: "web-search",
					Scheme: scheme, Load: load, MeanMs: float64(10 + i), P99Ms: float64(100 - i),
					Flows: 7})
			}
		}
	}
	text := experimenttest.Report(t,
		func(r *experiment.Recorder) error { return reportBaselines(r, w, cells) })
	experimenttest.Has(t, text,
		"| asymmetric, web search at 0.8: conga or ecmp, mean | up to 5 times faster (CONGA, "+
			"with a failed link) | 16.00 or 10.00 ms, +60 % | not the same order |",
		"| 2-to-1, web search at 0.8: in-flight or ecmp, 99th percentile | p99 33 % less "+
			"(arXiv 2606.27697) | 96.00 or 100.00 ms, -4 % | the same order |",
		"| web-search | 0.4 | random | 11.000 | 99.000 | 0.000 | 0.000 | 7 | 0 | 0.00 | 0.00 | "+
			"0.000 |", "![failed-web-search](failed-web-search.svg)")
}

// Each setting is a job of its own, for machines beside each other.
func TestJobsOfBaselines(t *testing.T) {
	w := sweepOf(true)
	want := len(fabricKinds) * len(w.sizes) * len(w.loads) * len(baselineSchemes)
	if n, err := experiment.WriteJobs(t.Context(), baselines, t.TempDir(),
		true); err != nil || n != want {
		t.Errorf("%d jobs, %v; want %d", n, err, want)
	}
}

// Every fabric, distribution and scheme is a scenario that runs, and flows end; the schemes are all
// that there are for such a fabric.
func TestCellsOfBaselines(t *testing.T) {
	w := sweep{seeds: 1, flows: 60}
	for _, k := range fabricKinds {
		for i, scheme := range baselineSchemes {
			sizes := []string{"web-search", "storage"}[i%2]
			c, err := k.cell(t.Context(), w, sizes, 0.5, scheme)
			if err != nil || c.Flows < 20 || c.Unfinished > 0 || c.MeanMs <= 0 ||
				c.P99Ms < c.MeanMs {
				t.Errorf("%+v, %v", c, err)
			}
		}
	}
	for _, scheme := range scenario.Schemes() {
		// of flow mode, and of fat trees
		other := slices.Contains([]string{"rerouted", "best-response", "coloring"}, scheme)
		if slices.Contains(baselineSchemes, scheme) == other {
			t.Errorf("%s is compared: %t", scheme, !other)
		}
	}
	for _, o := range orders {
		if !slices.Contains(baselineSchemes, o.one) || !slices.Contains(baselineSchemes, o.other) {
			t.Errorf("%+v compares what is not run", o)
		}
	}
}

// Settings of the controller are scenarios that run, and the report has both rates.
func TestControl(t *testing.T) {
	loads := []float64{0.4, 0.8}
	var cells []cellOfControl
	for _, gbps := range []int{10, 100} {
		for _, load := range loads {
			for _, k := range controlCases {
				c, err := k.cell(t.Context(), gbps, load, 1, 40)
				if err != nil || c.Flows < 10 || c.MeanMs <= 0 {
					t.Fatalf("%+v, %v", c, err)
				}
				c.MeanMs, c.Reroutes = 2, 0.5
				if k.Name == "sextant" {
					c.MeanMs = 1
				}
				cells = append(cells, c)
			}
		}
	}
	text := experimenttest.Report(t,
		func(r *experiment.Recorder) error { return reportControl(r, loads, cells) })
	for _, gbps := range []int{10, 100} {
		experimenttest.Has(t, text, fmt.Sprintf("| %d Gb/s, load 0.8: sextant, or ecmp | -36 %% "+
			"(rates at max-min fairness, 80 %%) | 1.00 or 2.00 ms in the mean | -50.0 %% |", gbps))
	}
}
