package fabric

import (
	"context"
	"fmt"
	"strings"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/sim/packet/scenario"
)

// scarce is a fabric in which links between switches are scarce.
type scarce struct {
	name, title string
	hosts       int  // of a leaf; it has 8 links to spines
	slow        bool // an eighth of the links between switches
}

var scarceFabrics = []scarce{
	{"even", "8 hosts and 8 spines for each of 8 leaves", 8, false},
	{"twice", "16 hosts and 8 spines for each of 8 leaves", 16, false},
	{"slow", "8 hosts and 8 spines for each of 8 leaves, 8 of 64 links at a fifth", 8, true},
}

var fabricSchemes = []string{"ecmp", "letflow", "smoothie-clove", "clove", "clove-int", "conga",
	"smoothie", "sextant"}

// scenario is one at 10 Gb/s, with delays of the kernel's order between sink, controller and
// head-end.
func (f scarce) scenario(load float64, quick bool) (*scenario.Scenario, error) {
	until, lasts, slow := "30ms", "150ms", ""
	if quick {
		until, lasts = "2ms", "40ms"
	}
	if f.slow {
		var links []string
		for leaf := range 8 {
			links = append(links, fmt.Sprintf("{from: leaf%d, to: spine%d, rate: 2Gbps}", leaf,
				leaf))
		}
		slow = ", slow: [" + strings.Join(links, ", ") + "]"
	}
	return scenario.Parse(fmt.Appendf(nil, `
topology: {kind: leaf-spine, leaves: 8, spines: 8, hosts: %d}
links: {rate: 10Gbps, delay: 1us%s}
queue: {packets: 250, mark: 65}
transport: {control: dctcp, minRTO: 10ms}
paths:
  flowletGap: 100us
  controller: {sample: 0.02, pause: 100us, backoff: 500us, reportDelay: 100us, controlDelay: 200us}
traffic: {pattern: random, sizes: web-search, load: %g, until: %s}
duration: %s
`, f.hosts, slow, load, until, lasts), nil)
}

// fabricOutcome is one bar.
type fabricOutcome struct {
	Fabric string
	outcome
}

func runSmoothieFabrics(ctx context.Context, r *experiment.Recorder) error {
	seeds := 2
	if r.Quick() {
		seeds = 1
	}
	var outcomes []fabricOutcome
	var work []func() error
	for _, f := range scarceFabrics {
		for _, load := range []float64{0.4, 0.8} {
			for _, scheme := range fabricSchemes {
				i := len(outcomes)
				outcomes = append(outcomes, fabricOutcome{})
				work = append(work, func() error {
					x := tuned(scheme, load)
					name := fmt.Sprintf("%s-%s-%g", f.name, scheme, load)
					o, err := experiment.Part(r, name, func() (outcome, error) {
						s, err := f.scenario(load, r.Quick())
						if err != nil {
							return outcome{}, err
						}
						return runs(ctx, s, x, seeds)
					})
					outcomes[i] = fabricOutcome{f.name, o}
					return err
				})
			}
		}
	}
	if err := together(r, work); err != nil {
		return err
	}
	return reportSmoothieFabrics(r, outcomes)
}

func reportSmoothieFabrics(r *experiment.Recorder, outcomes []fabricOutcome) error {
	t := experiment.Table{Name: "fabrics", Title: "Completion times of flows",
		Columns: []string{"Fabric", "Load, %", "Paths", "Mean, ms", "P99, ms", "of ECMP, %",
			"Reroutes per flow", "Unfinished", "Drops"}}
	find := func(fabric, scheme string, load float64) outcome {
		for _, o := range outcomes {
			if o.Fabric == fabric && o.Scheme == scheme && o.Load == load {
				return o.outcome
			}
		}
		return outcome{}
	}
	for _, o := range outcomes {
		t.Rows = append(t.Rows, []string{o.Fabric, fmt.Sprintf("%.0f", 100*o.Load), o.Scheme,
			fmt.Sprintf("%.3f", o.MeanMs), fmt.Sprintf("%.3f", o.P99Ms),
			fmt.Sprintf("%.1f", 100*o.MeanMs/find(o.Fabric, "ecmp", o.Load).MeanMs),
			fmt.Sprintf("%.3f", o.reroutes()), fmt.Sprint(o.Unfinished), fmt.Sprint(o.Drops)})
	}
	r.Table(t)
	for _, f := range scarceFabrics {
		c := chart.Chart{Title: f.title, X: "load, % of the hosts' links",
			Y: "mean completion time, ms"}
		for _, scheme := range fabricSchemes {
			s := chart.Series{Name: scheme, Marks: true}
			for _, load := range []float64{0.4, 0.8} {
				s.Points = append(s.Points, chart.Point{X: 100 * load,
					Y: find(f.name, scheme, load).MeanMs})
			}
			c.Series = append(c.Series, s)
		}
		if err := r.Chart("fabrics-"+f.name, c); err != nil {
			return err
		}
		mine, smoothie := find(f.name, "sextant", 0.8), find(f.name, "smoothie", 0.8)
		ecmp := find(f.name, "ecmp", 0.8)
		r.Compare(experiment.Comparison{What: f.title + ", 80 %: sextant, smoothie and ECMP",
			Source: "-", Ours: fmt.Sprintf("%.2f, %.2f and %.2f ms", mine.MeanMs, smoothie.MeanMs,
				ecmp.MeanMs),
			Says: fmt.Sprintf("sextant %+.1f %% beside ECMP, smoothie %+.1f %%",
				100*(mine.MeanMs/ecmp.MeanMs-1), 100*(smoothie.MeanMs/ecmp.MeanMs-1))})
	}
	r.Note("Smoothie backs off for 0.5 to 1 ms here, in place of seconds: the round-trip time " +
		"is a thousandth of the paper's.")
	return nil
}

// reroutes is how often a flow was rerouted in the mean.
func (o outcome) reroutes() float64 {
	sum := 0
	for times, flows := range o.Moves {
		sum += times * flows
	}
	return float64(sum) / float64(max(1, o.Flows))
}
