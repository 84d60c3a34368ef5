package disjoint

import (
	"context"
	"fmt"
	"path"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/te/segment"
	"sextant/te/spf"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
)

var figure9 = experiment.Experiment{
	Name: "disjoint-fig9", Title: "How much slower the worst of P disjoint paths is than the IGP's",
	Source: source + ", figure 9 and section IV",
	Shows: "For pairs with P = 2 and P = 3 disjoint paths, takes the slowest of the first P and " +
		"subtracts the delay of the shortest " +
		"path of the IGP. TCP gains from duplication when the difference is small (section II).",
	Paper: experiment.Disjoint, Lasts: "10 s",
	Run: runFigure9,
}

// slowness holds delays of the worst of two and of three paths, above that of the IGP.
type slowness struct{ two, three []float64 }

func runFigure9(ctx context.Context, r *experiment.Recorder) error {
	t := experiment.Table{
		Name: "difference", Title: "Share of pairs whose worst of P paths is less than so much " +
			"slower than the IGP's path, in %",
		Columns: []string{"Topology", "P", "pairs", "5 ms", "10 ms", "20 ms", "50 ms"},
	}
	c := chart.Chart{Title: "Difference of delay to the IGP's path", X: "difference, ms",
		Y: "pairs, % at most", FromX: -10, ToX: 50,
		ToY: 100}
	least := [2]float64{1, 1}
	for _, name := range ases() {
		g, err := dataset.Open(name)
		if err != nil {
			return err
		}
		s, err := differences(ctx, r, g)
		if err != nil {
			return err
		}
		for i, values := range [][]float64{s.two, s.three} {
			cells := []any{path.Base(name), i + 2, len(values)}
			for _, limit := range []float64{5, 10, 20, 50} {
				cells = append(cells, 100*within(values, limit))
			}
			t.Rows = append(t.Rows, row(cells...))
			least[i] = min(least[i], within(values, 10))
			c.Series = append(c.Series, chart.Series{
				Name: fmt.Sprintf("%s, P = %d", path.Base(name), i+2), Points: chart.AtMost(values),
				Step: true, Dashed: i == 1,
			})
		}
	}
	r.Table(t)
	r.Compare(experiment.Comparison{
		What: "pairs with 2 paths and a difference below 10 ms", Source: "more than 90 %",
		Ours: "at least " + percent(least[0]),
		Says: sayAtLeast(least[0], 0.9),
	})
	r.Compare(experiment.Comparison{
		What: "pairs with 3 paths and a difference below 10 ms", Source: "75 %",
		Ours: "at least " + percent(least[1]),
		Says: sayAtLeast(least[1], 0.75),
	})
	r.Note("The difference is negative where a path found is quicker than the IGP's, whose " +
		"weights are not delays. Delays are those " +
		"that Rocketfuel inferred, in whole milliseconds. Of equal-cost paths of the IGP, the " +
		"quickest counts.")
	return r.Chart("fig9", c)
}

func differences(ctx context.Context, r *experiment.Recorder, g *topology.Graph) (slowness, error) {
	var s slowness
	table := igp(g)
	q := segment.Query{Model: segment.Paper, Disjoint: segment.EdgeDisjoint, MaxSIDs: paperSIDs,
		Paths: 3, Greedy: true}
	err := eachSource(ctx, r, g, q, func(_ *segment.Engine, a segment.Answer) error {
		base := int64(table.From(a.Query.From).Layer(spf.Least).Latency[a.Query.To])
		if len(a.Paths) >= 2 {
			s.two = append(s.two, float64(worst(a.Paths[:2])-base))
		}
		if len(a.Paths) >= 3 {
			s.three = append(s.three, float64(worst(a.Paths[:3])-base))
		}
		return nil
	})
	return s, err
}

// igp is the shortest paths by weight, with delays.
func igp(g *topology.Graph) *spf.Table {
	return spf.New(g.All(), func(e topology.Edge) uint64 { return uint64(g.Weight(e)) },
		func(e topology.Edge) uint64 { return uint64(g.Delay(e)) })
}

func worst(paths []segment.Path) int64 {
	most := int64(0)
	for _, p := range paths {
		most = max(most, p.Latency)
	}
	return most
}

// within is the share of values that are less than a limit.
func within(values []float64, limit float64) float64 {
	n := 0
	for _, v := range values {
		if v < limit {
			n++
		}
	}
	return float64(n) / float64(max(len(values), 1))
}
