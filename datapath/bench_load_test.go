package datapath

import (
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cilium/ebpf"
)

const benchLoads = 9

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
