package fabric

import (
	"context"
	"fmt"
	"slices"

	"sextant/experiment"
	"sextant/experiment/chart"
)

// All lists the experiments.
func All() []experiment.Experiment {
	return slices.Concat([]experiment.Experiment{figure9, baselines, control, inLab,
		flowletsLab}, smoothieFigures, smoothieLabs)
}

var figure9 = experiment.Experiment{
	Name: "cflb-fig9", Title: "Throughput of permutations with MPTCP, CFLB and edge coloring",
	Source: "G. Detal, C. Paasch, S. van der Linden, P. Merindol, G. Avoine, O. Bonaventure, " +
		"Revisiting flow-based load balancing: stateless path selection in data center " +
		"networks, figure 9",
	Shows: "On a fat tree of 128 hosts and 80 switches with links of 100 Mb/s, each host sends " +
		"without end to one other. Subflows of MPTCP take random paths, or those that CFLB's " +
		"scheduler chooses, with the fewest flows on the busiest link, or those of an edge " +
		"coloring. The same on a VL2, where paths lead over any intermediate switch, and on a " +
		"BCube, whose servers forward and have several ports. As in csg-htsim, acknowledgements " +
		"take no link; rows with acknowledgements on links are beside.",
	Paper: experiment.CFLB, Lasts: "15 min",
	Run: runFigure9,
}

// fabric9 is a network of the experiment.
type fabric9 struct {
	name, title string
	topology    string // of the scenario
	quick       string
	schemes     []string
	acks        bool // acknowledgements take links
}

const subflows9 = 8 // at most

var fabrics9 = []fabric9{
	{"fat-tree", "Fat tree, 128 hosts", "{kind: fat-tree, k: 8}", "{kind: fat-tree, k: 4}",
		[]string{"random", "cflb", "coloring"}, false},
	{"fat-tree-acks", "Fat tree, 128 hosts, acknowledgements on links", "{kind: fat-tree, k: 8}",
		"{kind: fat-tree, k: 4}", []string{"random", "cflb", "coloring"}, true},
	{"vl2", "VL2 over any intermediate switch, 120 hosts", "{kind: vl2, da: 20, di: 6, hosts: 4}",
		"{kind: vl2, da: 4, di: 4, hosts: 2}", []string{"random", "cflb"}, false},
	{"bcube", "BCube(5, 2), 125 servers of 3 ports", "{kind: bcube, n: 5, k: 2}",
		"{kind: bcube, n: 3, k: 1}", []string{"random", "cflb"}, false},
}

// cell9 is one bar of the figure.
type cell9 struct {
	Fabric, Scheme  string
	Subflows        int
	Goodput, Least  float64 // means over the seeds, as a part of a host's link
	Fairness        float64 // Jain's index of the hosts' goodput
	Drops, Timeouts float64 // of a run
}

// scenario9 is one run; VL2's links between switches are ten times as fast as those of hosts. As in
// csg-htsim, slow start ends at a full queue of 100 segments: without an end, each subflow doubles
// its window until queues overflow, and loses 50 times as many packets.
func (f fabric9) scenario9(subflows int, quick bool) []byte {
	kind, lasts, fabric, through := f.topology, "4s", "", ""
	if quick {
		kind, lasts = f.quick, "500ms"
	}
	if f.name == "vl2" {
		fabric = ", fabric: 1Gbps"
	}
	if f.name == "bcube" {
		through = ", parallel: true"
	}
	return fmt.Appendf(nil, `
topology: %s
links: {rate: 100Mbps, delay: 1us%s}
queue: {packets: 100, random: 3}
transport: {control: lia, subflows: %d, ssthresh: 100, freeAcks: %t}
paths: {scheme: random, capped: true%s}
traffic: {pattern: permutation}
duration: %s
`, kind, fabric, subflows, !f.acks, through, lasts)
}

func runFigure9(ctx context.Context, r *experiment.Recorder) error {
	seeds := 3
	if r.Quick() {
		seeds = 1
	}
	cells := make([]cell9, 0)
	var work []func() error
	for _, f := range fabrics9 {
		for _, scheme := range f.schemes {
			for subflows := 1; subflows <= subflows9; subflows++ {
				if scheme == "coloring" && subflows > 1 {
					continue
				}
				i := len(cells)
				cells = append(cells, cell9{})
				work = append(work, func() (err error) {
					name := fmt.Sprintf("%s-%s-%d", f.name, scheme, subflows)
					cells[i], err = experiment.Part(r, name, func() (cell9, error) {
						return f.cell(ctx, scheme, subflows, seeds, r.Quick())
					})
					return err
				})
			}
		}
	}
	if err := together(r, work); err != nil {
		return err
	}
	return reportFigure9(r, cells)
}

// filled is the part of a link that data fills, of full packets of 1500 bytes.
const filled = 1448.0 / 1500

// cell makes the runs of one bar.
func (f fabric9) cell(ctx context.Context, scheme string, subflows, seeds int,
	quick bool) (cell9, error) {
	c := cell9{Fabric: f.name, Scheme: scheme, Subflows: subflows}
	results, err := play(ctx, f.scenario9(subflows, quick), scheme, seeds)
	if err != nil {
		return c, err
	}
	for _, result := range results {
		part := 1 / float64(seeds)
		c.Goodput += result.Goodput / filled * part
		c.Least += result.LeastGoodput / filled * part
		c.Fairness += result.Fairness * part
		c.Drops += float64(result.Drops) * part
		c.Timeouts += float64(result.Timeouts) * part
	}
	return c, nil
}

// htsim is what csg-htsim, the simulator of the MPTCP paper, has for the fat tree, in percent:
// means of three seeds, with acknowledgements that take no link.
var htsim = map[string]map[int]float64{
	"random":   {1: 50.9, 2: 67.8, 4: 83.0, 8: 91.2},
	"cflb":     {1: 84.7, 2: 93.9, 4: 99.7},
	"coloring": {1: 100.0},
}

func reportFigure9(r *experiment.Recorder, cells []cell9) error {
	t := experiment.Table{Name: "fig9", Title: "Packets that arrive, as a part of the hosts' links",
		Columns: []string{"Fabric", "Paths", "Subflows", "mean, %", "worst host, %",
			"Jain's index", "csg-htsim, %", "drops", "timeouts"}}
	for _, c := range cells {
		published := "-"
		if p, ok := htsim[c.Scheme][c.Subflows]; ok && c.Fabric == "fat-tree" {
			published = fmt.Sprintf("%.1f", p)
		}
		t.Add(c.Fabric, c.Scheme, c.Subflows, fmt.Sprintf("%.1f", 100*c.Goodput),
			fmt.Sprintf("%.1f", 100*c.Least), fmt.Sprintf("%.3f", c.Fairness), published,
			fmt.Sprintf("%.0f", c.Drops), fmt.Sprintf("%.0f", c.Timeouts))
	}
	r.Table(t)
	compareFigure9(r, cells)
	for _, f := range fabrics9 {
		c := chart.Chart{Title: f.title, X: "subflows of each connection",
			Y: "packets, % of the hosts' links", FromX: 1, ToX: 8, ToY: 100}
		for _, scheme := range f.schemes {
			mean := chart.Series{Name: scheme, Marks: true}
			least := chart.Series{Name: scheme + ", worst host", Marks: true, Dashed: true}
			for _, x := range cells {
				if x.Fabric == f.name && x.Scheme == scheme {
					at := float64(x.Subflows)
					mean.Points = append(mean.Points, chart.Point{X: at, Y: 100 * x.Goodput})
					least.Points = append(least.Points, chart.Point{X: at, Y: 100 * x.Least})
				}
			}
			c.Series = append(c.Series, mean, least)
		}
		if err := r.Chart("fig9-"+f.name, c); err != nil {
			return err
		}
	}
	r.Note("A host's link is full at 100 %%. Handshakes and slow start take 1 or 2 %% of 4 s.")
	r.Note("csg-htsim was run with the same topology, rates, queues of 100 packets and LIA: " +
		"means of three seeds, whose permutations and paths differ from these.")
	return nil
}

func compareFigure9(r *experiment.Recorder, cells []cell9) {
	find := func(scheme string, subflows int) cell9 {
		i := slices.IndexFunc(cells, func(c cell9) bool {
			return c.Fabric == "fat-tree" && c.Scheme == scheme && c.Subflows == subflows
		})
		return cells[i]
	}
	best := find("coloring", 1)
	for _, row := range []struct {
		scheme   string
		subflows int
	}{{"random", 1}, {"random", 2}, {"random", 8}, {"cflb", 1}, {"cflb", 2}, {"cflb", 4}} {
		c := find(row.scheme, row.subflows)
		r.Compare(experiment.Comparison{
			What:   fmt.Sprintf("fat tree: %s, %d subflows", row.scheme, row.subflows),
			Source: fmt.Sprintf("%.1f %% (csg-htsim)", htsim[row.scheme][row.subflows]),
			Ours:   fmt.Sprintf("%.1f %%", 100*c.Goodput),
			Says: fmt.Sprintf("%+.1f points", 100*c.Goodput-
				htsim[row.scheme][row.subflows]),
		})
	}
	r.Compare(experiment.Comparison{
		What: "fat tree: two subflows on chosen paths or on random ones", Source: "chosen " +
			"paths are much closer to the optimum (figure 9)",
		Ours: fmt.Sprintf("%.1f %% or %.1f %%", 100*find("cflb", 2).Goodput,
			100*find("random", 2).Goodput),
		Says: "in the mean of all hosts",
	})
	r.Compare(experiment.Comparison{
		What: "fat tree: the worst host with edge coloring, one subflow", Source: "-",
		Ours: fmt.Sprintf("%.1f %%, the mean %.1f %%", 100*best.Least, 100*best.Goodput),
		Says: "with a single plain subflow",
	})
}
