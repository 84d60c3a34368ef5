package disjoint

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"sextant/experiment"
	"sextant/te/segment"
	"sextant/te/segment/proof"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
)

// source is what most of the experiments repeat.
const source = "F. Aubry, D. Lebrun, Y. Deville, O. Bonaventure, Traffic duplication through " +
	"segmentable disjoint paths"

// paperSIDs is K of the paper.
const paperSIDs = 3

// All lists the experiments.
func All() []experiment.Experiment {
	return []experiment.Experiment{table3, figure8, figure9, runningTime, exactness, overlap, pairs,
		zoo, dataCenters}
}

// ases are the topologies of the paper's Table III that are public, in its order.
func ases() []string {
	return []string{"paper-table3/AS1239", "paper-table3/AS1755", "paper-table3/AS3257",
		"paper-table3/AS3967"}
}

var table3 = experiment.Experiment{
	Name: "disjoint-table3", Title: "The topologies of the paper's evaluation",
	Source: source + ", Table III",
	Shows: "Counts nodes and directed edges of the Rocketfuel networks, restricted to routers " +
		"that carry transit traffic, and " +
		"compares them with the paper's table, so that all further numbers are on the same ground.",
	Paper: experiment.Disjoint, Lasts: "1 s",
	Run: runTable3,
}

func runTable3(_ context.Context, r *experiment.Recorder) error {
	published := [][2]int{{153, 1010}, {67, 248}, {103, 484}, {57, 208}}
	t := experiment.Table{Name: "table3", Title: "Topologies",
		Columns: []string{"Topology", "Nodes", "Edges", "Paper's nodes",
			"Paper's edges"}}
	same := true
	for i, name := range ases() {
		g, err := dataset.Open(name)
		if err != nil {
			return err
		}
		same = same && g.Nodes() == published[i][0] && g.Edges() == published[i][1]
		t.Rows = append(t.Rows, row(name, g.Nodes(), g.Edges(), published[i][0], published[i][1]))
	}
	r.Table(t)
	says := "identical"
	if !same {
		says = "they differ; see the table"
	}
	r.Compare(experiment.Comparison{What: "nodes and edges of the four Rocketfuel networks",
		Source: "Table III", Ours: "see the table",
		Says: says})
	r.Note("The paper's fifth network, a Tier-1 backbone with its real weights, is not public.")
	return nil
}

// row writes the cells of a table: shares as percentages with two digits, durations in microseconds
// as they are.
func row(cells ...any) []string {
	var texts []string
	for _, c := range cells {
		switch c := c.(type) {
		case float64:
			texts = append(texts, fmt.Sprintf("%.2f", c))
		default:
			texts = append(texts, fmt.Sprint(c))
		}
	}
	return texts
}

// percent writes a share.
func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// eachSource answers a query for all ordered pairs, source by source, in order.
func eachSource(
	ctx context.Context, r *experiment.Recorder, g *topology.Graph, q segment.Query,
	visit func(*segment.Engine, segment.Answer) error,
) error {
	engine, err := segment.New(g.All())
	if err != nil {
		return err
	}
	return engine.Sources(q, everyNode(g), r.Workers(),
		func(from topology.Node, answers []segment.Answer) error {
			r.Progress("%s, %s: source %d of %d", g.Name(), q.Model, from+1, g.Nodes())
			for _, a := range answers {
				if err := visit(engine, a); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
}

// proveSources proves something of each source with a prover of its own, and returns what it found
// in the order of the sources, so that sums do not depend on the number of workers; and how many
// seconds it took.
func proveSources[T any](
	ctx context.Context, r *experiment.Recorder, g *topology.Graph, q segment.Query,
	from func(context.Context, *segment.Engine, *proof.Prover, segment.Query,
		topology.Node) (T, error),
) (parts []T, seconds float64, err error) {
	engine, err := segment.New(g.All())
	if err != nil {
		return nil, 0, err
	}
	begun := time.Now()
	prover := proof.New(g.All(), q, proof.Effort{Seed: 1, Splits: splits})
	parts = make([]T, g.Nodes())
	var group errgroup.Group
	group.SetLimit(r.Workers())
	for s := range topology.Node(g.Nodes()) {
		group.Go(func() error {
			r.Progress("%s, %s: source %d of %d", g.Name(), q.Model, s+1, g.Nodes())
			var err error
			parts[s], err = from(ctx, engine, prover.Clone(), q, s)
			return err
		})
	}
	err = group.Wait()
	return parts, time.Since(begun).Seconds(), err
}

// splits is the budget of the search for a pair, small enough for the few pairs of large networks
// on which it is wasted.
const splits = 500

// atLeast turns numbers of cases by value, the last one standing for more, into shares of cases
// with at least that value.
func atLeast(tally []int) []float64 {
	total := 0
	for _, n := range tally {
		total += n
	}
	shares := make([]float64, len(tally))
	sum := 0
	for value := len(tally) - 1; value >= 0; value-- {
		sum += tally[value]
		shares[value] = float64(sum) / float64(max(total, 1))
	}
	return shares
}

func everyNode(g *topology.Graph) []topology.Node {
	nodes := make([]topology.Node, g.Nodes())
	for v := range nodes {
		nodes[v] = topology.Node(v)
	}
	return nodes
}

// nothing looks at no answer.
func nothing(ctx context.Context) func(topology.Node, []segment.Answer) error {
	return func(topology.Node, []segment.Answer) error { return ctx.Err() }
}
