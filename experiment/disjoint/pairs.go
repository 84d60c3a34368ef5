package disjoint

import (
	"context"
	"path"

	"sextant/experiment"
	"sextant/te/segment"
	"sextant/te/segment/proof"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
)

var pairs = experiment.Experiment{
	Name: "disjoint-pairs", Title: "How near the 1+1 pair comes to the least total delay",
	Source: source + ", section III.D, which notes that the best pair is hard to find and takes " +
		"the heuristic's",
	Shows: "For each ordered pair of routers with two disjoint paths, compares the total delay " +
		"of the first two paths of the heuristic " +
		"with that of the best two, which is proven: by Suurballe's pair, which is the best " +
		"whatever segments can express, or by search.",
	Paper: experiment.Disjoint, Lasts: "1 min",
	Run: runPairs,
}

// best sums up one network under one model.
type best struct {
	Pairs, Proven, Suurballe, Heuristic int
	Found, Least                        int64 // sums of delays
	Seconds                             float64
}

func runPairs(ctx context.Context, r *experiment.Recorder) error {
	t := experiment.Table{
		Name: "pairs", Title: "Link-disjoint pairs",
		Columns: []string{
			"Topology", "Model", "SIDs", "Pairs with two", "proven, %", "by Suurballe's pair, %",
			"heuristic is optimal, %",
			"heuristic's delay above the least, %",
		},
	}
	names := ases()
	if r.Quick() {
		names = names[3:]
	}
	lowest := 1.0
	for _, name := range names {
		g, err := dataset.Open(name)
		if err != nil {
			return err
		}
		for _, q := range []segment.Query{
			{Model: segment.Paper, Disjoint: segment.LinkDisjoint, MaxSIDs: paperSIDs, Paths: 2},
			{Model: segment.ForcedAdjacency, Disjoint: segment.LinkDisjoint,
				MaxSIDs: segment.DefaultMaxSIDs, Paths: 2},
		} {
			s, err := experiment.Part(r, path.Base(name)+"-"+string(q.Model),
				func() (best, error) { return pairAll(ctx, r, g, q) })
			if err != nil {
				return err
			}
			pairs := float64(max(s.Pairs, 1))
			if q.Model == segment.ForcedAdjacency {
				lowest = min(lowest, float64(s.Proven)/pairs)
			}
			t.Rows = append(t.Rows, row(path.Base(name), q.Model, q.MaxSIDs, s.Pairs,
				100*float64(s.Proven)/pairs,
				100*float64(s.Suurballe)/pairs,
				100*float64(s.Heuristic)/pairs, 100*(float64(s.Found)/float64(max(s.Least, 1))-1)))
		}
	}
	r.Table(t)
	r.Compare(experiment.Comparison{
		What:   "pairs whose least total delay is proven, forced lists with End.X, 4 SIDs",
		Source: "-", Ours: "at least " +
			percent(lowest), Says: "no solver is needed",
	})
	r.Note("Delays are compared over pairs for which the heuristic finds two paths.")
	return nil
}

func pairAll(ctx context.Context, r *experiment.Recorder, g *topology.Graph,
	q segment.Query) (best, error) {
	parts, seconds, err := proveSources(ctx, r, g, q, pairFrom)
	if err != nil {
		return best{}, err
	}
	sum := best{Seconds: seconds}
	for _, p := range parts {
		sum.Pairs, sum.Proven, sum.Suurballe = sum.Pairs+p.Pairs, sum.Proven+p.Proven,
			sum.Suurballe+p.Suurballe
		sum.Heuristic, sum.Found, sum.Least = sum.Heuristic+p.Heuristic, sum.Found+p.Found,
			sum.Least+p.Least
	}
	return sum, nil
}

func pairFrom(ctx context.Context, e *segment.Engine, p *proof.Prover, q segment.Query,
	s topology.Node) (best, error) {
	var sum best
	for t := range topology.Node(e.Graph().Nodes()) {
		if s == t || ctx.Err() != nil {
			continue
		}
		q.From, q.To, q.Greedy = s, t, true
		found, err := e.Disjoint(q)
		if err != nil {
			return sum, err
		}
		pair := p.Pair(s, t, proof.LeastTotal)
		if len(pair.Paths) < 2 {
			continue
		}
		sum.Pairs++
		if pair.Optimal() {
			sum.Proven++
			if pair.By == proof.BySuurballe {
				sum.Suurballe++
			}
		}
		if len(found.Paths) == 2 {
			delay := found.Paths[0].Latency + found.Paths[1].Latency
			sum.Found, sum.Least = sum.Found+delay, sum.Least+pair.Value
			if delay == pair.Bound {
				sum.Heuristic++
			}
		}
	}
	return sum, ctx.Err()
}
