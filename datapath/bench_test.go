package datapath

import (
	"slices"
	"testing"
)

// BenchmarkPrograms prints what a packet costs in the programs: net of the driver and gross, and
// the ratio to a bare encapsulation in the same pass; with -against, beside another build. Method
// and figures: docs/results/benchmarks.md.
func BenchmarkPrograms(b *testing.B) {
	must(b, checkBench(*benchPasses, *benchRepeat, *benchOnly, *benchJSON))
	w := newWorld(b)
	oneCPU(b)
	driver := newBenchDriver(b, w.near)
	rows := append(driver.programRows(b, w), driver.floorRows(b)...)
	if !hasRows(b, rows) {
		return
	}
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

// floorRows are what the host's rows can not be below.
func (d *benchDriver) floorRows(t testing.TB) []benchRow {
	of := func(name string, connections int) benchRow {
		return benchRow{name: "socket look-up alone, " + name, verdict: xdpPass,
			program: d.Programs[benchProgSocketAlone],
			frame:   benchOffered(t, benchACK(benchClientV6, hostVIPv6), connections)}
	}
	return chosenRows(t, []benchRow{of("1 connection of 10,000", 1),
		of("1,000 connections of 10,000", 1000), of("10,000 connections", benchOpen)})
}

// allRows are those of edge and host.
func allRows(t testing.TB, w *world) []benchRow {
	return slices.Concat(edgeRows(t, w), pathRows(t, w), cacheRows(t, w), rareRows(t, w),
		hostRows(t, w), rareHostRows(t, w), hmacRows(t, w))
}
