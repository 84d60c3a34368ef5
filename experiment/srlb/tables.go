package srlb

import (
	"fmt"
	"slices"

	"sextant/experiment"
)

// tables are all numbers.
func (f *findings) tables(r *experiment.Recorder) {
	r.Table(labTable("lab", "Poisson stream in the lab, and the same in the simulator, times in ms",
		f.lab, f.twins, f.replays))
	r.Table(meansTable("loads", "Mean response in ms by load, simulator", f.sweep,
		func(p point) string { return fmt.Sprintf("%.2f", p.Load) }))
	r.Table(distanceTable(f.sweep))
	r.Table(meansTable("sizes", "Mean response in ms at 0.88 by number of servers, simulator",
		f.sizes,
		func(p point) string { return p.Case }))
	r.Table(meansTable("unequal", "Mean response in ms with servers of unequal size, simulator",
		f.unequal,
		func(p point) string { return fmt.Sprintf("%s, at %g", p.Case, p.Load) }))
	r.Table(f.dayTable())
	if !f.noApache {
		r.Table(f.apacheTable())
	}
}

// sizeName is how a number of servers is written.
func sizeName(n int) string { return fmt.Sprintf("%d servers", n) }

// labTable has points of the lab beside the same in the simulator.
func labTable(name, title string, lab, twins, replays []point) experiment.Table {
	t := experiment.Table{
		Name: name, Title: title,
		Columns: []string{"Load", "Policy", "Requests", "Failed", "Mean", "±", "Median", "P90",
			"P99", "Fairness", "Simulator",
			"Difference, %", "by chance, %", "Replayed, %"},
	}
	for _, p := range lab {
		row := []string{fmt.Sprintf("%g", p.Load), p.Policy, fmt.Sprint(p.Requests),
			fmt.Sprint(p.Failed), ms(p.MeanMs), ms(p.HalfWidth),
			ms(p.quantile(0.5)), ms(p.quantile(0.9)), ms(p.quantile(0.99)), "-", "-", "-", "-", "-"}
		if len(p.Ages.Jain) > 0 {
			row[9] = ms(mean(p.Ages.Jain))
		}
		if twin, ok := at(twins, policy{name: p.Policy}, p.Load); ok {
			share, chance := difference(p, twin)
			row[10], row[11], row[12] = ms(twin.MeanMs), fmt.Sprintf("%+.1f", 100*share),
				fmt.Sprintf("%.1f", 100*chance)
		}
		if replay, ok := at(replays, policy{name: p.Policy}, p.Load); ok {
			share, _ := difference(p, replay)
			row[13] = fmt.Sprintf("%+.1f", 100*share)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func ms(value float64) string { return fmt.Sprintf("%.2f", value) }

// meansTable has a row per case and a column per policy.
func meansTable(name, title string, points []point, label func(point) string) experiment.Table {
	t := experiment.Table{Name: name, Title: title, Columns: []string{""}}
	for _, p := range points {
		if !slices.Contains(t.Columns, p.Policy) {
			t.Columns = append(t.Columns, p.Policy)
		}
		if n := len(t.Rows); n == 0 || t.Rows[n-1][0] != label(p) {
			t.Add(label(p))
		}
		text := ms(p.MeanMs)
		if p.Failed > 0 {
			text += fmt.Sprintf(" (%.1f %% refused)", 100*float64(p.Failed)/float64(p.Requests))
		}
		last := len(t.Rows) - 1
		t.Rows[last] = append(t.Rows[last], text)
	}
	return t
}

// distanceTable says how far policies are from join-the-shortest-queue.
func distanceTable(points []point) experiment.Table {
	t := experiment.Table{
		Name: "distance", Title: "Mean response above that of join-the-shortest-queue, in %, " +
			"simulator", Columns: []string{"Load"},
	}
	for _, p := range points {
		if p.Policy == rr.name {
			t.Add(fmt.Sprintf("%.2f", p.Load))
		}
	}
	for _, p := range all[:len(all)-1] {
		t.Columns = append(t.Columns, p.name)
		for row, ideal := range byLoad(points, jsq) {
			found, _ := at(points, p, ideal.X)
			t.Rows[row] = append(t.Rows[row], fmt.Sprintf("%.1f", 100*(found.MeanMs/ideal.Y-1)))
		}
	}
	return t
}

func (f *findings) dayTable() experiment.Table {
	t := experiment.Table{
		Name: "day", Title: "The synthetic day, times in ms",
		Columns: []string{"Where", "Policy", "Pages", "Failed", "Mean", "First quartile", "Median",
			"Third quartile", "P90",
			"Static files, mean"},
	}
	for _, where := range []struct {
		name string
		days []dayResult
	}{{"lab", f.day}, {"simulator", f.simulated}} {
		for _, d := range where.days {
			t.Add(where.name, d.Policy, d.Pages, d.Failed, ms(d.MeanMs), ms(d.quantile(0.25)),
				ms(d.quantile(0.5)), ms(d.quantile(0.75)), ms(d.quantile(0.9)), ms(d.StaticMs))
		}
	}
	return t
}
