package protection

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sextant/experiment"
	"sextant/experiment/chart"
)

// figure5 is duplicated requests over two lossy paths.
var figure5 = experiment.Experiment{
	Name:   "protection-fig5",
	Title:  "Duplicated requests over two lossy paths",
	Source: source + ", figure 5",
	Shows: "Duplicated requests of 100 KB, both paths lose 1 to 10 % of the packets; L2 is 0, " +
		"10, 40 or 90 ms slower. 1,000 requests " +
		"in each setting.",
	Paper: experiment.Disjoint, Needs: []string{"root", "lighttpd"}, Lasts: "50 min",
	Run: runFigure5,
}

// networks are the paper's four plots: the delay of L1 and how much longer that of L2 is.
var networks = []struct{ base, delta time.Duration }{
	{5 * time.Millisecond, 0}, {10 * time.Millisecond, 10 * time.Millisecond},
	{10 * time.Millisecond, 40 * time.Millisecond},
	{10 * time.Millisecond, 90 * time.Millisecond},
}

var losses = []float64{0.01, 0.02, 0.03, 0.04, 0.05, 0.10}

func runFigure5(ctx context.Context, r *experiment.Recorder) error {
	var cells []cell
	for _, n := range networks {
		for _, algorithm := range algorithms {
			for _, m := range []mode{duplicated, eliminated} {
				for _, loss := range losses {
					s := both(m, algorithm, n.base, n.delta, loss)
					cells = append(cells, cell{shortName(s), s})
				}
			}
		}
	}
	outcomes, err := measureAll(ctx, r, cells, r.Requests(paperRequests))
	if err != nil {
		return err
	}
	return reportFigure5(r, cells, outcomes)
}

func reportFigure5(r *experiment.Recorder, cells []cell, outcomes []requests) error {
	setUpNote(r)
	t := experiment.Table{
		Name: "requests", Title: "Request times",
		Columns: append([]string{"L1, ms", "L2, ms", "TCP", "Path", "Loss, %"},
			statisticsColumns...),
	}
	spread := map[setting]float64{} // between the 10th and the 90th percentile
	for i, c := range cells {
		s := c.setting
		t.Rows = append(t.Rows, row(outcomes[i], strconv.FormatInt(s.Delay[0].Milliseconds(), 10),
			strconv.FormatInt(s.Delay[1].Milliseconds(), 10), s.Congestion, string(s.Mode),
			fmt.Sprintf("%g", 100*s.Loss[0])))
		sorted := slices.Sorted(slices.Values(outcomes[i].Ms))
		if len(sorted) > 0 {
			spread[s] = quantile(sorted, 0.9) - quantile(sorted, 0.1)
		}
	}
	for _, algorithm := range algorithms {
		for _, n := range networks {
			r.Compare(compareSpread(algorithm, n.base, n.delta, spread))
			name := fmt.Sprintf("fig5-%s-delta%d", algorithm, n.delta.Milliseconds())
			if err := r.Chart(name, spreadChart(cells, outcomes, algorithm, n.base,
				n.delta)); err != nil {
				return err
			}
		}
	}
	compareDuplicates(r, cells, outcomes)
	r.Table(t)
	return nil
}

// saying is what the paper says of each plot.
var saying = map[time.Duration]string{
	0:                     "a very low spread up to 5 % of loss",
	10 * time.Millisecond: "slightly more spread, more outliers",
	40 * time.Millisecond: "the spread clearly grows",
	90 * time.Millisecond: "the spread clearly grows; 5 % and 10 % differ much",
}

func compareSpread(algorithm string, base, delta time.Duration,
	spread map[setting]float64) experiment.Comparison {
	at := func(m mode, loss float64) string {
		return milliseconds(spread[both(m, algorithm, base, delta, loss)])
	}
	return experiment.Comparison{
		What: fmt.Sprintf("%s, L2 %s slower: from the 10th to the 90th percentile, at losses "+
			"of 1, 5 and 10 %%", algorithm, delta),
		Source: saying[delta],
		Ours: fmt.Sprintf("%s, %s, %s ms duplicated; %s, %s, %s ms eliminated",
			at(duplicated, 0.01), at(duplicated, 0.05), at(duplicated, 0.10),
			at(eliminated, 0.01), at(eliminated, 0.05), at(eliminated, 0.10)),
		Says: "-",
	}
}

// spreadChart is a plot of the figure: percentiles over loss.
func spreadChart(cells []cell, outcomes []requests, algorithm string, base,
	delta time.Duration) chart.Chart {
	c := chart.Chart{
		Title: fmt.Sprintf("Request times over L1 with %s and L2 with %s, TCP %s", base, base+delta,
			algorithm),
		X: "loss of both, %", Y: "milliseconds",
	}
	for _, m := range []mode{duplicated, eliminated} {
		for _, share := range []float64{0.5, 0.9, 0.99} {
			series := chart.Series{Name: fmt.Sprintf("%s, %g %%", m, 100*share)}
			for i, cell := range cells {
				if cell.setting == both(m, algorithm, base, delta, cell.setting.Loss[0]) &&
					len(outcomes[i].Ms) > 0 {
					sorted := slices.Sorted(slices.Values(outcomes[i].Ms))
					series.Points = append(series.Points, chart.Point{X: 100 * cell.setting.Loss[0],
						Y: quantile(sorted, share)})
				}
			}
			c.Series = append(c.Series, series)
		}
	}
	return c
}
