package protection

import (
	"context"
	"fmt"
	"time"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/packet/lists"
)

// figure4 is one request over a lossy path, a slower one, and both.
var figure4 = experiment.Experiment{
	Name:   "protection-fig4",
	Title:  "Requests over a lossy path, a slow path, and both at once",
	Source: source + ", figure 4",
	Shows: "1,000 requests of 100 KB over L1 with 10 ms and a loss of 10 %, over L2 with 20 ms, " +
		"and over both with each packet sent " +
		"twice: without elimination, as in the paper, and with it.",
	Paper: experiment.Disjoint, Needs: []string{"root", "lighttpd"}, Lasts: "10 min",
	Run: runFigure4,
}

func runFigure4(ctx context.Context, r *experiment.Recorder) error {
	var cells []cell
	for _, algorithm := range algorithms {
		for _, m := range []mode{onL1, onL2, duplicated, eliminated} {
			s := both(m, algorithm, 10*time.Millisecond, 10*time.Millisecond, 0.1)
			s.Loss[1] = 0
			cells = append(cells, cell{shortName(s), s})
		}
	}
	outcomes, err := measureAll(ctx, r, cells, r.Requests(paperRequests))
	if err != nil {
		return err
	}
	return reportFigure4(r, cells, outcomes)
}

func reportFigure4(r *experiment.Recorder, cells []cell, outcomes []requests) error {
	setUpNote(r)
	t := experiment.Table{Name: "requests", Title: "Request times",
		Columns: append([]string{"TCP", "Path"}, statisticsColumns...)}
	charts := map[string]*chart.Chart{}
	median := map[string]map[mode]float64{}
	for i, c := range cells {
		algorithm := c.setting.Congestion
		t.Rows = append(t.Rows, row(outcomes[i], algorithm, string(c.setting.Mode)))
		if charts[algorithm] == nil {
			charts[algorithm] = &chart.Chart{
				Title: "Requests that take at most so long, TCP " + algorithm, X: "milliseconds",
				Y: "share of requests",
			}
			median[algorithm] = map[mode]float64{}
		}
		charts[algorithm].Series = append(charts[algorithm].Series,
			chart.Series{Name: string(c.setting.Mode),
				Points: chart.AtMost(cutOff(outcomes[i].Ms))})
		median[algorithm][c.setting.Mode] = statisticsOf(outcomes[i].Ms).median
	}
	for _, algorithm := range algorithms {
		m := median[algorithm]
		says := "shorter than over either path"
		if m[duplicated] >= min(m[onL1], m[onL2]) {
			says = "not shorter than over the better path"
		}
		r.Compare(experiment.Comparison{
			What:   algorithm + ": both paths at once",
			Source: "a shorter response time than over either link",
			Ours: fmt.Sprintf("median %s ms duplicated, %s ms eliminated; %s ms over L1, %s ms "+
				"over L2", milliseconds(m[duplicated]),
				milliseconds(m[eliminated]), milliseconds(m[onL1]), milliseconds(m[onL2])),
			Says: says,
		})
		if err := r.Chart("fig4-"+algorithm, *charts[algorithm]); err != nil {
			return err
		}
	}
	compareDuplicates(r, cells, outcomes)
	r.Table(t)
	return nil
}

// chartMost is the longest request time that a chart shows.
const chartMost = 2000

// cutOff puts what is longer at the end of the axis.
func cutOff(ms []float64) []float64 {
	return lists.Map(ms, func(x float64) float64 { return min(x, chartMost) })
}
