package protection

import (
	"testing"
	"time"

	"sextant/experiment"
	"sextant/experiment/experimenttest"
)

const ms = time.Millisecond

func TestReportOfFigure4(t *testing.T) {
	delay := [2]time.Duration{10 * ms, 20 * ms}
	var cells []cell
	var outcomes []requests
	for i, m := range []mode{onL1, onL2, duplicated, eliminated} {
		for _, algorithm := range algorithms {
			s := setting{Mode: m, Congestion: algorithm, Delay: delay, Loss: [2]float64{0.1, 0}}
			cells = append(cells, cell{shortName(s), s})
			outcomes = append(outcomes, requests{Ms: []float64{400 - 100*float64(i),
				420 - 100*float64(i)}})
		}
	}
	outcomes[4].TCP = counters{Duplicates: 70, Retransmissions: 3}
	text := experimenttest.Report(t,
		func(r *experiment.Recorder) error { return reportFigure4(r, cells, outcomes) })
	experimenttest.Has(t, text,
		"| cubic: both paths at once | a shorter response time than over either link | median "+
			"200.00 ms duplicated, 100.00 ms eliminated; "+
			"400.00 ms over L1, 300.00 ms over L2 | shorter than over either path |",
		"| duplicated: segments that the client's TCP had already | - | 70, with 3 "+
			"retransmissions | each packet that comes twice is one |",
		"| eliminated: segments that the client's TCP had already | - | 0, with 0 "+
			"retransmissions | none of them a copy: a segment comes twice "+
			"only if the server has sent it twice |",
		"| cubic | L1 | 2 | 0 | 400.00 | 410.00 | 10.00 | 400.00 | 420.00 | 420.00 | 420.00 | 0 "+
			"| 0 | 0 |",
		"![fig4-bbr](fig4-bbr.svg)")
}

func TestReportOfTables(t *testing.T) {
	alone := setting{Mode: onL1, Congestion: "cubic", Delay: [2]time.Duration{5 * ms, 5 * ms}}
	fast, slow := both(duplicated, "cubic", 5*ms, 6*ms, 0), both(duplicated, "cubic", 5*ms, 10*ms,
		0)
	through := both(eliminated, "cubic", 5*ms, 6*ms, 0)
	cells := []cell{{"a", alone}, {"b", fast}, {"c", slow}, {"d", through}}
	outcomes := []requests{{Ms: []float64{54}}, {Ms: []float64{55}}, {Ms: []float64{90}},
		{Ms: []float64{55}, TCP: counters{Duplicates: 1}}}
	text := experimenttest.Report(t,
		func(r *experiment.Recorder) error { return reportTables(r, cells, outcomes) })
	experimenttest.Has(t, text,
		"| cubic, L1 5ms, L2 11ms: request time, mean and standard deviation | 70.37 ms, 5.79 "+
			"ms: 7.0 round trips of L1 | "+
			"55.00 ms, 0.00 ms; median 55.00 ms: 5.5 round trips of L1; over L1 alone, median "+
			"54.00 ms | the time of the fastest link alone |",
		"| cubic, L1 5ms, L2 15ms: request time, mean and standard deviation | 70.01 ms, 0.31 "+
			"ms: 7.0 round trips of L1 | "+
			"90.00 ms, 0.00 ms; median 90.00 ms: 9.0 round trips of L1; over L1 alone, median "+
			"54.00 ms | not the time of the fastest link alone |",
		"| eliminated: segments that the client's TCP had already | - | 1, with 0 "+
			"retransmissions | copies came through, and none should |",
		"| cubic | 5 | - | L1 | 1 | 0 | 54.00 | 54.00 | 0.00 | 54.00 | 54.00 | 54.00 | 54.00 | 0 "+
			"| 0 | 0 |")
}

func TestReportOfCuts(t *testing.T) {
	outcomes := make([]aftermath, len(blows))
	for i := range outcomes {
		o := &outcomes[i]
		o.Sent, o.Lost, o.Ms = 2000, i, []float64{25, 35 + float64(i)}
		for step := range steps {
			o.Steps[step] = []float64{float64(step), 10 * float64(step)}
		}
	}
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		reportCut(r, outcomes)
		reportBusy(r, calmness{Lasts: time.Minute, Stream: stream{Sent: 60000}, RTTMs: 12.5,
			Loss: 0.001})
		reportBusy(r, calmness{Lasts: time.Second, Replacements: 1})
		return nil
	})
	experimenttest.Has(t, text,
		"| 2 copies, 1 cut at once: lost, twice; replaced after; the first copy over another "+
			"path after | 0, 0; under 50 ms | "+
			"0, 0 of 2000; median 25.00 ms, at most 35.00 ms; median 4.00 ms, at most 40.00 ms | "+
			"no packet lost, none twice |",
		"| packets were lost or came twice |",
		"| 3 | 2 | 2 | 2000 | 2 | 0 | 25.00 | 25.00 | 37.00 | 37.00 | 0 |",
		"| 2 | 1 | until the last path is known to be silent | 2 | 1.00 | 1.00 | 10.00 | 10.00 |",
		"| nothing is cut for 60 s on a busy machine: replacements | 0 | 0 | no path is taken "+
			"for silent that is not |",
		"| nothing is cut for 1 s on a busy machine: replacements | 0 | 1 | paths were replaced "+
			"that had not failed |",
		"| 3 | 60 | 0 | 0 | 60000 | 0 | 0 | 12.50 | 0.1 | 0 |")
}

func TestReportOfFigure5(t *testing.T) {
	var cells []cell
	var outcomes []requests
	for _, m := range []mode{duplicated, eliminated} {
		for i, loss := range losses {
			cells = append(cells, cell{"x", both(m, "bbr", 10*ms, 40*ms, loss)})
			outcomes = append(outcomes, requests{Ms: []float64{100, 100 + 10*float64(i+1)}})
		}
	}
	text := experimenttest.Report(t,
		func(r *experiment.Recorder) error { return reportFigure5(r, cells, outcomes) })
	experimenttest.Has(t, text,
		"| bbr, L2 40ms slower: from the 10th to the 90th percentile, at losses of 1, 5 and 10 % "+
			"| the spread clearly grows | "+
			"10.00, 50.00, 60.00 ms duplicated; 10.00, 50.00, 60.00 ms eliminated | - |",
		"| 10 | 50 | bbr | duplicated | 10 | 2 | 0 | 100.00 | 130.00 | 30.00 | 100.00 | 160.00 | "+
			"160.00 | 160.00 | 0 | 0 | 0 |",
		"![fig5-bbr-delta40](fig5-bbr-delta40.svg)")
}

func TestReportOfTelemetry(t *testing.T) {
	all := []trial{{"one", setting{Mode: onL1}, true}, {"two", setting{Mode: eliminated}, true}}
	streams := []stream{{Sent: 100, Lost: 50, LongestGap: 50, Ms: []float64{1, 2}},
		{Sent: 100, Reordered: 3, Ms: []float64{1}}}
	text := experimenttest.Report(t, func(r *experiment.Recorder) error {
		reportTelemetry(r, all, streams)
		return nil
	})
	experimenttest.Has(t, text,
		"| a path is cut under the stream: lost, twice | - | 0, 0 of 100 | no packet lost, none "+
			"twice |",
		"| one | L1 | 100 | 50 | 50.00 | 50 | 0 | 0 | 1.00 | 2.00 | 0 |")
}
