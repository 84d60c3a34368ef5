package cflb

import (
	"context"
	"fmt"
	"slices"

	"sextant/experiment"
	"sextant/experiment/chart"
)

var figure7 = experiment.Experiment{
	Name: "cflb-fig7", Title: "Shares of a router's next hops over time, by hash and by cipher",
	Source: "Detal et al., figure 7",
	Shows: "Packets whose sources control nothing come to a balancer with 2 and with 4 next " +
		"hops. The share of each next hop, second by second: MD5 and RC5 as in the source, and " +
		"the other methods of figure 6.",
	Paper: experiment.CFLB, Lasts: "10 s",
	Run: runFigure7,
}

// overTime are the shares of a method in percent, by next hop and second.
type overTime struct {
	name   string
	shares [][]float64
}

func runFigure7(ctx context.Context, r *experiment.Recorder) error {
	t, err := balanceTraffic(r)
	if err != nil {
		return err
	}
	for _, hops := range []int{2, 4} {
		balancers, err := balancersFor(hops)
		if err != nil {
			return err
		}
		var all []overTime
		for _, b := range balancers {
			all = append(all, overTime{b.name, t.overTime(b, hops)})
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := reportFigure7(r, hops, all); err != nil {
			return err
		}
	}
	return nil
}

func (t *traffic) overTime(b balancer, hops int) [][]float64 {
	all := make([][]float64, hops)
	for _, bins := range t.spread(b, hops, 1, binsPerSecond) {
		for _, counts := range bins {
			if total := sum(counts); total >= leastPackets {
				for i, n := range counts {
					all[i] = append(all[i], 100*float64(n)/float64(total))
				}
			}
		}
	}
	return all
}

func reportFigure7(r *experiment.Recorder, hops int, all []overTime) error {
	table := experiment.Table{Name: fmt.Sprintf("fig7-%d", hops),
		Title: fmt.Sprintf("Share of a next hop of %d in a second, %% of the packets", hops),
		Columns: []string{"Method", "Least", "5th percentile", "Median", "95th percentile",
			"Greatest"}}
	for _, m := range all {
		values := slices.Sorted(slices.Values(slices.Concat(m.shares...)))
		if len(values) == 0 {
			return fmt.Errorf("no second of the capture has %d packets; give one of more traffic",
				leastPackets)
		}
		row := []string{m.name}
		for _, q := range []float64{0, 0.05, 0.5, 0.95, 1} {
			row = append(row, percent(quantile(values, q)))
		}
		table.Rows = append(table.Rows, row)
		if hops == 4 && m.name != "crc16" {
			r.Compare(experiment.Comparison{What: "share of a next hop of 4, " + m.name,
				Source: "22 to 28 %", Ours: fmt.Sprintf("%s to %s %%, median %s", row[1], row[5],
					row[3]), Says: within28(values)})
		}
		if m.name != "md5" && m.name != "rc5" && m.name != "feistel" {
			continue
		}
		if err := chartFigure7(r, hops, m); err != nil {
			return err
		}
	}
	r.Table(table)
	return nil
}

// within28 says how many of the shares are in the source's interval.
func within28(values []float64) string {
	in := 0
	for _, v := range values {
		if v >= 22 && v <= 28 {
			in++
		}
	}
	return fmt.Sprintf("%d of %d in the interval", in, len(values))
}

func chartFigure7(r *experiment.Recorder, hops int, m overTime) error {
	var series []chart.Series
	for i, values := range m.shares {
		s := chart.Series{Name: fmt.Sprintf("next hop %d", i)}
		for second, v := range values {
			s.Points = append(s.Points, chart.Point{X: float64(second), Y: v})
		}
		series = append(series, s)
	}
	equal := 100 / float64(hops)
	return r.Chart(fmt.Sprintf("fig7-%d-%s", hops, m.name), chart.Chart{
		Title: fmt.Sprintf("Shares of %d next hops by %s", hops, m.name), X: "time, s",
		Y: "packets, %", Series: series, FromY: max(0, equal-10), ToY: equal + 10})
}
