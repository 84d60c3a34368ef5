package datapath

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

var (
	benchPasses = flag.Int("passes", 9, "passes of the bench over all its rows, without those "+
		"that were disturbed")
	benchRepeat = flag.Int("repeat", 1<<18,
		"packets per row and pass of the bench; more if the row has more flows")
	benchOnly = flag.String("rows", "",
		"regular expression of the rows that are measured besides the yardstick; all without one")
)

// benchBounds are those within which repeats are what the kernel is told, and a run ends.
const (
	benchPassesBound = 1_000
	benchRepeatBound = 1 << 30
)

// checkBench finds what is wrong with the bench's flags before anything is measured. Without these
// faults, the file for results can be written.
func checkBench(passes, repeat int, rows, file string) error {
	if passes < 1 || passes > benchPassesBound {
		return fmt.Errorf("-passes %d; choose 1 to %d", passes, benchPassesBound)
	}
	if repeat < 1 || repeat > benchRepeatBound {
		return fmt.Errorf("-repeat %d; choose 1 to %d", repeat, benchRepeatBound)
	}
	if _, err := regexp.Compile(rows); err != nil {
		return fmt.Errorf("-rows: %w", err)
	}
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(fromRoot(file), os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("-json: %w", err)
	}
	return f.Close()
}

// fromRoot is a path that was said at the repository's root, where make runs; tests run in their
// package's folder.
func fromRoot(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join("..", path)
}

// hasRows reports whether another row than the yardstick was chosen. Where other benches follow,
// theirs may be meant.
func hasRows(b *testing.B, rows []benchRow) bool {
	b.Helper()
	if len(rows) > 1 {
		return true
	}
	if *benchAgainst != "" {
		b.Fatalf("no row of the programs matches -rows %q", *benchOnly)
	}
	fmt.Printf("no row of the programs matches -rows %q\n", *benchOnly)
	return false
}

// benchDrift is by which part of their mean the two runs without a program, before and after that
// with one, may differ. If they differ more, the machine did something else.
const benchDrift = 0.1

// benchPassesMost bounds the passes of a machine that is never at rest.
func benchPassesMost() int { return 4 * *benchPasses }

// programRows are the yardstick and the rows that were chosen.
func (d *benchDriver) programRows(t testing.TB, w *world) []benchRow {
	t.Helper()
	rows := allRows(t, w)
	bare := benchRow{name: "bare encapsulation", program: d.Programs[benchProgBare],
		frame: rows[0].frame, verdict: xdpTransmit}
	return append([]benchRow{bare}, chosenRows(t, rows)...)
}

func chosenRows(t testing.TB, rows []benchRow) []benchRow {
	t.Helper()
	only, err := regexp.Compile(*benchOnly)
	must(t, err)
	return slices.DeleteFunc(rows, func(r benchRow) bool { return !only.MatchString(r.name) })
}

// cost is what one packet took, in ns.
type cost struct {
	Before float64 `json:"before"` // with a target that does nothing
	Gross  float64 `json:"gross"`  // with the program
	After  float64 `json:"after"`  // with a target that does nothing, once more
}

func (c cost) driver() float64 { return (c.Before + c.After) / 2 }

func (c cost) net() float64 { return c.Gross - c.driver() }

func (c cost) disturbed() bool { return math.Abs(c.After-c.Before) > benchDrift*c.driver() }

// measure runs a row's packets through its program, between two runs without it.
func (d *benchDriver) measure(t testing.TB, r benchRow) cost {
	t.Helper()
	repeat := max(*benchRepeat, r.frame.flows)
	before, _ := d.run(t, d.Programs[benchProgNothing], r.frame, repeat)
	count := r.count()
	gross, verdict := d.run(t, r.program, r.frame, repeat)
	if verdict != r.verdict {
		t.Fatalf("%s: the program returned %d, want %d", r.name, verdict, r.verdict)
	}
	if seen := r.count() - count; r.counted != nil && seen != uint64(repeat) {
		t.Fatalf("%s: %d of %d packets went the way that is to be measured", r.name, seen, repeat)
	}
	after, _ := d.run(t, d.Programs[benchProgNothing], r.frame, repeat)
	return cost{Before: before, Gross: gross, After: after}
}

func (r benchRow) count() uint64 {
	if r.counted == nil {
		return 0
	}
	return r.counted()
}

// rowCosts are a row's passes: those of this build, and of the other one, if there is one.
type rowCosts struct {
	this, other []cost
	kept        []bool // the pass was not disturbed
}

// add adds a pass. other is nil without another build.
func (r *rowCosts) add(this cost, other *cost) {
	kept := !this.disturbed()
	if other != nil {
		r.other = append(r.other, *other)
		kept = kept && !other.disturbed()
	}
	r.this, r.kept = append(r.this, this), append(r.kept, kept)
}

// enough reports whether all rows have as many passes that count as were asked for.
func enough(rows []rowCosts) bool {
	return !slices.ContainsFunc(rows, func(r rowCosts) bool {
		return len(r.each(func(pass int) float64 { return 0 })) < *benchPasses
	})
}

// each returns a value of each pass that counts.
func (r *rowCosts) each(value func(pass int) float64) []float64 {
	var values []float64
	for pass, kept := range r.kept {
		if kept {
			values = append(values, value(pass))
		}
	}
	return values
}

// against returns the ratio to another row in the passes in which both count.
func (r *rowCosts) against(other *rowCosts, value func(cost) float64) []float64 {
	var ratios []float64
	for pass, kept := range r.kept {
		if kept && other.kept[pass] {
			ratios = append(ratios, value(r.this[pass])/value(other.this[pass]))
		}
	}
	return ratios
}

// quantile returns a value of which a part of all is lower; 0.5 is the median.
func quantile(values []float64, part float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(part*float64(len(sorted))))]
}

func median(values []float64) float64 { return quantile(values, 0.5) }
