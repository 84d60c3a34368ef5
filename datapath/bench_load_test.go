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
	printLoad(t, table, "edge", func() (*collection, func() (*ebpf.CollectionSpec, error)) {
		config := edgeConfig(t)
		e, err := OpenEdge(w.dir, config)
		must(t, err)
		return e.collection, func() (*ebpf.CollectionSpec, error) {
			return e.spec(config.Interfaces[0].Side)
		}
	})
	printLoad(t, table, "host", func() (*collection, func() (*ebpf.CollectionSpec, error)) {
		h, err := OpenHost(w.dir, hostConfig(t))
		must(t, err)
		return h.collection, h.spec
	})
	table.Flush()
}

// printLoad opens a role with its maps, and then loads what has the same settings once more with
// these maps, so that what they cost can be told.
func printLoad(t testing.TB, out io.Writer, name string,
	open func() (*collection, func() (*ebpf.CollectionSpec, error))) {
	var all, maps []float64
	for range benchLoads {
		start := time.Now()
		c, read := open()
		first := milliseconds(start)
		start = time.Now()
		spec, err := read()
		must(t, err)
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
