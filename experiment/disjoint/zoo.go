package disjoint

import (
	"context"
	"path"

	"sextant/experiment"
	"sextant/te/maxflow"
	"sextant/te/segment"
	"sextant/te/topology/dataset"
)

var zoo = experiment.Experiment{
	Name: "disjoint-zoo", Title: "Disjoint paths on all of the Topology Zoo and on the networks " +
		"of CAIDA",
	Source: "not in the paper, which has five networks; topologies: Internet Topology Zoo " +
		"(twice: weights by capacity, and all 1) " +
		"and CAIDA ITDK",
	Shows: "Counts ordered pairs with two edge-disjoint paths: by the paper's method, by lists " +
		"that force packets, and by maximum flow. " +
		"For the paper's method, also those whose two paths meet once equal-cost paths are used.",
	Paper: experiment.Disjoint, Lasts: "2 min",
	Run: runZoo,
}

// sums are those of one set of topologies under one model.
type sums struct {
	Networks, Pairs, Two, Overlap, Flow int
}

func runZoo(ctx context.Context, r *experiment.Recorder) error {
	t := experiment.Table{
		Name: "sets", Title: "Ordered pairs with two edge-disjoint paths",
		Columns: []string{"Set", "Networks", "Pairs", "Model", "SIDs", "with two, %",
			"of these overlapping, %", "maximum flow, %"},
	}
	for _, set := range []string{"zoo", "zoo-unary", "caida-2024-08"} {
		for _, q := range []segment.Query{
			{Model: segment.Paper, Disjoint: segment.EdgeDisjoint, MaxSIDs: paperSIDs, Paths: 2,
				Greedy: true},
			{Model: segment.ForcedAdjacency, Disjoint: segment.EdgeDisjoint,
				MaxSIDs: segment.DefaultMaxSIDs, Paths: 2},
		} {
			s, err := experiment.Part(r, set+"-"+string(q.Model),
				func() (sums, error) { return sumUp(ctx, r, set, q) })
			if err != nil {
				return err
			}
			pairs := float64(max(s.Pairs, 1))
			t.Rows = append(t.Rows, row(set, s.Networks, s.Pairs, q.Model, q.MaxSIDs,
				100*float64(s.Two)/pairs,
				100*float64(s.Overlap)/float64(max(s.Two, 1)), 100*float64(s.Flow)/pairs))
		}
	}
	r.Table(t)
	r.Note("Pairs of all networks of a set are added up, so large networks count more. A quick " +
		"run takes networks of up to 40 nodes.")
	return nil
}

func sumUp(ctx context.Context, r *experiment.Recorder, set string, q segment.Query) (sums, error) {
	var s sums
	for _, name := range dataset.Names() {
		if path.Dir(name) != set {
			continue
		}
		g, err := dataset.Open(name)
		if err != nil {
			return s, err
		}
		if r.Quick() && g.Nodes() > 40 {
			continue
		}
		s.Networks++
		flow := maxflow.NewNetwork(g.All(), maxflow.Edges, nil)
		if err := eachSource(ctx, r, g, q, func(e *segment.Engine,
			a segment.Answer) error {
			return s.add(e, a, flow)
		}); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *sums) add(e *segment.Engine, a segment.Answer, flow *maxflow.Network) error {
	s.Pairs++
	if len(a.Paths) < 2 {
		s.Flow += flow.Max(a.Query.From, a.Query.To, 2) / 2
		return nil
	}
	s.Two++
	s.Flow++
	if a.Query.Model != segment.Paper {
		return nil
	}
	overlaps, err := e.Overlaps(a)
	if len(overlaps) > 0 {
		s.Overlap++
	}
	return err
}
