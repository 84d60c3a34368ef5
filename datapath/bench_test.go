package datapath

import (
	"slices"
	"testing"
)

// BenchmarkPrograms prints what a packet costs in the programs: net of the driver and gross, and
// the ratio to a bare encapsulation in the same pass; with -against, beside another build. Method
// and figures: docs/results/benchmarks.md.
func BenchmarkPrograms(b *testing.B) {
	w := newWorld(b)
	oneCPU(b)
	driver := newBenchDriver(b, w.near)
	rows := driver.programRows(b, w)
	other := startOther(b)
	costs := make([]rowCosts, len(rows))
	for pass := 0; pass < benchPassesMost() && !enough(costs); pass++ {
		for i, r := range rows {
			costs[i].add(driver.measure(b, r), other.measure(b, r))
		}
	}
	results := resultsOf(rows, costs)
	printTable(results)
	writeResults(b, results)
	if other == nil {
		printLoads(b, w)
	}
}

// allRows are those of edge and host.
func allRows(t testing.TB, w *world) []benchRow {
	return slices.Concat(edgeRows(t, w), pathRows(t, w), cacheRows(t, w), rareRows(t, w),
		hostRows(t, w), rareHostRows(t, w), hmacRows(t, w))
}
