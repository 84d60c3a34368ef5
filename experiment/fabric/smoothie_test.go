package fabric

import (
	"math"
	"testing"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
)

// The reports of SMOOTHIE's figures have the paper's statements beside ours.
func TestReportsOfSmoothie(t *testing.T) {
	filled := func(settings []setting) (all []outcome) {
		for i, x := range settings {
			all = append(all, outcome{setting: x, MeanMs: 1000 * float64(i+1), P99Ms: 5000,
				Flows: 100, Drops: 3, Moves: []int{60, 30, 9, 0, 0, 0, 1},
				Means: []float64{0, 2000 * float64(i+1)}})
		}
		return all
	}
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportSmoothie2(r, filled(settings2()))
	})
	experimenttest.Has(t, text, "| smoothie beside ecmp at 80 % | faster (figure 2) | 25.00 s and "+
		"22.00 s | +13.6 % ± 173.3 % |", "![fig2](fig2.svg)",
		"| smoothie | 20 | 50 | 4 | 4.0000 | +3.00 ± 38.12 | 5.0000 | 100 | 0 | 3 | 40.0 | 2.50 "+
			"| 2.50 | 6 |")
	text = experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportSmoothie3(r, filled(settings3()))
	})
	experimenttest.Has(t, text, "| the best setting | 1 to 5 RTT, one in 40 to 70 (figure 3) | "+
		"1 RTT, one in 10: 1.00 s | the worst: 8 RTT, one in 200: 48.00 s |",
		"| sextant with telemetry in one of 50 and of 1000 | - | 50.00 s and 51.00 s | the sink "+
			"reports a pause at once, whatever packet ends it |")
	text = experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportSmoothie4(r, "fig4", filled(settings4()))
	})
	experimenttest.Has(t, text, "| reroutes of a flow: smoothie-clove at 80 % | 27 % more than "+
		"five times, 37 at most (figure 4) | 2.5 % of those rerouted more than twice, "+
		"2.5 % more than five times | 6 at most |")
	text = experimenttest.Report(t, func(r *experiment.Recorder) error {
		var all []fabricOutcome
		for i, c := range fabricCases() {
			all = append(all, fabricOutcome{c.fabric.name, outcome{
				setting: tuned(c.scheme, c.load), MeanMs: float64(i%8 + 1), Flows: 10,
				Moves: []int{5, 5}, Means: []float64{float64(i%8 + 1), float64(i%8 + 1)}}})
		}
		return reportSmoothieFabrics(r, all)
	})
	experimenttest.Has(t, text, "| twice | 80 | sextant | 8.000 | 0.000 | +700.0 ± 0.0 | "+
		"0.500 | 1 | 0 | 0 |", "| 300µs | 2.000 | +100.0 ± 0.0 | 0.500 |")
}

// The load is that of the links between switches, which flows to hosts of other leaves fill.
func TestLoadOfTheFabric(t *testing.T) {
	for i, want := range []float64{0.8 * 63 / 56, 0.8 * 127 / 112 / 2,
		0.8 * (51 + 13*0.2) / 64 * 63 / 56} {
		if got := scarceFabrics[i].ofHosts(0.8); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v of the hosts' links, not %v", scarceFabrics[i].name, got, want)
		}
	}
}

// Each scheme runs in the paper's network and in the others, and ends its flows; ECMP reroutes
// none.
func TestScenariosOfSmoothie(t *testing.T) {
	check := func(where string, o outcome, err error) {
		t.Helper()
		if err != nil || o.Flows < 5 || o.MeanMs <= 0 || o.Unfinished > o.Flows {
			t.Errorf("%s, %s: %+v, %v", where, o.Scheme, o, err)
		}
		if moved, _, _ := o.again(); o.Scheme == "ecmp" && moved > 0 {
			t.Errorf("%s: ECMP rerouted %v of the flows", where, moved)
		}
	}
	for _, x := range settings2()[21:28] { // 80 %
		s, err := x.scenario(true)
		if err != nil {
			t.Fatal(err)
		}
		o, err := runs(t.Context(), s, x, 1)
		check("paper", o, err)
	}
	for _, f := range scarceFabrics {
		s, err := f.scenario(0.4, reaction, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, scheme := range []string{"ecmp", "sextant", "smoothie-clove"} {
			o, err := runs(t.Context(), s, tuned(scheme, 0.4), 1)
			check(f.name, o, err)
		}
	}
}
