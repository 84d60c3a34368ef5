package srlb

import (
	"fmt"
	"math"
	"slices"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/sim/queueing"
)

// report writes what the parts have found.
func (f *findings) report(r *experiment.Recorder) error {
	f.compareTheory(r)
	f.compareLab(r)
	f.compareIdeals(r)
	f.compareDay(r)
	compareTwins(r, f.lab, f.twins)
	f.compareApache(r)
	f.tables(r)
	notes(r, f)
	return f.charts(r)
}

// at finds the point of a policy at a load, among those of one case if there are several.
func at(points []point, p policy, load float64) (point, bool) {
	for _, found := range points {
		if found.Policy == p.name && found.Load == load {
			return found, true
		}
	}
	return point{}, false
}

// theoryMs is the mean response of random choice: an M/M/2 queue at each server.
func theoryMs(load float64) float64 {
	mean, err := queueing.MeanResponse(cores, load, service)
	if err != nil {
		return math.NaN()
	}
	return mean.Seconds() * 1000
}

func (f *findings) compareTheory(r *experiment.Recorder) {
	for _, p := range f.lab {
		if p.Policy != rr.name {
			continue
		}
		want := theoryMs(p.Load) + f.overheadMs
		says := "agrees"
		if math.Abs(p.MeanMs-want) > max(p.HalfWidth, 0.05*want) {
			says = "differs by more than chance and 5 %"
		}
		r.Compare(experiment.Comparison{
			What:   fmt.Sprintf("lab: RR at %g, mean, against M/M/2", p.Load),
			Source: fmt.Sprintf("theory: %.1f ms", want),
			Ours:   withInterval(p), Says: says,
		})
	}
}

func withInterval(p point) string { return fmt.Sprintf("%.1f ± %.1f ms", p.MeanMs, p.HalfWidth) }

// goalRatio is the paper's figure 2: RR by SR_4 at 0.88.
const goalRatio = 2.3

func (f *findings) compareLab(r *experiment.Recorder) {
	for _, where := range []struct {
		name   string
		points []point
	}{{"lab", f.lab}, {"simulator", f.sweep}} {
		random, ok1 := at(where.points, rr, watched)
		for _, p := range []policy{sr4, dynamic, average} {
			found, ok2 := at(where.points, p, watched)
			if !ok1 || !ok2 {
				continue
			}
			source, says := "-", ""
			ratio := random.MeanMs / found.MeanMs
			if p == sr4 {
				source, says = "2.3 times", reached(ratio >= goalRatio)
			}
			r.Compare(experiment.Comparison{
				What: fmt.Sprintf("%s: %s faster than RR at 0.88, in the mean", where.name,
					p.name),
				Source: source, Ours: fmt.Sprintf("%.2f times", ratio), Says: says,
			})
		}
	}
}

func reached(yes bool) string {
	if yes {
		return "reached"
	}
	return "not reached"
}

// worst is the load at which a policy does worst in comparison, and by how much.
type worst struct{ load, ratio float64 }

// against compares a policy with the best of others at each load.
func against(points []point, p policy, others ...policy) (w worst) {
	for _, found := range points {
		if found.Policy != p.name {
			continue
		}
		best := math.Inf(1)
		for _, o := range others {
			if other, ok := at(points, o, found.Load); ok {
				best = min(best, other.MeanMs)
			}
		}
		if ratio := found.MeanMs / best; ratio > w.ratio {
			w = worst{found.Load, ratio}
		}
	}
	return w
}

func (w worst) String() string {
	return fmt.Sprintf("%+.1f %% at worst, at %g", 100*(w.ratio-1), w.load)
}

// upTo leaves out points of heavier load.
func upTo(points []point, load float64) []point {
	return slices.DeleteFunc(slices.Clone(points), func(p point) bool { return p.Load > load })
}

// paperMost is the heaviest of the loads that stand for the paper's 24.
const paperMost = 0.96

func (f *findings) compareIdeals(r *experiment.Recorder) {
	for _, c := range []struct {
		what, source string
		worst        worst
		limit        float64
	}{
		{"simulator: SR_dyn against the best of SR_4, SR_8, SR_16, loads to 0.96",
			"close to the best static policy",
			against(upTo(f.sweep, paperMost), dynamic, static...), 1.1},
		{"simulator: SR_dyn with a window of 500 offers against the best of SR_4, SR_8, SR_16, " +
			"all loads", "-",
			against(f.sweep, patient, static...), 1.1},
		{"simulator: average against the best of SR_4, SR_8, SR_16, all loads", "-",
			against(f.sweep, average, static...), 1},
		{"simulator: average against SR_dyn, all loads", "-", against(f.sweep, average, dynamic),
			1},
		{"simulator: average with the paper's 2 candidates against SR_dyn, all loads", "-",
			against(f.sweep, pair, dynamic), 1},
		{"simulator: average against JSQ(2), all loads", "-", against(f.sweep, average, jsq2), 1.1},
		{"lab: average against SR_dyn, all loads", "-", against(f.lab, average, dynamic), 1},
		{"lab: SR_dyn against the best of SR_4, SR_8, SR_16, all loads",
			"close to the best static policy",
			against(f.lab, dynamic, static...), 1.1},
	} {
		r.Compare(experiment.Comparison{What: c.what, Source: c.source, Ours: c.worst.String(),
			Says: "goal " +
				fmt.Sprintf("%+.0f %%: ", 100*(c.limit-1)) +
				reached(c.worst.ratio <= c.limit+0.001)})
	}
}

func (f *findings) compareDay(r *experiment.Recorder) {
	for _, where := range []struct {
		name string
		days []dayResult
	}{{"lab", f.day}, {"simulator", f.simulated}} {
		for _, d := range where.days {
			if len(where.days) == 0 || d.Policy == rr.name || d.Policy == jsq2.name {
				continue
			}
			random := where.days[0]
			for _, q := range []struct {
				name, source string
				share, goal  float64
			}{{"median", "0.25 s to 0.20 s: 1.25 times", 0.5, 1.25},
				{"third quartile", "0.48 s to 0.28 s: 1.71 times", 0.75, 48. / 28}} {
				ratio := random.quantile(q.share) / d.quantile(q.share)
				source := q.source
				if d.Policy != sr4.name {
					source = "-"
				}
				r.Compare(experiment.Comparison{
					What: fmt.Sprintf("%s: synthetic day, RR to %s, %s of pages", where.name,
						d.Policy, q.name), Source: source,
					Ours: fmt.Sprintf("%.0f ms to %.0f ms: %.2f times", random.quantile(q.share),
						d.quantile(q.share), ratio),
					Says: "at least the paper's ratio: " + reached(ratio >= q.goal),
				})
			}
		}
	}
}

func compareTwins(r *experiment.Recorder, lab, twins []point) {
	within, all, unlucky := 0, 0, 0
	for _, p := range lab {
		twin, ok := at(twins, policy{name: p.Policy}, p.Load)
		if !ok {
			continue
		}
		all++
		share, chance := difference(p, twin)
		switch {
		case math.Abs(share) <= 0.05:
			within++
		case math.Abs(share) <= chance:
			unlucky++
		}
	}
	says := "the others differ by more than chance"
	if missed := all - within - unlucky; missed <= all/20+1 {
		says = "as chance allows, by which one interval in twenty misses"
	}
	r.Compare(experiment.Comparison{
		What: "mean response of lab and simulator, points within 5 %", Source: "-",
		Ours: fmt.Sprintf("%d of %d, and %d more within their confidence interval", within, all,
			unlucky), Says: says,
	})
}

func notes(r *experiment.Recorder, f *findings) {
	r.Note("The lab's servers are emulated: each answers when a machine of two cores and 32 "+
		"workers would, and needs next to no CPU "+
		"itself. CPU times are a tenth of the paper's, 10 ms in the mean. A request without CPU "+
		"time takes %.2f ms in the lab, which "+
		"theory and simulator are given as well.", f.overheadMs)
	r.Note("Loads are parts of what the servers' cores can do, and not of the rate at which " +
		"connections are first refused.")
	r.Note("The Wikipedia trace of the paper is not public any more, so the day is synthetic: a " +
		"sinusoidal rate from 0.45 of the " +
		"peak at 8:00 to the peak at 20:00, pages of lognormal CPU time (20 ms in the mean), and " +
		"one static file of 1 ms for " +
		"each. An access log of your own: sextant loadgen URL --replay access.log.")
	r.Note("RR, SR_4, SR_8, SR_16 and SR_dyn have one or two candidates as in the paper, average " +
		"has three unless it says otherwise; " +
		"with it, a refused SYN tells the next candidate how busy the servers are " +
		"(docs/explanation/hunting.md).")
	late := 0.0
	for _, p := range f.lab {
		late = max(late, p.LateMs)
	}
	r.Note("The load generator was late by %.2f ms in the mean at worst; that is part of the "+
		"lab's response times. Intervals are "+
		"confidence intervals at 0.95, by the means of servers for RR, and by the method of "+
		"batch means else.", late)
}

// charts are the paper's figures, from the lab where the paper's come from its testbed.
func (f *findings) charts(r *experiment.Recorder) error {
	if err := f.meanCharts(r); err != nil {
		return err
	}
	if err := f.distributionCharts(r); err != nil {
		return err
	}
	if err := f.instantCharts(r); err != nil {
		return err
	}
	return f.dayCharts(r)
}

func (f *findings) meanCharts(r *experiment.Recorder) error {
	c := chart.Chart{Title: "Figure 2: mean response time by load", X: "load", Y: "ms", ToX: 1,
		ToY: 60}
	for _, p := range contenders {
		c.Series = append(c.Series, chart.Series{Name: p.name + ", lab", Points: byLoad(f.lab, p),
			Marks: true})
	}
	if err := r.Chart("fig2", c); err != nil {
		return err
	}
	c.Title, c.Series = "Mean response time by load, simulator", nil
	for _, p := range all {
		c.Series = append(c.Series, chart.Series{Name: p.name, Points: byLoad(f.sweep, p),
			Dashed: p == jsq || p == jsq2})
	}
	return r.Chart("fig2-simulator", c)
}

func byLoad(points []point, p policy) (out []chart.Point) {
	for _, found := range points {
		if found.Policy == p.name {
			out = append(out, chart.Point{X: found.Load, Y: found.MeanMs})
		}
	}
	return out
}
