package fabric

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/sim/packet/scenario"
)

// scarce is a fabric in which links between switches are scarce: 8 leaves and 8 spines.
type scarce struct {
	name, title string
	hosts       int  // of a leaf
	slow        bool // a fifth of the links between switches
}

var scarceFabrics = []scarce{
	{"even", "8 hosts and 8 spines for each of 8 leaves", 8, false},
	{"twice", "16 hosts and 8 spines for each of 8 leaves", 16, false},
	{"slow", "8 hosts and 8 spines for each of 8 leaves, 13 of 64 links at a fifth", 8, true},
}

// What all of these fabrics have.
const (
	fabricLeaves, fabricSpines = 8, 8
	slowLink                   = 0.2 // rate of a slow link, of that of the others
)

var fabricSchemes = []string{"ecmp", "letflow", "clove", "smoothie-clove", "conga", "hula",
	"smoothie", "sextant"}

// reaction is how long reports and paths take together; the kernel's is some 300 µs.
const reaction = 300 * time.Microsecond

var reactions = []time.Duration{100 * time.Microsecond, reaction, time.Millisecond,
	10 * time.Millisecond, 100 * time.Millisecond, time.Second}

// slowLinks are every fifth of the links between leaves and spines.
func (f scarce) slowLinks() (links []string) {
	for i := 0; f.slow && i < fabricLeaves*fabricSpines; i += 5 {
		links = append(links, fmt.Sprintf("{from: leaf%d, to: spine%d, rate: 2Gbps}",
			i/fabricSpines, i%fabricSpines))
	}
	return links
}

// ofHosts is the load of the hosts' links that gives those between switches a load: of flows
// between random hosts, some stay below a leaf.
func (f scarce) ofHosts(load float64) float64 {
	links := fabricLeaves*fabricSpines - (1-slowLink)*float64(len(f.slowLinks()))
	hosts := float64(fabricLeaves * f.hosts)
	leaves := (hosts - float64(f.hosts)) / (hosts - 1) // part of the flows
	return load * links / (hosts * leaves)
}

// scenario is one at 10 Gb/s, with delays of the kernel's order between sink, controller and
// head-end. Flows begin for many times as long as one lasts, so that those at the beginning, which
// find an empty fabric, are few.
func (f scarce) scenario(load float64, takes time.Duration, quick bool) (*scenario.Scenario,
	error) {
	until, lasts := "140ms", "1s"
	if quick {
		until, lasts = "2ms", "40ms"
	}
	return scenario.Parse(fmt.Appendf(nil, `
topology: {kind: leaf-spine, leaves: 8, spines: 8, hosts: %d}
links: {rate: 10Gbps, delay: 1us, slow: [%s]}
queue: {packets: 250, mark: 65}
transport: {control: dctcp, minRTO: 10ms}
paths:
  flowletGap: 100us
  controller: {sample: 0.02, pause: 100us, backoff: 500us, reportDelay: %s, controlDelay: %s}
traffic: {pattern: random, sizes: web-search, load: %g, until: %s}
duration: %s
`, f.hosts, strings.Join(f.slowLinks(), ", "), takes/3, takes-takes/3, f.ofHosts(load), until,
		lasts), nil)
}

// fabricOutcome is one bar.
type fabricOutcome struct {
	Fabric string
	outcome
}

// fabricCase is one setting of the experiment.
type fabricCase struct {
	fabric scarce
	load   float64
	scheme string
	takes  time.Duration
}

// fabricCases are all schemes on all fabrics, and on one the controller with other reaction times.
func fabricCases() (cases []fabricCase) {
	for _, f := range scarceFabrics {
		for _, load := range []float64{0.4, 0.8} {
			for _, scheme := range fabricSchemes {
				cases = append(cases, fabricCase{f, load, scheme, reaction})
			}
		}
	}
	for _, takes := range reactions {
		cases = append(cases, fabricCase{scarceFabrics[1], 0.8, "sextant", takes})
	}
	return cases
}

const fabricSeeds = 3

func runSmoothieFabrics(ctx context.Context, r *experiment.Recorder) error {
	seeds := fabricSeeds
	if r.Quick() {
		seeds = 1
	}
	cases := fabricCases()
	outcomes := make([]fabricOutcome, len(cases))
	var work []func() error
	for i, c := range cases {
		work = append(work, func() error {
			name := fmt.Sprintf("%s-%s-%g-%s", c.fabric.name, c.scheme, c.load, c.takes)
			o, err := experiment.Part(r, name, func() (outcome, error) {
				s, err := c.fabric.scenario(c.load, c.takes, r.Quick())
				if err != nil {
					return outcome{}, err
				}
				return runs(ctx, s, tuned(c.scheme, c.load), seeds)
			})
			outcomes[i] = fabricOutcome{c.fabric.name, o}
			return err
		})
	}
	if err := together(r, work); err != nil {
		return err
	}
	return reportSmoothieFabrics(r, outcomes)
}

// besideECMP is the part by which an outcome differs from ECMP's, and the half of its interval.
func (o outcome) besideECMP(ecmp outcome) string {
	difference, half := o.beside(ecmp)
	return fmt.Sprintf("%+.1f", 100*difference/ecmp.MeanMs) +
		halfText("%.1f", 100*half/ecmp.MeanMs)
}

// reportSmoothieFabrics reports the outcomes of fabricCases.
func reportSmoothieFabrics(r *experiment.Recorder, outcomes []fabricOutcome) error {
	schemes := outcomes[:len(outcomes)-len(reactions)]
	find := func(fabric, scheme string, load float64) outcome {
		for _, o := range schemes {
			if o.Fabric == fabric && o.Scheme == scheme && o.Load == load {
				return o.outcome
			}
		}
		return outcome{}
	}
	t := experiment.Table{Name: "fabrics", Title: "Completion times of flows",
		Columns: []string{"Fabric", "Load, %", "Paths", "Mean, ms", "P99, ms", "Beside ECMP, %",
			"Reroutes per flow", "Most", "Unfinished", "Drops"}}
	for _, o := range schemes {
		t.Add(o.Fabric, fmt.Sprintf("%.0f", 100*o.Load), o.Scheme, fmt.Sprintf("%.3f", o.MeanMs),
			fmt.Sprintf("%.3f", o.P99Ms), o.besideECMP(find(o.Fabric, "ecmp", o.Load)),
			fmt.Sprintf("%.3f", o.reroutes()), max(0, len(o.Moves)-1), o.Unfinished, o.Drops)
	}
	r.Table(t)
	for _, f := range scarceFabrics {
		c := chart.Chart{Title: f.title, X: "load, % of the links between switches",
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
			Says: fmt.Sprintf("beside ECMP sextant %s %%, smoothie %s %%", mine.besideECMP(ecmp),
				smoothie.besideECMP(ecmp))})
	}
	reportReactions(r, outcomes[len(schemes):], find("twice", "ecmp", 0.8))
	r.Note("The load is that of the links between switches, and flows begin for 140 ms. " +
		"Intervals are of 95 %%, of the differences between runs with the same flows.")
	r.Note("Smoothie backs off for 0.5 to 1 ms here, in place of seconds: the round-trip time " +
		"is a thousandth of the paper's.")
	return nil
}

// reportReactions is the sweep of reaction times.
func reportReactions(r *experiment.Recorder, outcomes []fabricOutcome, ecmp outcome) {
	t := experiment.Table{Name: "reactions",
		Title:   scarceFabrics[1].title + ", 80 %: sextant over its reaction time",
		Columns: []string{"Reaction", "Mean, ms", "Beside ECMP, %", "Reroutes per flow"}}
	for i, o := range outcomes {
		t.Add(reactions[i].String(), fmt.Sprintf("%.3f", o.MeanMs), o.besideECMP(ecmp),
			fmt.Sprintf("%.3f", o.reroutes()))
	}
	r.Table(t)
}

// reroutes is how often a flow was rerouted in the mean.
func (o outcome) reroutes() float64 {
	sum := 0
	for times, flows := range o.Moves {
		sum += times * flows
	}
	return float64(sum) / float64(max(1, o.Flows))
}
