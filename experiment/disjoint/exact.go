package disjoint

import (
	"context"
	"fmt"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"sextant/experiment"
	"sextant/segment"
	"sextant/segment/proof"
	"sextant/topology"
	"sextant/topology/dataset"
)

var exactness = experiment.Experiment{
	Name: "disjoint-exact", Title: "How often the heuristic finds the greatest number of disjoint paths",
	Source: source + ", section IV, which solves an integer program for two networks",
	Shows: "For each ordered pair, compares the number of paths of the paper's method with the proven maximum: a cut, prices on links, " +
		"or a complete search shows that there are no more. No solver is used. The paper had maxima for AS1755 and AS3967 alone.",
	Lasts: "five minutes",
	Run:   runExact,
}

// splits is the budget of the search for a pair, small enough for the few pairs of large networks on which it is spent in vain.
const splits = 500

// exact sums up one network under one model.
type exact struct {
	Pairs, Proven, Heuristic, Paths, Bound int
	By                                     map[proof.Method]int
	Seconds                                float64
}

func runExact(ctx context.Context, r *experiment.Recorder) error {
	t := experiment.Table{
		Name: "exact", Title: "Numbers of edge-disjoint paths",
		Columns: []string{"Topology", "Model", "SIDs", "Pairs", "proven, %", "heuristic is optimal, %", "paths", "bound", "by cut",
			"by prices", "by search", "seconds"},
	}
	published := map[string]string{"AS1755": "96 %", "AS3967": "98 %"}
	names := ases()
	if r.Quick() {
		names = names[3:]
	}
	for _, name := range names {
		g, err := dataset.Open(name)
		if err != nil {
			return err
		}
		for _, q := range []segment.Query{
			{Model: segment.Paper, Disjoint: segment.EdgeDisjoint, MaxSIDs: paperSIDs},
			{Model: segment.Forced, Disjoint: segment.EdgeDisjoint, MaxSIDs: paperSIDs},
			{Model: segment.ForcedAdjacency, Disjoint: segment.EdgeDisjoint, MaxSIDs: segment.DefaultMaxSIDs},
		} {
			s, err := experiment.Part(r, path.Base(name)+"-"+string(q.Model), func() (exact, error) { return proveAll(ctx, r, g, q) })
			if err != nil {
				return err
			}
			pairs := float64(s.Pairs)
			t.Rows = append(t.Rows, row(path.Base(name), q.Model, q.MaxSIDs, s.Pairs, 100*float64(s.Proven)/pairs,
				100*float64(s.Heuristic)/pairs,
				s.Paths, s.Bound, s.By[proof.ByCut], s.By[proof.ByPrices], s.By[proof.BySearch], s.Seconds))
			if claim := published[path.Base(name)]; claim != "" && q.Model == segment.Paper {
				r.Compare(experiment.Comparison{
					What: "pairs of " + path.Base(name) + " for which the heuristic is optimal", Source: claim,
					Ours: percent(float64(s.Heuristic) / pairs),
					Says: fmt.Sprintf("the maximum is proven for %s of the pairs", percent(float64(s.Proven)/pairs)),
				})
			}
		}
	}
	r.Table(t)
	r.Note("The heuristic's share depends on how ties between equally quick paths are broken, which the paper leaves open. " +
		"Here the order is: delay, hops, SIDs, numbers.")
	return nil
}

// proveAll proves the number of paths of all ordered pairs. The work is shared out by source, so the sums do not depend on it.
func proveAll(ctx context.Context, r *experiment.Recorder, g *topology.Graph, q segment.Query) (exact, error) {
	engine, err := segment.New(g.All())
	if err != nil {
		return exact{}, err
	}
	begun := time.Now()
	prover := proof.New(g.All(), q, proof.Effort{Seed: 1, Splits: splits})
	parts := make([]exact, g.Nodes())
	var group errgroup.Group
	group.SetLimit(r.Workers())
	for s := range topology.Node(g.Nodes()) {
		group.Go(func() error {
			r.Progress("%s, %s: source %d of %d", g.Name(), q.Model, s+1, g.Nodes())
			var err error
			parts[s], err = proveFrom(ctx, engine, prover.Clone(), q, s)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return exact{}, err
	}
	sum := exact{By: map[proof.Method]int{}}
	for _, p := range parts {
		sum.Pairs, sum.Proven, sum.Heuristic = sum.Pairs+p.Pairs, sum.Proven+p.Proven, sum.Heuristic+p.Heuristic
		sum.Paths, sum.Bound = sum.Paths+p.Paths, sum.Bound+p.Bound
		for by, n := range p.By {
			sum.By[by] += n
		}
	}
	sum.Seconds = time.Since(begun).Seconds()
	return sum, nil
}

func proveFrom(ctx context.Context, e *segment.Engine, p *proof.Prover, q segment.Query, s topology.Node) (exact, error) {
	sum := exact{By: map[proof.Method]int{}}
	for t := range topology.Node(e.Graph().Nodes()) {
		if s == t {
			continue
		}
		q.From, q.To = s, t
		found, err := e.Disjoint(q)
		if err != nil {
			return sum, err
		}
		c := p.Count(s, t)
		sum.Pairs++
		sum.Paths += max(len(c.Paths), len(found.Paths))
		sum.Bound += c.Bound
		if c.Optimal() {
			sum.Proven++
			sum.By[c.By]++
		}
		if len(found.Paths) == c.Bound {
			sum.Heuristic++
		}
	}
	return sum, ctx.Err()
}
