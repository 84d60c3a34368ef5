package disjoint

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"time"

	"sextant/experiment"
	"sextant/te/segment"
	"sextant/te/topology/dataset"
)

var runningTime = experiment.Experiment{
	Name: "disjoint-time", Title: "How long all disjoint paths between two routers take",
	Source: source + ", section IV (unoptimised Java on a laptop of 2014, network of about 150 " +
		"routers and 700 edges)",
	Shows: "Finds all edge-disjoint 3-segmentable paths between all ordered pairs of routers, " +
		"rows of shortest paths included, on one " +
		"processor and on all, and divides by the number of pairs.",
	Paper: experiment.Disjoint, Lasts: "10 s",
	Run: runTime,
}

func runTime(ctx context.Context, r *experiment.Recorder) error {
	t := experiment.Table{
		Name: "time", Title: "Time, the best of several runs",
		Columns: []string{"Topology", "Model", "SIDs", "Pairs", "Processors", "all pairs, ms",
			"per pair, us", "memory in use, MB"},
	}
	paperMs := 315.0
	for _, name := range ases() {
		g, err := dataset.Open(name)
		if err != nil {
			return err
		}
		for _, q := range []segment.Query{
			{Model: segment.Paper, Disjoint: segment.EdgeDisjoint, MaxSIDs: paperSIDs,
				Greedy: true},
			{Model: segment.ForcedAdjacency, Disjoint: segment.EdgeDisjoint,
				MaxSIDs: segment.DefaultMaxSIDs},
		} {
			for _, workers := range distinct(1, r.Workers()) {
				r.Progress("%s, %s, %d processors", path.Base(name), q.Model, workers)
				best, memory, err := timeAllPairs(ctx, name, q, workers, repeats(r))
				if err != nil {
					return err
				}
				pairs := g.Nodes() * (g.Nodes() - 1)
				us := best.Seconds() * 1e6 / float64(pairs)
				t.Rows = append(t.Rows, row(path.Base(name), q.Model, q.MaxSIDs, pairs, workers,
					best.Seconds()*1000, us, memory))
				if path.Base(name) == "AS1239" && q.Model == segment.Paper && workers == 1 {
					r.Compare(experiment.Comparison{
						What:   "all disjoint paths from a source to a destination",
						Source: "less than 315 ms (mean)",
						Ours:   fmt.Sprintf("%.1f us on AS1239, one processor", us),
						Says: fmt.Sprintf("%.0f times faster, on another machine",
							paperMs*1000/us),
					})
				}
			}
		}
	}
	r.Table(t)
	r.Note("The paper's network is not public; AS1239 has 153 routers and 1010 edges, which is " +
		"more.")
	return nil
}

func repeats(r *experiment.Recorder) int {
	if r.Quick() {
		return 1
	}
	return 5
}

func distinct(a, b int) []int {
	if a == b {
		return []int{a}
	}
	return []int{a, b}
}

// timeAllPairs is the best of some runs from nothing, and the memory in use after the last, in MB.
func timeAllPairs(ctx context.Context, name string, q segment.Query, workers,
	times int) (time.Duration, float64, error) {
	best := time.Duration(1<<63 - 1)
	memory := 0.0
	for range times {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		g, err := dataset.Open(name)
		if err != nil {
			return 0, 0, err
		}
		begun := time.Now()
		engine, err := segment.New(g.All())
		if err != nil {
			return 0, 0, err
		}
		if err := engine.Sources(q, everyNode(g), workers, nothing(ctx)); err != nil {
			return 0, 0, err
		}
		best = min(best, time.Since(begun))
		runtime.GC()
		runtime.ReadMemStats(&after)
		memory = (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / 1e6
		runtime.KeepAlive(engine)
	}
	return best, memory, nil
}
