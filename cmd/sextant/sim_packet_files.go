package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"sextant/experiment/chart"
	simulator "sextant/sim/packet"
	"sextant/sim/packet/scenario"
	"sextant/te/topology"
)

// packetFiles writes what runs of sim packet showed into a folder: the runs of each way to choose
// paths are behind each other.
type packetFiles struct {
	dir      string
	topology *topology.Graph
	scenario *scenario.Scenario
	schemes  []string
	items    []*scenario.Result
}

func (p packetFiles) write() error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return fmt.Errorf("make the folder of the results: %w", err)
	}
	if err := writePacketCSV(filepath.Join(p.dir, "runs.csv"), p.items); err != nil {
		return err
	}
	for name, rows := range map[string][][]string{
		"flows.csv": p.flows(), "links.csv": p.links(), "hosts.csv": p.hosts(),
	} {
		if len(rows) > 1 {
			if err := writeCSV(filepath.Join(p.dir, name), rows); err != nil {
				return err
			}
		}
	}
	for name, c := range map[string]chart.Chart{
		"times.svg": packetChart(p.topology.Name(), p.schemes, p.items), "sizes.svg": p.bySize(),
		"goodput.svg": p.goodputs(), "links.svg": p.utilizations(),
	} {
		if !slices.ContainsFunc(c.Series, func(s chart.Series) bool { return len(s.Points) > 0 }) {
			continue // of what these runs do not have
		}
		if err := os.WriteFile(filepath.Join(p.dir, name), c.SVG(), 0o644); err != nil {
			return fmt.Errorf("write a plot: %w", err)
		}
	}
	return nil
}

// of are the runs of a way to choose paths.
func (p packetFiles) of(scheme int) []*scenario.Result {
	n := len(p.items) / len(p.schemes)
	return p.items[scheme*n : (scheme+1)*n]
}

// flows is a line for each flow that ended; a trace can be read from it again.
func (p packetFiles) flows() [][]string {
	n, err := p.scenario.Network(p.topology)
	if err != nil {
		return nil // the runs have built it: this does not happen
	}
	name := func(host int) string { return p.topology.Node(topology.Node(n.Hosts[host])).Name }
	rows := [][]string{append(append([]string{"scheme", "seed"}, scenario.TraceColumns()...),
		"finish_s", "retransmissions", "timeouts", "reroutes")}
	for _, r := range p.items {
		for _, f := range r.Ended {
			rows = append(rows, []string{r.Scheme, fmt.Sprint(r.Seed), seconds(f.Flow.Start),
				name(f.Flow.Src), name(f.Flow.Dst), fmt.Sprint(f.Flow.Bytes), seconds(f.Finish),
				fmt.Sprint(f.Retransmissions), fmt.Sprint(f.Timeouts), fmt.Sprint(f.Reroutes)})
		}
	}
	return rows
}

// seconds writes a time to the picosecond.
func seconds(t simulator.Time) string {
	return fmt.Sprintf("%d.%012d", t/simulator.Second, t%simulator.Second)
}

func (p packetFiles) links() [][]string {
	rows := [][]string{{"scheme", "seed", "from", "to", "utilization", "bytes", "drops", "marks"}}
	for _, r := range p.items {
		for i, l := range r.Links {
			e := topology.Edge(i)
			rows = append(rows, []string{r.Scheme, fmt.Sprint(r.Seed),
				p.topology.Node(p.topology.From(e)).Name, p.topology.Node(p.topology.To(e)).Name,
				decimal(l.Utilization), fmt.Sprint(l.Bytes), fmt.Sprint(l.Drops),
				fmt.Sprint(l.Marks)})
		}
	}
	return rows
}

func (p packetFiles) hosts() [][]string {
	rows := [][]string{{"scheme", "seed", "host", "goodput"}}
	for _, r := range p.items {
		for host, part := range r.Goodputs {
			rows = append(rows, []string{r.Scheme, fmt.Sprint(r.Seed), fmt.Sprint(host),
				decimal(part)})
		}
	}
	return rows
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

func decimal(x float64) string { return strconv.FormatFloat(x, 'g', 9, 64) }

func writePacketCSV(file string, items []*scenario.Result) error {
	rows := [][]string{{"scheme", "seed", "flows", "unfinished", "goodput", "least_goodput",
		"fairness",
		"mean_ms", "p50_ms", "p99_ms",
		"short_ms", "short_p99_ms", "long_ms", "drops", "lost", "retransmissions", "timeouts",
		"reroutes", "reordered", "peak_load", "packets",
		"hops"}}
	for _, i := range items {
		rows = append(rows, []string{i.Scheme, fmt.Sprint(i.Seed), fmt.Sprint(i.Flows),
			fmt.Sprint(i.Unfinished),
			decimal(i.Goodput), decimal(i.LeastGoodput), decimal(i.Fairness),
			decimal(i.MeanMs), decimal(i.P50Ms),
			decimal(i.P99Ms), decimal(i.ShortMs),
			decimal(i.ShortP99Ms), decimal(i.LongMs), fmt.Sprint(i.Drops), fmt.Sprint(i.Lost),
			fmt.Sprint(i.Retransmissions),
			fmt.Sprint(i.Timeouts), fmt.Sprint(i.Reroutes),
			fmt.Sprint(i.Reordered), decimal(i.PeakLoad),
			fmt.Sprint(i.Packets), fmt.Sprint(i.Hops)})
	}
	return writeCSV(file, rows)
}

func writeCSV(file string, rows [][]string) error {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	w := csv.NewWriter(f)
	err = w.WriteAll(rows)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write the results to %s: %w", file, err)
	}
	return nil
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
