package datapath

import (
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cilium/ebpf"
)

var (
	benchPasses = flag.Int("passes", 9, "passes of the bench over all its rows")
	benchRepeat = flag.Int("repeat", 1<<18,
		"packets per row and pass of the bench; more if the row has more flows")
	benchOnly = flag.String("rows", "",
		"regular expression of the rows that are measured besides the yardstick; all without one")
)

const benchLoads = 9

// BenchmarkPrograms prints what a packet costs in the programs: net of the driver and gross, and
// the ratio to a bare encapsulation in the same pass. Method and figures:
// docs/results/benchmarks.md.
func BenchmarkPrograms(b *testing.B) {
	w := newWorld(b)
	oneCPU(b)
	rows := slices.Concat(edgeRows(b, w), pathRows(b, w), cacheRows(b, w), rareRows(b, w),
		hostRows(b, w), rareHostRows(b, w), hmacRows(b, w))
	driver := newBenchDriver(b, w.near)
	bare := benchRow{name: "bare encapsulation", program: driver.Programs[benchProgBare],
		frame: rows[0].frame, verdict: xdpTransmit}
	rows = append([]benchRow{bare}, chosenRows(b, rows)...)
	costs := make([][]cost, len(rows))
	for range *benchPasses {
		for i, r := range rows {
			costs[i] = append(costs[i], driver.measure(b, r))
		}
	}
	printRows(rows, costs)
	printLoads(b, w)
}

func chosenRows(t testing.TB, rows []benchRow) []benchRow {
	t.Helper()
	only, err := regexp.Compile(*benchOnly)
	must(t, err)
	return slices.DeleteFunc(rows, func(r benchRow) bool { return !only.MatchString(r.name) })
}

// cost is what one packet took, in ns.
type cost struct {
	driver float64 // with a target that does nothing
	gross  float64 // with the program
}

func (c cost) net() float64 { return c.gross - c.driver }

func (d *benchDriver) measure(t testing.TB, r benchRow) cost {
	t.Helper()
	repeat := max(*benchRepeat, r.frame.flows)
	alone, _ := d.run(t, d.Programs[benchProgNothing], r.frame, repeat)
	before := r.count()
	gross, verdict := d.run(t, r.program, r.frame, repeat)
	if verdict != r.verdict {
		t.Fatalf("%s: the program returned %d, want %d", r.name, verdict, r.verdict)
	}
	if seen := r.count() - before; r.counted != nil && seen != uint64(repeat) {
		t.Fatalf("%s: %d of %d packets went the way that is to be measured", r.name, seen, repeat)
	}
	return cost{driver: alone, gross: gross}
}

func (r benchRow) count() uint64 {
	if r.counted == nil {
		return 0
	}
	return r.counted()
}

// printRows prints the rows; the first is the yardstick. Ratios are those of one pass, so that a
// machine which is slower for a moment is so for both.
func printRows(rows []benchRow, costs [][]cost) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nns per packet\tnet\tlowest\thighest\tto bare\tgross\tto bare\t")
	for i, r := range rows {
		nets := each(costs[i], func(_ int, c cost) float64 { return c.net() })
		netRatios := each(costs[i], func(pass int,
			c cost) float64 {
			return c.net() / costs[0][pass].net()
		})
		gross := each(costs[i], func(_ int, c cost) float64 { return c.gross })
		grossRatios := each(costs[i], func(pass int,
			c cost) float64 {
			return c.gross / costs[0][pass].gross
		})
		fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", r.name,
			median(nets), slices.Min(nets), slices.Max(nets), median(netRatios), median(gross),
			median(grossRatios))
	}
	table.Flush()
}

func each(costs []cost, f func(pass int, c cost) float64) []float64 {
	values := make([]float64, len(costs))
	for pass, c := range costs {
		values[pass] = f(pass, c)
	}
	return values
}

// printLoads prints how long it takes to open edge and host: read the object, make the maps, load
// the programs.
func printLoads(t testing.TB, w *world) {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\nload, ms\tmedian\tlowest\thighest\tof which maps\t")
	printLoad(t, table, "edge", loadEdge, func() *collection {
		e, err := OpenEdge(w.dir, edgeConfig(t))
		must(t, err)
		return e.collection
	})
	printLoad(t, table, "host", loadHost, func() *collection {
		h, err := OpenHost(w.dir, hostConfig(t))
		must(t, err)
		return h.collection
	})
	table.Flush()
}

// printLoad opens a role with its maps, and then once more with these maps, so that what they cost
// can be told.
func printLoad(t testing.TB, out io.Writer, name string, read func() (*ebpf.CollectionSpec, error),
	open func() *collection) {
	var all, maps []float64
	for range benchLoads {
		start := time.Now()
		c := open()
		first := milliseconds(start)
		start = time.Now()
		spec, err := read()
		must(t, err)
		for name, m := range c.maps { // of the sizes that were asked for
			spec.Maps[name].MaxEntries = m.MaxEntries()
		}
		_, err = c.load(spec)
		must(t, err)
		all, maps = append(all, first), append(maps, first-milliseconds(start))
		c.close()
	}
	fmt.Fprintf(out, "%s\t%.1f\t%.1f\t%.1f\t%.1f\t\n", name, median(all), slices.Min(all),
		slices.Max(all), max(0, median(maps)))
}

func milliseconds(since time.Time) float64 {
	return float64(time.Since(since)) / float64(time.Millisecond)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
