package fabric

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/sim/packet"
)

var control = experiment.Experiment{
	Name:  "smoothie-control",
	Title: "How fast a controller of SMOOTHIE must be, at 10 and 100 Gb/s",
	Source: "L. Champagne, B. Donnet, SMOOTHIE: efficient and flexible load-balancing in data " +
		"center, section IV, whose network has links of some 1 Mb/s",
	Shows: "A leaf-spine fabric whose hosts can send twice what the spines' links carry, with " +
		"links of a fifth of the rate besides. Telemetry in a part of the packets, pauses of " +
		"flows, reports, decisions of te/reroute and their delays are simulated; the same flows " +
		"take ECMP, CLOVE, LetFlow and CONGA. It shows how fast a controller must be, and how " +
		"much telemetry it takes: with reports of pauses that do not wait for telemetry, none.",
	Paper: experiment.SMOOTHIE, Lasts: "30 min",
	Run: runControl,
}

// controlCase is one setting of the controller; of baselines only the scheme counts.
type controlCase struct {
	Name, Scheme string
	Sample       float64
	Delay        time.Duration // of a report, and of a new path
	Backoff      time.Duration // 0: as the policy has it
}

var controlCases = []controlCase{
	{Name: "ecmp", Scheme: "ecmp"}, {Name: "letflow", Scheme: "letflow"},
	{Name: "clove", Scheme: "clove"}, {Name: "conga", Scheme: "conga"},
	{"smoothie, the paper's settings", "smoothie", 0.02, 150 * time.Microsecond, 0},
	{"smoothie, backoff 1 ms", "smoothie", 0.02, 150 * time.Microsecond, time.Millisecond},
	{"smoothie, backoff 1 ms, 1/1000", "smoothie", 0.001, 150 * time.Microsecond,
		time.Millisecond},
	{"sextant", "sextant", 0.02, 150 * time.Microsecond, time.Millisecond},
	{"sextant, 1/1000", "sextant", 0.001, 150 * time.Microsecond, time.Millisecond},
	{"sextant, 10 ms", "sextant", 0.02, 5 * time.Millisecond, time.Millisecond},
	{"sextant, 100 ms", "sextant", 0.02, 50 * time.Millisecond, time.Millisecond},
}

// cellOfControl is the outcome of a setting.
type cellOfControl struct {
	Case          controlCase
	Gbps          int
	Load          float64
	MeanMs, P99Ms float64
	Reroutes      float64 // of a flow
	Flows         int
}

func (c controlCase) scenarioOf(gbps int, load float64, flows int) ([]byte, error) {
	d, err := packet.NamedSizes("web-search")
	if err != nil {
		return nil, err
	}
	const leaves, hosts, share = 4, 8, 0.5
	rate := float64(gbps) * 1e9 / 8
	until := time.Duration(float64(flows) * d.Mean() / (load * share * rate * leaves * hosts) *
		float64(time.Second)).Round(time.Microsecond)
	// Some 4 round-trip times, the paper's tau.
	pause := time.Millisecond / time.Duration(gbps)
	controller := ""
	if c.Sample > 0 {
		controller = fmt.Sprintf(", controller: {sample: %g, pause: %s, reportDelay: %s, "+
			"controlDelay: %s", c.Sample, pause, c.Delay, c.Delay)
		if c.Backoff > 0 {
			controller += fmt.Sprintf(", backoff: %s", c.Backoff)
		}
		controller += "}"
	}
	slow := fmt.Sprintf("%gGbps", float64(gbps)/5)
	return fmt.Appendf(nil, `
topology: {kind: leaf-spine, leaves: 4, spines: 4, hosts: 8}
links: {rate: %dGbps, delay: 1us, slow: [{from: leaf0, to: spine3, rate: %s},
  {from: leaf1, to: spine2, rate: %s}]}
queue: {packets: 250, mark: 65}
transport: {control: dctcp, minRTO: 10ms, delayedAckUs: 200}
paths: {flowletGap: %s%s}
traffic: {pattern: random, sizes: web-search, load: %g, until: %s}
duration: %s
`, gbps, slow, slow, pause, controller, load*share, until, until+2*time.Second), nil
}

func runControl(ctx context.Context, r *experiment.Recorder) error {
	loads, seeds, flows := []float64{0.2, 0.4, 0.6, 0.8}, 3, 2000
	if r.Quick() {
		loads, seeds, flows = []float64{0.4, 0.8}, 1, 500
	}
	var cells []cellOfControl
	var work []func() error
	for _, gbps := range []int{10, 100} {
		for _, load := range loads {
			for n, c := range controlCases {
				i := len(cells)
				cells = append(cells, cellOfControl{})
				work = append(work, func() (err error) {
					name := fmt.Sprintf("%d-%g-%d", gbps, load, n)
					cells[i], err = experiment.Part(r, name, func() (cellOfControl, error) {
						return c.cell(ctx, gbps, load, seeds, flows)
					})
					return err
				})
			}
		}
	}
	if err := together(r, work); err != nil {
		return err
	}
	return reportControl(r, loads, cells)
}

func (c controlCase) cell(ctx context.Context, gbps int, load float64,
	seeds, flows int) (cellOfControl, error) {
	out := cellOfControl{Case: c, Gbps: gbps, Load: load}
	text, err := c.scenarioOf(gbps, load, flows)
	if err != nil {
		return out, err
	}
	results, err := play(ctx, text, c.Scheme, seeds)
	if err != nil {
		return out, fmt.Errorf("%s at %d Gb/s and %g: %w", c.Name, gbps, load, err)
	}
	part := 1 / float64(len(results))
	for _, x := range results {
		out.MeanMs += x.MeanMs * part
		out.P99Ms += x.P99Ms * part
		out.Reroutes += float64(x.Reroutes) / float64(max(x.Flows, 1)) * part
		out.Flows += x.Flows
	}
	return out, nil
}

func reportControl(r *experiment.Recorder, loads []float64, cells []cellOfControl) error {
	at := func(gbps int, load float64, name string) cellOfControl {
		return cells[slices.IndexFunc(cells, func(c cellOfControl) bool {
			return c.Gbps == gbps && c.Load == load && c.Case.Name == name
		})]
	}
	last := loads[len(loads)-1]
	for _, gbps := range []int{10, 100} {
		for _, x := range []struct{ name, other, published string }{
			{"smoothie, the paper's settings", "ecmp",
				"superior (figure 2; the text has no number)"},
			{"smoothie, the paper's settings", "clove", "better at full load (figure 2)"},
			{"sextant", "ecmp", "-36 % (rates at max-min fairness, 80 %)"},
			{"sextant", "clove", "-15 % (rates at max-min fairness, 80 %)"},
			{"sextant, 1/1000", "sextant", "worse beyond 1/70 where pauses wait for telemetry"},
			{"sextant, 100 ms", "sextant", "keeps 11 % of the gain, 1 ms 65 % (rates)"},
		} {
			one, other := at(gbps, last, x.name), at(gbps, last, x.other)
			r.Compare(experiment.Comparison{
				What: fmt.Sprintf("%d Gb/s, load %g: %s, or %s", gbps, last, x.name,
					x.other),
				Source: x.published,
				Ours:   fmt.Sprintf("%.2f or %.2f ms in the mean", one.MeanMs, other.MeanMs),
				Says:   fmt.Sprintf("%+.1f %%", 100*(one.MeanMs/other.MeanMs-1)),
			})
		}
		one, other := at(gbps, last, "smoothie, the paper's settings"), at(gbps, last, "clove")
		r.Compare(experiment.Comparison{
			What:   fmt.Sprintf("%d Gb/s, load %g: moves of a flow, smoothie or clove", gbps, last),
			Source: "at most 2, or more than 5 in 27 % of cases and up to 37 (figure 4)",
			Ours:   fmt.Sprintf("%.2f or %.2f in the mean", one.Reroutes, other.Reroutes),
			Says:   fmt.Sprintf("%.0f times fewer", other.Reroutes/max(one.Reroutes, 1e-9)),
		})
		c := chart.Chart{Title: fmt.Sprintf("Web search over links of %d Gb/s", gbps),
			X: "load of the fabric", Y: "mean completion time, ms", ToX: 1}
		for _, k := range controlCases {
			s := chart.Series{Name: k.Name, Marks: true}
			for _, load := range loads {
				s.Points = append(s.Points, chart.Point{X: load, Y: at(gbps, load,
					k.Name).MeanMs})
			}
			c.Series = append(c.Series, s)
		}
		if err := r.Chart(fmt.Sprintf("control-%d", gbps), c); err != nil {
			return err
		}
	}
	t := experiment.Table{Name: "control", Title: "Completion times",
		Columns: []string{"Gb/s", "Load", "Paths", "mean, ms", "p99, ms", "reroutes/flow", "flows"}}
	for _, c := range cells {
		t.Add(c.Gbps, c.Load, c.Case.Name, fmt.Sprintf("%.3f", c.MeanMs),
			fmt.Sprintf("%.3f", c.P99Ms), fmt.Sprintf("%.3f", c.Reroutes), c.Flows)
	}
	r.Table(t)
	r.Note("Delays in names are those of a report and of a path together; without one 0.3 ms. " +
		"Backoffs are random from the stated time to twice that; the paper's are 0.5 to 1 s. " +
		"One of 50 packets carries telemetry, or one of 1000 where that is stated.")
	return nil
}
