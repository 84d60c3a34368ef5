package together

import (
	"testing"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
)

func TestReportOfFabric(t *testing.T) {
	var all []found
	for i, s := range schemes {
		all = append(all, found{Scheme: s.name, Load: 0.6, MeanMs: 400 / float64(i+1),
			P99Ms: 2000 / float64(i+1), HalfWidth: 1.5, Requests: 10})
	}
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		return reportFabric(r, all)
	})
	experimenttest.Has(t, text, "| load 0.6: both against the better of the two alone | - | "+
		"-25 % in mean, -25 % in p99 | mean 100 and 133 ms, p99 500 and 667 ms |",
		"| 0.6 | hunting alone | 200.0 | 1.5 | 1000.0 | 10 | 0 |", "![means](means.svg)")
}

func TestReportOfFabricInLab(t *testing.T) {
	var all []found
	for i, s := range labSchemes {
		all = append(all, found{Scheme: s.name, Load: 0.5, MeanMs: 400 / float64(i+1),
			P99Ms: 2000 / float64(i+1), Requests: 10, Fails: uint64(i)})
	}
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		reportFabricInLab(r, all)
		return nil
	})
	experimenttest.Has(t, text, "| load 0.5: both against the better of the two alone | - | "+
		"-25 % in mean, -25 % in p99 | mean 100 and 133 ms, p99 500 and 667 ms |",
		"| 0.5 | path control alone | 133.3 | 666.7 | 10 | 2 |")
}

// At the load where paths end the one and servers the other, both together go on.
func TestFabric(t *testing.T) {
	times := map[string]found{}
	for _, s := range schemes[1:4] {
		f, err := s.run(t.Context(), 0.6, 60_000, 1)
		if err != nil {
			t.Fatal(err)
		}
		times[s.name] = f
	}
	hunts, steers, both := times["hunting alone"], times["path control alone"], times["both"]
	if 4*both.MeanMs > 3*min(hunts.MeanMs, steers.MeanMs) ||
		5*both.P99Ms > 3*min(hunts.P99Ms, steers.P99Ms) {
		t.Errorf("both %+v, alone %+v and %+v", both, hunts, steers)
	}
}
