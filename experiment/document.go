package experiment

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"sextant/experiment/chart"
)

// Chart adds a chart to the report, and as a file of that name.
func (r *Recorder) Chart(name string, c chart.Chart) error {
	r.charts = append(r.charts, name)
	return writeFile(filepath.Join(r.folder, name+".svg"), c.SVG())
}

// finish writes everything.
func (r *Recorder) finish(e Experiment) (report string, err error) {
	for _, t := range r.outcome.Tables {
		if err := writeFile(filepath.Join(r.folder, t.Name+".csv"), t.csv()); err != nil {
			return "", err
		}
	}
	text, err := json.MarshalIndent(r.outcome, "", "  ")
	if err != nil {
		return "", fmt.Errorf("write the result: %w", err)
	}
	if err := writeFile(filepath.Join(r.folder, ResultFile), append(text, '\n')); err != nil {
		return "", err
	}
	report = filepath.Join(r.folder, ReportFile)
	return report, writeFile(report, r.markdown(e))
}

// ReportFile and ResultFile are the names of the report in an experiment's folder, and of the same
// for programs.
const (
	ReportFile = "report.md"
	ResultFile = "result.json"
)

func (t Table) csv() []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	_ = w.WriteAll(append([][]string{t.Columns}, t.Rows...)) // a buffer takes everything
	return out.Bytes()
}

func (r *Recorder) markdown(e Experiment) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s: %s\n\n%s\n\nSource: %s.\n", e.Name, e.Title, e.Shows, e.Source)
	if r.outcome.Quick {
		out.WriteString("\nThis was a quick run: fewer cases than the source has.\n")
	}
	if len(r.outcome.Comparisons) > 0 {
		t := Table{Columns: []string{"Quantity", "Source", "Here", "Says"}}
		for _, c := range r.outcome.Comparisons {
			t.Add(c.What, c.Source, c.Ours, c.Says)
		}
		out.WriteString("\n## The source's numbers and ours\n\n")
		t.markdown(&out)
	}
	for _, name := range r.charts {
		fmt.Fprintf(&out, "\n![%s](%s.svg)\n", name, name)
	}
	for _, t := range r.outcome.Tables {
		fmt.Fprintf(&out, "\n## %s\n\n", t.Title)
		t.markdown(&out)
	}
	if len(r.outcome.Notes) > 0 {
		out.WriteString("\n## Notes\n\n")
		for _, n := range r.outcome.Notes {
			fmt.Fprintf(&out, "- %s\n", n)
		}
	}
	m := r.outcome.Machine
	fmt.Fprintf(&out, "\n## Run\n\n%s, %.1f s, Sextant %s, %s, %d processors (%s), Linux %s, %s.\n",
		r.outcome.Date, r.outcome.Seconds,
		r.outcome.Version, m.Go, m.Processors, m.Model, m.Kernel, m.Architecture)
	fmt.Fprintf(&out, "\nRepeat with: `sextant experiment run %s --fresh`\n", e.Name)
	return []byte(out.String())
}

func (t Table) markdown(out *strings.Builder) {
	row := func(cells []string) {
		out.WriteString("|")
		for _, cell := range cells {
			fmt.Fprintf(out, " %s |", strings.ReplaceAll(cell, "|", `\|`))
		}
		out.WriteString("\n")
	}
	row(t.Columns)
	out.WriteString(strings.Repeat("| --- ", len(t.Columns)) + "|\n")
	for _, cells := range t.Rows {
		row(cells)
	}
}
