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

var baselines = experiment.Experiment{
	Name: "fabric-baselines", Title: "Ways to choose paths in leaf-spine fabrics, side by side",
	Source: "the evaluations of CONGA (SIGCOMM 2014), CLOVE (CoNEXT 2017), HULA (SOSR 2016), " +
		"LetFlow (NSDI 2017), Hermes (SIGCOMM 2017), DRILL (SIGCOMM 2017), PLB (SIGCOMM 2022), " +
		"ConWeave (SIGCOMM 2023), REPS (2024) and SMOOTHIE (2023)",
	Shows: "Flows between random hosts of a leaf-spine fabric of 10 Gb/s, with DCTCP: the hosts' " +
		"links can fill those of the spines, carry twice as much, or meet links of a fifth of " +
		"the rate, or one that failed. All schemes see the same flows. The load is that of the " +
		"fabric's links, those that are slow or failed included.",
	Paper: experiment.Fabrics, Lasts: "2 h",
	Run: runBaselines,
}

// fabricKind is a network of the experiment.
type fabricKind struct {
	name, title string
	hosts       int // at each of 4 leaves, with 4 spines
	links       string
	failures    string
	share       float64 // capacity of the fabric as a part of that of the hosts
}

const slowLinks = `, slow: [{from: leaf0, to: spine3, rate: 2Gbps}, ` +
	`{from: leaf1, to: spine3, rate: 2Gbps}, {from: leaf2, to: spine2, rate: 2Gbps}]`

var fabricKinds = []fabricKind{
	{"symmetric", "Hosts can fill the spines' links", 4, "", "", 1},
	{"2-to-1", "Hosts can send twice what the spines' links carry", 8, "", "", 0.5},
	{"asymmetric", "3 of 16 links between switches have a fifth of the rate", 4, slowLinks, "",
		1 - 3.0/16*0.8},
	{"failed", "1 of 16 links between switches has failed", 4, "",
		"failures: [{from: leaf0, to: spine3, at: 1us}]", 1 - 1.0/16},
}

var baselineSchemes = []string{"ecmp", "random", "cflb", "flowlets", "in-flight", "letflow",
	"conga", "hula", "clove", "clove-int", "hermes", "conweave", "drill", "spray", "reps", "plb",
	"prr", "smoothie", "smoothie-clove", "sextant"}

// cellOfBaselines is one setting.
type cellOfBaselines struct {
	Fabric, Sizes, Scheme             string
	Load                              float64
	Flows, Unfinished                 int
	MeanMs, P99Ms, ShortP99Ms, LongMs float64
	Reroutes, Retransmissions, Drops  float64 // of a flow
}

// sweep is what a run of the experiment covers.
type sweep struct {
	sizes []string
	loads []float64
	seeds int
	flows int // of a run, about
}

func sweepOf(quick bool) sweep {
	if quick {
		return sweep{[]string{"web-search"}, []float64{0.4, 0.8}, 1, 400}
	}
	return sweep{[]string{"web-search", "data-mining", "storage"},
		[]float64{0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}, 3, 1000}
}

// scenarioOf is a setting: flows start until as many have as are wanted, and go on to their ends.
func (k fabricKind) scenarioOf(sizes string, load float64, flows int) ([]byte, error) {
	d, err := packet.NamedSizes(sizes)
	if err != nil {
		return nil, err
	}
	const leaves, rate = 4, 10e9 / 8
	perSecond := load * k.share * rate * float64(k.hosts) * leaves / d.Mean()
	until := time.Duration(float64(flows) / perSecond * float64(time.Second)).Round(
		time.Microsecond)
	return fmt.Appendf(nil, `
topology: {kind: leaf-spine, leaves: 4, spines: 4, hosts: %d}
links: {rate: 10Gbps, delay: 2us%s}
queue: {packets: 250, mark: 65}
transport: {control: dctcp, minRTO: 10ms, delayedAckUs: 200}
paths: {flowletGap: 100us, convergence: 10us}
traffic: {pattern: random, sizes: %s, load: %g, until: %s}
duration: %s
%s
`, k.hosts, k.links, sizes, load*k.share, until, until+2*time.Second, k.failures), nil
}

func runBaselines(ctx context.Context, r *experiment.Recorder) error {
	w := sweepOf(r.Quick())
	var cells []cellOfBaselines
	var work []func() error
	for _, k := range fabricKinds {
		for _, sizes := range w.sizes {
			for _, load := range w.loads {
				for _, scheme := range baselineSchemes {
					i := len(cells)
					cells = append(cells, cellOfBaselines{})
					work = append(work, func() (err error) {
						name := fmt.Sprintf("%s-%s-%g-%s", k.name, sizes, load, scheme)
						cells[i], err = experiment.Part(r, name, func() (cellOfBaselines, error) {
							return k.cell(ctx, w, sizes, load, scheme)
						})
						return err
					})
				}
			}
		}
	}
	if err := together(r, work); err != nil {
		return err
	}
	return reportBaselines(r, w, cells)
}

// cell makes the runs of one setting.
func (k fabricKind) cell(ctx context.Context, w sweep, sizes string, load float64,
	scheme string) (cellOfBaselines, error) {
	c := cellOfBaselines{Fabric: k.name, Sizes: sizes, Scheme: scheme, Load: load}
	text, err := k.scenarioOf(sizes, load, w.flows)
	if err != nil {
		return c, err
	}
	results, err := play(ctx, text, scheme, w.seeds)
	if err != nil {
		return c, fmt.Errorf("%s, %s at %g with %s: %w", k.name, sizes, load, scheme, err)
	}
	part := 1 / float64(len(results))
	for _, x := range results {
		c.Flows += x.Flows
		c.Unfinished += x.Unfinished
		c.MeanMs += x.MeanMs * part
		c.P99Ms += x.P99Ms * part
		c.ShortP99Ms += x.ShortP99Ms * part
		c.LongMs += x.LongMs * part
		flows := float64(max(x.Flows, 1))
		c.Reroutes += float64(x.Reroutes) / flows * part
		c.Retransmissions += float64(x.Retransmissions) / flows * part
		c.Drops += float64(x.Drops) / flows * part
	}
	return c, nil
}

// found is the cell of a setting; nil if the sweep has none.
func found(cells []cellOfBaselines, fabric, sizes string, load float64,
	scheme string) *cellOfBaselines {
	i := slices.IndexFunc(cells, func(c cellOfBaselines) bool {
		return c.Fabric == fabric && c.Sizes == sizes && c.Load == load && c.Scheme == scheme
	})
	if i < 0 {
		return nil
	}
	return &cells[i]
}

func reportBaselines(r *experiment.Recorder, w sweep, cells []cellOfBaselines) error {
	compareBaselines(r, w, cells)
	for _, k := range fabricKinds {
		for _, sizes := range w.sizes {
			c := chart.Chart{Title: fmt.Sprintf("%s; %s", k.title, sizes),
				X: "load of the fabric", Y: "mean completion time, of that of ECMP",
				FromX: 0, ToX: 1, ToY: 1.5}
			for _, scheme := range baselineSchemes[1:] {
				s := chart.Series{Name: scheme, Marks: true}
				for _, load := range w.loads {
					one := found(cells, k.name, sizes, load, scheme)
					ecmp := found(cells, k.name, sizes, load, "ecmp")
					s.Points = append(s.Points, chart.Point{X: load,
						Y: one.MeanMs / ecmp.MeanMs})
				}
				c.Series = append(c.Series, s)
			}
			if err := r.Chart(k.name+"-"+sizes, c); err != nil {
				return err
			}
		}
	}
	for _, k := range fabricKinds {
		r.Table(tableOfBaselines(k, cells))
	}
	r.Note("Completion times are means over the seeds. Retransmissions of schemes that move flows "+
		"are mostly of packets that came late. A run lasts until %d flows have started, and "+
		"longer for those to end.", w.flows)
	r.Note("Every number comes from the same flows; an order that a paper has at another load, " +
		"buffer or flowlet gap can differ here.")
	return nil
}

func tableOfBaselines(k fabricKind, cells []cellOfBaselines) experiment.Table {
	t := experiment.Table{Name: k.name, Title: k.title, Columns: []string{"Sizes", "Load", "Paths",
		"mean, ms", "p99, ms", "short p99, ms", "long mean, ms", "flows", "unfinished",
		"reroutes/flow", "retransmissions/flow", "drops/flow"}}
	for _, c := range cells {
		if c.Fabric != k.name {
			continue
		}
		ms := func(x float64) string { return fmt.Sprintf("%.3f", x) }
		t.Add(c.Sizes, c.Load, c.Scheme, ms(c.MeanMs), ms(c.P99Ms), ms(c.ShortP99Ms), ms(c.LongMs),
			c.Flows, c.Unfinished, fmt.Sprintf("%.2f", c.Reroutes),
			fmt.Sprintf("%.2f", c.Retransmissions), fmt.Sprintf("%.3f", c.Drops))
	}
	return t
}

// order is what the literature agrees on: one scheme is faster than another.
type order struct {
	fabric, one, other string
	p99                bool
	published          string
}

var orders = []order{
	{"asymmetric", "conga", "ecmp", false, "up to 5 times faster (CONGA, with a failed link)"},
	{"failed", "conga", "ecmp", false, "up to 5 times faster (CONGA)"},
	{"asymmetric", "letflow", "ecmp", false, "up to 10 times faster (LetFlow, asymmetric)"},
	{"asymmetric", "conga", "letflow", false, "LetFlow within 10 to 20 % (LetFlow)"},
	{"asymmetric", "hula", "ecmp", false, "far faster; 1.6 to 3 times CONGA (HULA)"},
	{"asymmetric", "clove", "ecmp", false, "1.5 to 7 times faster at 70 % (CLOVE)"},
	{"asymmetric", "conga", "clove", false, "CLOVE keeps 80 % of CONGA's gain (CLOVE)"},
	{"asymmetric", "clove-int", "clove", false, "95 % of CONGA's gain (CLOVE)"},
	{"asymmetric", "hermes", "clove", false, "up to 20 % faster (Hermes)"},
	{"symmetric", "conweave", "letflow", true, "up to 66.8 % less (ConWeave, p99)"},
	{"symmetric", "drill", "ecmp", false, "1.3 to 2.5 times faster (DRILL)"},
	{"symmetric", "reps", "ecmp", false, "up to 5 times faster (REPS)"},
	{"symmetric", "plb", "ecmp", true, "p99 of short up to 25 % less (PLB)"},
	{"2-to-1", "sextant", "ecmp", false, "36 % less (rates at max-min fairness, 80 %)"},
	{"2-to-1", "in-flight", "ecmp", true, "p99 33 % less (arXiv 2606.27697)"},
	{"2-to-1", "in-flight", "flowlets", true, "p99 15 % less (arXiv 2606.27697)"},
}

func compareBaselines(r *experiment.Recorder, w sweep, cells []cellOfBaselines) {
	load := w.loads[len(w.loads)-1]
	if i := slices.Index(w.loads, 0.8); i >= 0 {
		load = w.loads[i]
	}
	for _, o := range orders {
		one := found(cells, o.fabric, "web-search", load, o.one)
		other := found(cells, o.fabric, "web-search", load, o.other)
		a, b, what := one.MeanMs, other.MeanMs, "mean"
		if o.p99 {
			a, b, what = one.P99Ms, other.P99Ms, "99th percentile"
		}
		says := "the same order"
		if a > b {
			says = "not the same order"
		}
		r.Compare(experiment.Comparison{
			What: fmt.Sprintf("%s, web search at %g: %s or %s, %s", o.fabric, load, o.one,
				o.other, what),
			Source: o.published,
			Ours:   fmt.Sprintf("%.2f or %.2f ms, %+.0f %%", a, b, 100*(a/b-1)),
			Says:   says,
		})
	}
}
