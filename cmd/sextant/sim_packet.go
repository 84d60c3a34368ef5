package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"sextant/experiment/tablefile"
	"sextant/sim/packet/scenario"
	"sextant/te/topology"
)

// packetOptions are the flags of sim packet.
type packetOptions struct {
	compare      []string
	seeds        int
	firstSeed    uint64
	workers      int
	csv, parquet string // files
	plot         string
	out          string // folder
	format       string // of tables there
}

func (a *app) simPacket() *cobra.Command {
	var o packetOptions
	cmd := &cobra.Command{
		Use: "packet FILE", Short: "Simulate TCP and MPTCP packet by packet over a fabric",
		Long: `Simulate TCP and MPTCP packet by packet over a fabric.

FILE is a scenario in YAML: topology, links, queues, transport, path choice, traffic, failures.
docs/howto/simulate.md lists its keys. Runs of other seeds and of other ways to choose paths are
independent and go on at once; each is determined by the file and its seed.`,
		Example: `  sextant sim packet examples/sim/web-search.yaml --compare ecmp,letflow,drill
  sextant sim packet examples/sim/web-search.yaml --compare ecmp,conga --out results
  sextant sim packet examples/sim/permutation.yaml --seeds 5 --csv runs.csv
  sextant sim packet examples/sim/web-search.yaml --out results --format parquet`,
		Annotations: seeAlso("sextant experiment", "sextant topology generate"),
		Args:        takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runPackets(cmd.Context(), o, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.compare, "compare", nil,
		"ways to choose paths, instead of the file's; all see the same traffic")
	flags.IntVar(&o.seeds, "seeds", 0, "runs of each, with as many seeds; 0: as the file says")
	flags.Uint64Var(&o.firstSeed, "seed", 1, "the first seed")
	flags.IntVar(&o.workers, "workers", runtime.NumCPU(), "runs at once")
	flags.StringVar(&o.csv, "csv", "", "write all runs to this file in CSV")
	flags.StringVar(&o.parquet, "parquet", "", "write all runs to this file in Apache Parquet")
	flags.StringVar(&o.plot, "plot", "",
		"draw the distribution of completion times into this SVG file")
	flags.StringVar(&o.out, "out", "",
		"write tables of runs, flows, sizes, links and hosts, and plots into this folder")
	flags.StringVar(&o.format, "format", string(tablefile.CSV),
		"of the tables that --out writes: "+strings.Join(tablefile.Formats(), " or "))
	complete(cmd, "format", tablefile.Formats()...)
	complete(cmd, "compare", scenario.Schemes()...)
	return cmd
}

// packetReport is what sim packet answers.
type packetReport struct {
	Topology string             `json:"topology"`
	Items    []*scenario.Result `json:"items"`
}

func (a *app) runPackets(ctx context.Context, o packetOptions, file string) error {
	text, err := a.readFile(ctx, file)
	if err != nil {
		return err
	}
	c, err := scenario.Parse(text,
		func(name string) ([]byte, error) { return a.readAll(ctx, name) })
	if err != nil {
		return err
	}
	g, err := c.Topology.Graph(readTopology)
	if err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	if len(o.compare) == 0 {
		o.compare = []string{c.Paths.Scheme}
	}
	o.seeds = cmp.Or(o.seeds, c.Seeds)
	if err := o.check(c); err != nil {
		return err
	}
	items, err := a.playPackets(ctx, o, c, g)
	if err != nil {
		return err
	}
	if err := o.write(g, c, items); err != nil {
		return err
	}
	for _, r := range items {
		if r.Deadlock != nil {
			a.say("warning: %s, seed %d: deadlock, %s", r.Scheme, r.Seed, r.Deadlock)
		}
	}
	return a.show(packetReport{g.Name(), items}.view())
}

// check refuses, before anything runs, what would be refused after it.
func (o packetOptions) check(c *scenario.Scenario) error {
	if o.seeds < 1 || o.seeds > scenario.MostSeeds || o.workers < 1 {
		return usageErrorf("--seeds %d and --workers %d: at least 1 each, and at most %d seeds",
			o.seeds, o.workers, scenario.MostSeeds)
	}
	if !slices.Contains(tablefile.Formats(), o.format) {
		return usageErrorf("--format %s: %s", o.format, strings.Join(tablefile.Formats(), " or "))
	}
	for i, scheme := range o.compare {
		if slices.Contains(o.compare[:i], scheme) {
			return usageErrorf("--compare has %s twice", scheme)
		}
		if err := c.CheckScheme(scheme); err != nil {
			return err
		}
	}
	if o.out != "" {
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return fmt.Errorf("make the folder of the results, %s: %w", o.out, withoutPath(err))
		}
	}
	for _, name := range []string{o.csv, o.parquet, o.plot} {
		if info, err := os.Stat(filepath.Dir(name)); err != nil {
			return fmt.Errorf("write %s: its folder: %w; make it first", name, withoutPath(err))
		} else if !info.IsDir() {
			return fmt.Errorf("write %s: %s is no folder", name, filepath.Dir(name))
		}
	}
	return nil
}

// write writes the files that the flags ask for.
func (o packetOptions) write(g *topology.Graph, c *scenario.Scenario,
	items []*scenario.Result) error {
	for format, name := range map[tablefile.Format]string{
		tablefile.CSV: o.csv, tablefile.Parquet: o.parquet,
	} {
		if name == "" {
			continue
		}
		if err := tablefile.WriteFile(name, format, packetRuns(items)); err != nil {
			return err
		}
	}
	if o.plot != "" {
		if err := os.WriteFile(o.plot, packetChart(g.Name(), o.compare, items).SVG(),
			0o644); err != nil {
			return fmt.Errorf("write the plot: %w", err)
		}
	}
	if o.out != "" {
		files := packetFiles{o.out, tablefile.Format(o.format), g, c, o.compare, items}
		return files.write()
	}
	return nil
}

// playPackets makes all runs, some at once, and returns them in the order of schemes and seeds.
func (a *app) playPackets(ctx context.Context, o packetOptions, c *scenario.Scenario,
	g *topology.Graph) (
	[]*scenario.Result, error,
) {
	items := make([]*scenario.Result, len(o.compare)*o.seeds)
	parts := make([]float64, len(items))
	var mutex sync.Mutex
	said := ""
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.workers)
	for i := range items {
		group.Go(func() error {
			r, err := c.Run(g, o.compare[i/o.seeds], o.firstSeed+uint64(i%o.seeds),
				func(part float64) error {
					mutex.Lock()
					defer mutex.Unlock()
					parts[i] = part
					if text := packetProgress(parts); a.progress && text != said {
						a.progressLine(text)
						said = text
					}
					return ctx.Err()
				})
			items[i] = r
			return err
		})
	}
	err := group.Wait()
	if a.progress {
		a.progressLine("")
	}
	return items, err
}

// packetProgress says how far runs are of which such parts are done.
func packetProgress(parts []float64) string {
	sum, done := 0.0, 0
	for _, p := range parts {
		sum += p
		if p == 1 {
			done++
		}
	}
	return fmt.Sprintf("%.0f %%, %d of %d runs done", 100*sum/float64(len(parts)), done,
		len(parts))
}

func (r packetReport) view() view {
	t := table{
		columns: []string{"PATHS", "SEED", "FLOWS", "UNFINISHED", "GOODPUT", "LEAST", "MEAN", "P99",
			"SHORT MEAN", "SHORT P99", "LONG MEAN", "DROPS"},
		wide: []string{"LOST", "RETRANSMITTED", "TIMEOUTS", "REROUTES", "REORDERED",
			"PEAK LOAD", "PACKETS", "HOPS", "PAUSES", "PAUSED", "VICTIMS"},
	}
	v := listView(r.Items, t, func(i *scenario.Result) (string, []any) {
		part := func(x float64) string {
			if i.Goodput == 0 {
				return "-"
			}
			return fmt.Sprintf("%.1f %%", 100*x)
		}
		peak := fmt.Sprintf("%.1f %%", 100*i.PeakLoad)
		if len(i.Links) == 0 { // rates alone are known
			peak = "-"
		}
		ms := func(x float64) string {
			if x == 0 { // there is no such flow
				return "-"
			}
			return fmt.Sprintf("%.3f ms", x)
		}
		return fmt.Sprintf("%s/%d", i.Scheme, i.Seed), []any{i.Scheme, i.Seed, i.Flows,
			i.Unfinished, part(i.Goodput), part(i.LeastGoodput), ms(i.MeanMs), ms(i.P99Ms),
			ms(i.ShortMs), ms(i.ShortP99Ms), ms(i.LongMs), i.Drops, i.Lost, i.Retransmissions,
			i.Timeouts, i.Reroutes, i.Reordered, peak, i.Packets,
			i.Hops, i.Pauses, fmt.Sprintf("%.3f ms", i.PausedMs),
			fmt.Sprintf("%s of %d flows", count(i.Victims), i.VictimFlows)}
	})
	v.value = r
	return v
}
