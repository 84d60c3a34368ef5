package datapath

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"testing"
	"text/tabwriter"
)

var benchJSON = flag.String("json", "", "file to which the bench writes its rows as "+
	"JSON; relative to the root of the repository")

// printRows prints rows whose passes count if they were not disturbed.
func printRows(rows []benchRow, costs [][]cost) {
	all := make([]rowCosts, len(rows))
	for i := range rows {
		for _, c := range costs[i] {
			all[i].add(c, nil)
		}
	}
	printTable(resultsOf(rows, all))
}

// resultsOf are the lines of the table. The first row is the yardstick.
func resultsOf(rows []benchRow, costs []rowCosts) []benchResult {
	results := make([]benchResult, len(rows))
	for i := range rows {
		results[i] = costs[i].result(rows[i].name, &costs[0])
	}
	return results
}

// printTable prints the lines. Ratios are those of one pass, so that a machine which is slower for
// a moment is so for both.
func printTable(results []benchResult) {
	against := results[0].Ratio != nil
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\nns per packet\tnet\tmiddle half\tto bare\tgross\tto bare\tdisturbed\t")
	if against {
		fmt.Fprint(table, "other's net\tratio\tmiddle half\t")
	}
	fmt.Fprintln(table)
	for _, r := range results {
		fmt.Fprintf(table, "%s\t%.1f\t%.1f-%.1f\t%.1f\t%.1f\t%.1f\t%d of %d\t", r.Name,
			r.Net.Median, r.Net.Quarter, r.Net.ThreeQuarters, r.NetToBare, r.Gross.Median,
			r.GrossToBare, r.Disturbed, r.Passes)
		if against && r.Ratio == nil {
			fmt.Fprint(table, "none\t\t\t")
		} else if against {
			fmt.Fprintf(table, "%.1f\t%.2f\t%.2f-%.2f\t", r.Other.Median, r.Ratio.Median,
				r.Ratio.Quarter, r.Ratio.ThreeQuarters)
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}

// writeResults writes the lines to the file that -json names.
func writeResults(t testing.TB, results any) {
	t.Helper()
	if *benchJSON == "" {
		return
	}
	text, err := json.MarshalIndent(results, "", "  ")
	must(t, err)
	must(t, os.WriteFile(fromRoot(*benchJSON), append(text, '\n'), 0o644))
}

// benchResult is a line of the table.
type benchResult struct {
	Name        string `json:"name"`
	Passes      int    `json:"passes"`
	Disturbed   int    `json:"disturbed"` // passes that do not count
	Net         spread `json:"netNs"`
	NetToBare   number `json:"netToBare"`
	Gross       spread `json:"grossNs"`
	GrossToBare number `json:"grossToBare"`
	// the other build's, and of each pass this build's to it
	Other *spread `json:"otherNetNs,omitempty"`
	Ratio *spread `json:"ratio,omitempty"`
}

// number is null in JSON if nothing counted.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// spread is where the middle half of some values lies, and all of them in their order.
type spread struct {
	Median        number    `json:"median"`
	Quarter       number    `json:"quarter"`
	ThreeQuarters number    `json:"threeQuarters"`
	All           []float64 `json:"all"`
}

func spreadOf(values []float64) spread {
	return spread{number(median(values)), number(quantile(values, 0.25)),
		number(quantile(values, 0.75)), values}
}

func (r *rowCosts) result(name string, bare *rowCosts) benchResult {
	net := r.each(func(pass int) float64 { return r.this[pass].net() })
	result := benchResult{
		Name: name, Passes: len(r.kept), Disturbed: len(r.kept) - len(net), Net: spreadOf(net),
		NetToBare:   number(median(r.against(bare, cost.net))),
		Gross:       spreadOf(r.each(func(pass int) float64 { return r.this[pass].Gross })),
		GrossToBare: number(median(r.against(bare, func(c cost) float64 { return c.Gross }))),
	}
	if len(r.other) > 0 {
		other := spreadOf(r.each(func(pass int) float64 { return r.other[pass].net() }))
		ratio := spreadOf(r.each(func(pass int) float64 {
			return r.this[pass].net() / r.other[pass].net()
		}))
		result.Other, result.Ratio = &other, &ratio
	}
	return result
}
