package disjoint

import (
	"context"
	"path"

	"sextant/experiment"
	"sextant/te/segment"
	"sextant/te/topology/dataset"
)

var overlap = experiment.Experiment{
	Name:   "disjoint-overlap",
	Title:  "Whether disjoint paths stay disjoint when routers use equal-cost paths",
	Source: source + ", section III, which takes a segment for one path of a shortest-path DAG",
	Shows: "Replays the segment lists of each model against the shortest paths, over all " +
		"equal-cost branches, as routers forward. " +
		"A pair counts as overlapping when packets of its first two paths can meet on an edge. " +
		"In the paper's model that is " +
		"common; in the others it must never happen.",
	Paper: experiment.Disjoint, Lasts: "10 s",
	Run: runOverlap,
}

// replays sums up what lists do.
type replays struct {
	Pairs, Two, Overlap, Lists, Forced, Astray int
}

func runOverlap(ctx context.Context, r *experiment.Recorder) error {
	t := experiment.Table{
		Name: "overlap", Title: "Lists of at most 3 SIDs (4 for model adjacency), replayed",
		Columns: []string{"Topology", "Model", "Pairs", "with two paths, %",
			"of these overlapping, %", "lists", "forced, %",
			"not on their path alone, %"},
	}
	var lowest, highest, others = 1.0, 0.0, 0
	for _, name := range ases() {
		g, err := dataset.Open(name)
		if err != nil {
			return err
		}
		for _, model := range segment.Models() {
			q := segment.Query{Model: model, Disjoint: segment.EdgeDisjoint, MaxSIDs: paperSIDs,
				Greedy: model == segment.Paper}
			if model == segment.ForcedAdjacency {
				q.MaxSIDs = segment.DefaultMaxSIDs
			}
			var s replays
			if err := eachSource(ctx, r, g, q, s.add); err != nil {
				return err
			}
			overlapping := float64(s.Overlap) / float64(max(s.Two, 1))
			if model == segment.Paper {
				lowest, highest = min(lowest, overlapping), max(highest, overlapping)
			} else {
				others += s.Overlap + s.Astray
			}
			t.Rows = append(t.Rows, row(path.Base(name), model, s.Pairs,
				100*float64(s.Two)/float64(s.Pairs), 100*overlapping, s.Lists,
				100*float64(s.Forced)/float64(max(s.Lists, 1)),
				100*float64(s.Astray)/float64(max(s.Lists, 1))))
		}
	}
	r.Table(t)
	r.Compare(experiment.Comparison{
		What: "pairs whose first two disjoint paths share edges once equal-cost paths are used, " +
			"paper's model", Source: "not considered",
		Ours: percent(lowest) + " to " + percent(highest),
		Says: "duplicates meet on one link, and one failure takes both",
	})
	r.Compare(experiment.Comparison{
		What: "the same, and lists that leave their path, in the other three models", Source: "-",
		Ours: row(others)[0],
		Says: "none may: each list was replayed",
	})
	return nil
}

func (s *replays) add(e *segment.Engine, a segment.Answer) error {
	s.Pairs++
	for _, p := range a.Paths {
		v, err := e.Verify(a.Query.From, p)
		if err != nil {
			return err
		}
		s.Lists++
		if v.Forced {
			s.Forced++
		}
		if len(v.Left)+len(v.Missing) > 0 {
			s.Astray++
		}
	}
	if len(a.Paths) < 2 {
		return nil
	}
	s.Two++
	a.Paths = a.Paths[:2]
	overlaps, err := e.Overlaps(a)
	if len(overlaps) > 0 {
		s.Overlap++
	}
	return err
}
