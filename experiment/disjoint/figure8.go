package disjoint

import (
	"context"
	"fmt"
	"path"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/te/maxflow"
	"sextant/te/segment"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
)

var figure8 = experiment.Experiment{
	Name: "disjoint-fig8", Title: "How many disjoint paths pairs of routers have",
	Source: source + ", figure 8 and section IV",
	Shows: "For each ordered pair of routers, finds disjoint 3-segmentable paths one after the " +
		"other, as the paper does, and counts " +
		"the pairs with at least P of them. Beside it: lists that really force packets, four " +
		"SIDs with End.X among them (model " +
		"adjacency), and the maximum flow, which no segment list can exceed.",
	Paper: experiment.Disjoint, Lasts: "10 s",
	Run: runFigure8,
}

// mostPaths is the last P of figure 8.
const mostPaths = 6

// pathCounts are numbers of ordered pairs by number of disjoint paths, the last one for mostPaths
// and more.
type pathCounts [mostPaths + 1]int

func (c *pathCounts) add(paths int) { c[min(paths, mostPaths)]++ }

// method is a way to count disjoint paths.
type method struct {
	name  string
	query segment.Query
	bound bool // the maximum flow instead
}

var methods = []method{
	{name: "paper, K = 3", query: segment.Query{Model: segment.Paper,
		Disjoint: segment.EdgeDisjoint, MaxSIDs: paperSIDs, Greedy: true}},
	{name: "forced with End.X, 4 SIDs", query: segment.Query{Model: segment.ForcedAdjacency,
		Disjoint: segment.EdgeDisjoint, MaxSIDs: 4}},
	{name: "maximum flow", bound: true},
}

func runFigure8(ctx context.Context, r *experiment.Recorder) error {
	t := experiment.Table{Name: "paths",
		Title:   "Share of ordered pairs with at least P edge-disjoint paths, in %",
		Columns: []string{"Topology", "Method"}}
	for p := 1; p <= mostPaths; p++ {
		t.Columns = append(t.Columns, fmt.Sprintf("P = %d", p))
	}
	c := chart.Chart{Title: "Pairs with at least P disjoint paths (paper's method)", X: "P",
		Y: "pairs, %", FromX: 1, ToX: mostPaths,
		ToY: 100}
	least := map[int]float64{2: 1, 3: 1, 4: 1}
	flowLeast := 1.0
	for _, name := range ases() {
		g, err := dataset.Open(name)
		if err != nil {
			return err
		}
		for i, m := range methods {
			counts, err := countPaths(ctx, r, g, m)
			if err != nil {
				return err
			}
			shares := atLeast(counts[:])
			cells := []any{path.Base(name), m.name}
			line := chart.Series{Name: path.Base(name), Marks: true}
			for p := 1; p <= mostPaths; p++ {
				cells = append(cells, 100*shares[p])
				line.Points = append(line.Points, chart.Point{X: float64(p), Y: 100 * shares[p]})
			}
			t.Rows = append(t.Rows, row(cells...))
			switch {
			case i == 0:
				c.Series = append(c.Series, line)
				for p := range least {
					least[p] = min(least[p], shares[p])
				}
			case m.bound:
				flowLeast = min(flowLeast, shares[2])
			}
		}
	}
	c.Series = append(c.Series, chart.Series{
		Name: "the paper's text, all networks", Dashed: true, Marks: true,
		Points: []chart.Point{{X: 2, Y: 90}, {X: 3, Y: 40}, {X: 4, Y: 20}},
	})
	r.Table(t)
	says := "agrees"
	if least[2] <= 0.9 {
		says = fmt.Sprintf("can't be: on the network with the least, the maximum flow itself "+
			"gives %s", percent(flowLeast))
	}
	r.Compare(experiment.Comparison{What: "pairs with at least 2 paths, in each topology",
		Source: "more than 90 %", Ours: "at least " +
			percent(least[2]), Says: says})
	r.Compare(experiment.Comparison{What: "pairs with at least 3 paths", Source: "40 %",
		Ours: "at least " + percent(least[3]),
		Says: sayAtLeast(least[3], 0.4)})
	r.Compare(experiment.Comparison{What: "pairs with at least 4 paths", Source: "about 20 %",
		Ours: "at least " + percent(least[4]),
		Says: sayAtLeast(least[4], 0.2)})
	r.Note("The paper's figure has a fifth network that is not public; its text gives the " +
		"numbers above for all of them.")
	return r.Chart("fig8", c)
}

func sayAtLeast(ours, source float64) string {
	if ours >= source {
		return "agrees"
	}
	return "lower"
}

// countPaths counts the disjoint paths of all ordered pairs.
func countPaths(ctx context.Context, r *experiment.Recorder, g *topology.Graph,
	m method) (pathCounts, error) {
	if m.bound {
		return countFlows(ctx, r, g)
	}
	var counts pathCounts
	err := eachSource(ctx, r, g, m.query, func(_ *segment.Engine, a segment.Answer) error {
		counts.add(len(a.Paths))
		return nil
	})
	return counts, err
}

func countFlows(ctx context.Context, r *experiment.Recorder,
	g *topology.Graph) (pathCounts, error) {
	var counts pathCounts
	network := maxflow.NewNetwork(g.All(), maxflow.Edges, nil)
	for s := range topology.Node(g.Nodes()) {
		r.Progress("%s, maximum flow: source %d of %d", g.Name(), s+1, g.Nodes())
		for t := range topology.Node(g.Nodes()) {
			if s != t {
				counts.add(network.Max(s, t, mostPaths))
			}
		}
		if ctx.Err() != nil {
			return counts, ctx.Err()
		}
	}
	return counts, nil
}
