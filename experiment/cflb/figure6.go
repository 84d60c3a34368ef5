package cflb

import (
	"context"
	"fmt"
	"math"
	"slices"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/packet/cflb"
	sim "sextant/sim/packet"
)

var figure6 = experiment.Experiment{
	Name: "cflb-fig6", Title: "Balance of one router and of four in a row, by hash and by cipher",
	Source: "Detal et al., figure 6",
	Shows: "Packets whose sources control nothing come to a balancer with 2 and with 4 next " +
		"hops: CRC16, MD5, our own hash, and CFLB with RC5, Skip32 and the Feistel network, " +
		"beside a random choice for each flow. Each second, the share of a next hop is compared " +
		"with an equal one; behind four " +
		"balancers in a row, which form a tree, that of each half second at each of the last.",
	Paper: experiment.CFLB, Lasts: "1 min",
	Run: runFigure6,
}

// The balancers in a row of the second part.
const inRow = 4

// row6 is a method's line of the tables.
type row6 struct {
	Name       string
	Deviations []float64 // sorted
}

func runFigure6(ctx context.Context, r *experiment.Recorder) error {
	t, err := balanceTraffic(r)
	if err != nil {
		return err
	}
	for _, hops := range []int{2, 4} {
		balancers, err := balancersFor(hops)
		if err != nil {
			return err
		}
		var one, row []row6
		for _, b := range balancers {
			r.Progress("%s, %d next hops", b.name, hops)
			one = append(one, row6{b.name, t.spread(b, hops, 1, binsPerSecond).deviations()})
			row = append(row, row6{b.name, t.spread(b, hops, inRow, 1).deviations()})
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		if err := reportFigure6(r, hops, one, row); err != nil {
			return err
		}
	}
	return radixes(r, t)
}

func reportFigure6(r *experiment.Recorder, hops int, one, row []row6) error {
	for _, part := range []struct {
		name, title string
		rows        []row6
	}{
		{fmt.Sprintf("fig6a-%d", hops), fmt.Sprintf("One balancer of %d next hops: deviation from "+
			"an equal share, %% of the packets of a second", hops), one},
		{fmt.Sprintf("fig6b-%d", hops), fmt.Sprintf("The last of four balancers of %d next hops "+
			"in a row: the same, of half a second", hops), row},
	} {
		table := experiment.Table{Name: part.name, Title: part.title,
			Columns: []string{"Method", "Bins", "Median", "95th percentile", "Greatest"}}
		var series []chart.Series
		for _, m := range part.rows {
			table.Add(m.Name, len(m.Deviations), percent(quantile(m.Deviations, 0.5)),
				percent(quantile(m.Deviations, 0.95)), percent(quantile(m.Deviations, 1)))
			series = append(series, chart.Series{Name: m.Name, Step: true,
				Points: chart.AtMost(m.Deviations)})
		}
		r.Table(table)
		if err := r.Chart(part.name, chart.Chart{Title: part.title, Series: series, ToY: 100,
			X: "greatest deviation from an equal share, %", Y: "bins, %"}); err != nil {
			return err
		}
	}
	if hops == 2 {
		r.Compare(experiment.Comparison{What: "greatest deviation of one balancer, 2 next hops, " +
			"without CRC16", Source: "below 4 %", Ours: worst(one, chance, "crc16") + " %",
			Says: "a random choice for each flow: " + greatest(one, chance) + " %, CRC16: " +
				greatest(one, "crc16") + " %"})
	}
	r.Compare(experiment.Comparison{What: fmt.Sprintf("median deviation behind four balancers of "+
		"%d next hops, MD5 and the ciphers", hops), Source: "CFLB at least as good as a hash",
		Ours: median6(row, "md5") + " and " + median6(row, "rc5", "skip32", "feistel") + " %",
		Says: fmt.Sprintf("a random choice: %s %%; CRC16: %s %%, for it is linear: a router's "+
			"number adds the same to all flows", median6(row, chance), median6(row, "crc16"))})
	return nil
}

// radixes shows that the radix makes no difference to shares.
func radixes(r *experiment.Recorder, t *traffic) error {
	const hops = 2
	table := experiment.Table{Name: "fig6-radix",
		Title:   "Feistel network, one balancer of 2 next hops, by radix",
		Columns: []string{"Radix", "Median", "95th percentile", "Greatest"}}
	for _, radix := range []int{2, 3, 4, 7, 8, 16} {
		b, err := controllable("feistel", cflb.Parameters{Fields: cflb.BothPorts, Radix: radix,
			Key: balanceKey}, hops)
		if err != nil {
			return err
		}
		d := t.spread(b, hops, 1, binsPerSecond).deviations()
		table.Add(radix, percent(quantile(d, 0.5)), percent(quantile(d, 0.95)),
			percent(quantile(d, 1)))
	}
	r.Table(table)
	return nil
}

// quantile is that of sorted values, not a number without.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

func percent(v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

// worst is the greatest deviation of all methods but some.
func worst(rows []row6, but ...string) string {
	most := 0.
	for _, m := range rows {
		if !slices.Contains(but, m.Name) {
			most = max(most, quantile(m.Deviations, 1))
		}
	}
	return percent(most)
}

// greatest is the greatest deviation of a method.
func greatest(rows []row6, name string) string {
	i := slices.IndexFunc(rows, func(m row6) bool { return m.Name == name })
	return percent(quantile(rows[i].Deviations, 1))
}

// median6 is the greatest median of the methods.
func median6(rows []row6, names ...string) string {
	most := 0.
	for _, m := range rows {
		if slices.Contains(names, m.Name) {
			most = max(most, quantile(m.Deviations, 0.5))
		}
	}
	return percent(most)
}

func meanSize() float64 {
	sizes, err := sim.NamedSizes(trafficSizes)
	if err != nil {
		return 0
	}
	return sizes.Mean()
}
