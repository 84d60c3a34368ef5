package churn

import (
	"testing"
	"time"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
	"sextant/lab/loadgen"
)

func TestReportOfFigure8(t *testing.T) {
	var runs []transition
	for _, p := range policies {
		runs = append(runs, transition{
			Outcome:  outcome{Policy: p.name, Requests: 3900, Mbps: 75},
			Readings: []reading{{Second: 1, Mbps: make([]float64, servers)}},
		})
	}
	runs[0].Outcome.Failed, runs[0].Outcome.Failures.Reset, runs[0].Outcome.Resets = 390, 390, 400
	text := experimenttest.Report(t,
		func(r *experiment.Recorder) error { return reportFigure8(r, runs) })
	experimenttest.Has(t, text,
		"| ecmp: failed downloads | 9.8 % (381 of 3902) | 10.00 % (390 of 3900) | each change "+
			"breaks connections |",
		"| offer: failed downloads | - | 0.00 % (0 of 3900) | no connection broken, no reset "+
			"sent |",
		"| ecmp | 3900 | 390 | 10.00 | reset 390 | 400 | 0.00 | 75.00 |",
		"![fig8-strays](fig8-strays.svg)")
}

func TestReportOfFigures9To12(t *testing.T) {
	f := figures{
		sweep:   sweep{sizes: []int{small, large}, intervals: []time.Duration{time.Second}},
		results: map[cell][]outcome{},
		calm:    map[int]outcome{small: {Ms: []float64{500, 900, 1500, 2500}}},
	}
	for _, size := range f.sweep.sizes {
		for _, p := range policies {
			f.results[cell{size, time.Second, p.name}] = []outcome{{Requests: 1000},
				{Requests: 1000, Redirected: 0.2}}
		}
	}
	f.results[cell{large, time.Second, "ecmp"}] = []outcome{
		{Requests: 1000, Failed: 600, Failures: loadgen.Failures{Reset: 600}},
		{Requests: 1000, Failed: 800, Failures: loadgen.Failures{Reset: 800}},
	}
	f.results[cell{large, time.Second, "offer"}][1].Resets = 1
	experimenttest.Has(t, experimenttest.Report(t, f.report),
		"| ecmp: failed downloads of 10 MB, a change every second | 77 % | 70.00 % (1400 of "+
			"2000) | each change breaks connections |",
		"| shadow: failed downloads of 5 MB, a change every second | 0.4 % | 0.00 % (0 of 2000) "+
			"| two changes within a download can break it |",
		"| offer: failed downloads of 10 MB, a change every second | - | 0.00 % (0 of 2000) | "+
			"connections were broken that should not be |",
		"| downloads of 5 MB that take longer than 2 s | 8 % | 25.00 % | the client's link is "+
			"chosen for that; the paper's longest took 11.8 s |",
		"| 250000 | 1.00 | ecmp | 2 | 0 | 2000 | 1400 | 70.00 | 14.14 | reset 1400 | 0 | 0.00 | "+
			"0.00 |",
		"| 250000 | 1.00 | shadow | 2 | 0 | 2000 | 0 | 0.00 | 0.00 | none | 0 | 10.00 | 0.00 |")
}

func TestReportOfFigure13(t *testing.T) {
	one := latencies{{8, 8, 8}, {9, 9, 9}, {11, 11, 11}, {9, 9, 9}, {59, 59, 59}}
	text := experimenttest.Report(t,
		func(r *experiment.Recorder) error { return reportFigure13(r, []latencies{one, one}) })
	experimenttest.Has(t, text,
		"| shadow, sent back, 1 bytes: median added by the way round | 15 to 34 us | 2.0 us | "+
			"below 40 us |",
		"| offer, passed on, 1460 bytes: median added by the way round | 15 to 34 us | 50.0 us | "+
			"40 us or more; was the machine busy? |",
		"| 1 | offer, passed on | 3 | 59.00 | 59.00 | 59.00 | 59.00 | 51.00 | 50.00 |")
}
