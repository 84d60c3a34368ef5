package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"sextant/experiment/chart"
	"sextant/experiment/tablefile"
	simulator "sextant/sim/packet"
	"sextant/sim/packet/scenario"
	"sextant/te/topology"
)

// packetFiles writes what runs of sim packet showed into a folder: the runs of each way to choose
// paths are behind each other.
type packetFiles struct {
	dir      string
	format   tablefile.Format
	topology *topology.Graph
	scenario *scenario.Scenario
	schemes  []string
	items    []*scenario.Result
}

func (p packetFiles) write() error {
	plots := p.plots()
	if err := p.clear(plots); err != nil {
		return err
	}
	if err := p.writeTables(); err != nil {
		return err
	}
	for name, c := range plots {
		if !slices.ContainsFunc(c.Series, func(s chart.Series) bool { return len(s.Points) > 0 }) {
			continue
		}
		if err := os.WriteFile(filepath.Join(p.dir, name), c.SVG(), 0o644); err != nil {
			return fmt.Errorf("write a plot: %w", err)
		}
	}
	return nil
}

// plots are all plots, by file; those of what these runs do not have are without points.
func (p packetFiles) plots() map[string]chart.Chart {
	return map[string]chart.Chart{
		"times.svg": packetChart(p.topology.Name(), p.schemes, p.items), "sizes.svg": p.bySize(),
		"goodput.svg": p.goodputs(), "links.svg": p.utilizations(),
		"reroutes.svg": p.reroutes(), "reordering.svg": p.reordering(),
	}
}

// clear removes what earlier runs left in the folder: tables and plots that these runs do not have
// would be taken for theirs.
func (p packetFiles) clear(plots map[string]chart.Chart) error {
	names := slices.Collect(maps.Keys(plots))
	for _, table := range []string{"runs", "flows", "sizes", "links", "hosts"} {
		for _, format := range tablefile.Formats() {
			names = append(names, table+"."+format)
		}
	}
	for _, name := range names {
		err := os.Remove(filepath.Join(p.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what was in the folder of the results: %w", err)
		}
	}
	return nil
}

// of are the runs of a way to choose paths.
func (p packetFiles) of(scheme int) []*scenario.Result {
	n := len(p.items) / len(p.schemes)
	return p.items[scheme*n : (scheme+1)*n]
}

// bySize draws mean and 99th percentile of completion times over flow sizes.
func (p packetFiles) bySize() chart.Chart {
	c := chart.Chart{Title: "Completion times by size, " + p.topology.Name(),
		X: "flow size, at most (bytes)", Y: "completion time (ms)", LogX: true}
	for i, name := range p.schemes {
		var ended []simulator.Completed
		for _, r := range p.of(i) {
			ended = append(ended, r.Ended...)
		}
		mean := chart.Series{Name: name + ", mean", Marks: true}
		p99 := chart.Series{Name: name + ", 99th percentile", Marks: true, Dashed: true}
		for _, bin := range scenario.BySize(ended) {
			mean.Points = append(mean.Points, chart.Point{X: float64(bin.Bytes), Y: bin.MeanMs})
			p99.Points = append(p99.Points, chart.Point{X: float64(bin.Bytes), Y: bin.P99Ms})
		}
		c.Series = append(c.Series, mean, p99)
	}
	return c
}

// goodputs draws what hosts get, the slowest first.
func (p packetFiles) goodputs() chart.Chart {
	return p.sorted("Goodput of hosts", "host, by goodput", "part of its link",
		func(r *scenario.Result) []float64 { return r.Goodputs })
}

// utilizations draws what links carry, the least used first.
func (p packetFiles) utilizations() chart.Chart {
	return p.sorted("Utilization of links", "link and direction, by utilization",
		"part of its rate", func(r *scenario.Result) (used []float64) {
			for _, l := range r.Links {
				used = append(used, l.Utilization)
			}
			return used
		})
}

// reroutes draws how often flows that ended had changed their paths, the most constant first.
func (p packetFiles) reroutes() chart.Chart {
	return p.sorted("Reroutes of flows", "flow, by reroutes", "changes of its path",
		func(r *scenario.Result) (times []float64) {
			for _, f := range r.Ended {
				times = append(times, float64(f.Reroutes))
			}
			return times
		})
}

// reordering draws which part of the packets of each run were overtaken.
func (p packetFiles) reordering() chart.Chart {
	c := chart.Chart{Title: "Reordering, " + p.topology.Name(), X: "seed",
		Y: "packets that were overtaken (%)"}
	for i, name := range p.schemes {
		s := chart.Series{Name: name, Marks: true}
		for _, r := range p.of(i) {
			if r.Packets > 0 {
				s.Points = append(s.Points, chart.Point{X: float64(r.Seed),
					Y: 100 * float64(r.Reordered) / float64(r.Packets)})
			}
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// sorted draws values of the first seed's run in ascending order.
func (p packetFiles) sorted(title, x, y string, of func(*scenario.Result) []float64) chart.Chart {
	c := chart.Chart{Title: title + ", " + p.topology.Name(), X: x, Y: y}
	for i, name := range p.schemes {
		s := chart.Series{Name: name, Step: true}
		for at, v := range slices.Sorted(slices.Values(of(p.of(i)[0]))) {
			s.Points = append(s.Points, chart.Point{X: float64(at + 1), Y: v})
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// packetChart draws the completion times of each way to choose paths, those of all its seeds
// together.
func packetChart(topology string, schemes []string, items []*scenario.Result) chart.Chart {
	c := chart.Chart{Title: "Flow completion times, " + topology, X: "completion time (ms)",
		Y: "part of the flows", LogX: true}
	for i, name := range schemes {
		var times []float64
		for _, r := range items[i*len(items)/len(schemes) : (i+1)*len(items)/len(schemes)] {
			times = append(times, r.Times...)
		}
		c.Series = append(c.Series, chart.Series{Name: name, Points: chart.AtMost(times),
			Step: true})
	}
	return c
}
