package together

import (
	"testing"
	"time"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
)

func TestReportOfCopies(t *testing.T) {
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		reportCopies(r, []took{
			{Requests: 100, TailMs: 130, Octets: 1_000_000},
			{Requests: 100, TailMs: 130, Octets: 1_040_000},
			{Requests: 100, MeanMs: 150, MedianMs: 119, TailMs: 1300, MostMs: 1400, Failed: 1,
				Octets: 1_010_000},
			{Requests: 100, TailMs: 330}, {Requests: 100, TailMs: 131.3},
		})
		return nil
	})
	experimenttest.Has(t, text, "| loss | 100 | 1 | 150.0 | 119.0 | 1300.0 | 1400 | 10100 |",
		"| 99 % of short requests, copies beside no loss | - | +1.0 % (without copies +900 %) | "+
			"within 10 % |", "| octets of copies | - | +4.0 % of those without copies or loss | "+
			"at most 5 % |")
}

func TestSummary(t *testing.T) {
	var all []time.Duration
	for i := 200; i > 0; i-- {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	all[17] = answerTime // which took 183 ms, failed
	if got := summary(all); got.Requests != 200 || got.Failed != 1 || got.MostMs != 30_000 ||
		got.TailMs != 199 || got.MedianMs != 100 {
		t.Errorf("%+v", got)
	}
}
