package together

import (
	"testing"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
)

func TestReportOfSites(t *testing.T) {
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		reportSites(r, []step{
			{What: "all is well", Opened: 80, Connections: 80, Site1: 60, Site2: 20, SlowestMs: 12},
			{What: "a link fails", Opened: 20, Connections: 99, Broken: 1, SlowestMs: 300}})
		return nil
	})
	experimenttest.Has(t, text, "| all is well | 80 | 60 | 20 | 80 | 0 | 12 |",
		"| broken connections | - | 1 of 100 | failed links, drains "+
			"and lost edges are to break none |")
}
