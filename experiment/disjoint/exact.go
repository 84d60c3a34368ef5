package disjoint

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"

	"sextant/experiment"
	"sextant/te/segment"
	"sextant/te/segment/proof"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
)

var exactness = experiment.Experiment{
	Name: "disjoint-exact", Title: "How often the heuristic finds the greatest number of " +
		"disjoint paths",
	Source: source + ", section IV, which solves an integer program for two networks",
	Shows: "For each ordered pair, compares the number of paths of the paper's method with the " +
		"proven maximum: a cut, prices on links, " +
		"or a complete search shows that there are no more. No solver is used. The paper had " +
		"maxima for AS1755 and AS3967 alone.",
	Paper: experiment.Disjoint, Lasts: "10 min",
	Run: runExact,
}

// exact sums up one network under one model.
type exact struct {
	Pairs, Proven, Heuristic, Paths, Bound int
	By                                     map[proof.Method]int
	// pairs without a proof by "paths of bound"
	Open    map[string]int
	Seconds float64
}

func newExact() exact { return exact{By: map[proof.Method]int{}, Open: map[string]int{}} }

func runExact(ctx context.Context, r *experiment.Recorder) error {
	t := experiment.Table{
		Name: "exact", Title: "Numbers of edge-disjoint paths",
		Columns: []string{"Topology", "Model", "SIDs", "Pairs", "proven, %",
			"heuristic is optimal, %", "paths", "bound", "by cut",
			"by prices", "by search", "seconds"},
	}
	open := experiment.Table{
		Name: "open", Title: "Pairs without a proof", Columns: []string{"Topology", "Model", "SIDs",
			"found of the bound", "pairs"},
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
			{Model: segment.ForcedAdjacency, Disjoint: segment.EdgeDisjoint,
				MaxSIDs: segment.DefaultMaxSIDs},
			{Model: segment.ECMP, Disjoint: segment.EdgeDisjoint, MaxSIDs: segment.DefaultMaxSIDs},
		} {
			s, err := experiment.Part(r, path.Base(name)+"-"+string(q.Model),
				func() (exact, error) { return proveAll(ctx, r, g, q) })
			if err != nil {
				return err
			}
			pairs := float64(s.Pairs)
			t.Rows = append(t.Rows, row(path.Base(name), q.Model, q.MaxSIDs, s.Pairs,
				100*float64(s.Proven)/pairs,
				100*float64(s.Heuristic)/pairs,
				s.Paths, s.Bound, s.By[proof.ByCut], s.By[proof.ByPrices], s.By[proof.BySearch],
				s.Seconds))
			for _, numbers := range slices.Sorted(maps.Keys(s.Open)) {
				open.Rows = append(open.Rows, row(path.Base(name), q.Model, q.MaxSIDs, numbers,
					s.Open[numbers]))
			}
			if claim := published[path.Base(name)]; claim != "" && q.Model == segment.Paper {
				r.Compare(experiment.Comparison{
					What:   "pairs of " + path.Base(name) + " for which the heuristic is optimal",
					Source: claim,
					Ours:   percent(float64(s.Heuristic) / pairs),
					Says: fmt.Sprintf("the maximum is proven for %s of the pairs",
						percent(float64(s.Proven)/pairs)),
				})
			}
		}
	}
	r.Table(t)
	r.Table(open)
	r.Note("The heuristic's share depends on how ties between equally quick paths are broken, " +
		"which the paper leaves open. " +
		"Here the order is: delay, hops, SIDs, numbers.")
	return nil
}

// proveAll proves the number of paths of all ordered pairs.
func proveAll(ctx context.Context, r *experiment.Recorder, g *topology.Graph,
	q segment.Query) (exact, error) {
	parts, seconds, err := proveSources(ctx, r, g, q, proveFrom)
	if err != nil {
		return exact{}, err
	}
	sum := newExact()
	sum.Seconds = seconds
	for _, p := range parts {
		sum.Pairs, sum.Proven, sum.Heuristic = sum.Pairs+p.Pairs, sum.Proven+p.Proven,
			sum.Heuristic+p.Heuristic
		sum.Paths, sum.Bound = sum.Paths+p.Paths, sum.Bound+p.Bound
		for by, n := range p.By {
			sum.By[by] += n
		}
		for numbers, n := range p.Open {
			sum.Open[numbers] += n
		}
	}
	return sum, nil
}

func proveFrom(ctx context.Context, e *segment.Engine, p *proof.Prover, q segment.Query,
	s topology.Node) (exact, error) {
	sum := newExact()
	for t := range topology.Node(e.Graph().Nodes()) {
		if s == t {
			continue
		}
		q.From, q.To, q.Greedy = s, t, true
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
		} else {
			sum.Open[fmt.Sprintf("%d of %d", max(len(c.Paths), len(found.Paths)), c.Bound)]++
		}
		if len(found.Paths) == c.Bound {
			sum.Heuristic++
		}
	}
	return sum, ctx.Err()
}
