package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sextant/packet/lists"
)

// Experiment runs again what a source measured, and puts its numbers beside ours.
type Experiment struct {
	Name   string // a folder's name: disjoint-fig8
	Title  string // one line
	Source string // the paper with section, table or figure
	Shows  string // a paragraph: what is done, and what the outcome says
	Paper  Paper  // lists group by it
	// what a run meets on the machine: "root", and programs by the name of their Debian package
	Needs []string
	Lasts string // how long it takes on an ordinary machine: "10 s", "20 min", "2 h"
	Run   func(context.Context, *Recorder) error
}

// Paper is the short title of a source, with authors and year.
type Paper string

// The papers whose experiments are run again.
const (
	SRLB         Paper = "SRLB (Desmouceaux et al., 2017)"
	VRFShadowing Paper = "VRF-shadowing (Nakamura et al., 2024)"
	Disjoint     Paper = "Segmentable disjoint paths (Aubry et al.)"
	CFLB         Paper = "CFLB (Detal et al., 2013)"
	SMOOTHIE     Paper = "SMOOTHIE (Champagne and Donnet)"
	Fabrics      Paper = "Path choice in fabrics (CONGA, CLOVE, HULA and others)"
	Ours         Paper = "Not of a paper"
)

// Papers are all of them, in the order of lists.
func Papers() []Paper {
	return []Paper{SRLB, VRFShadowing, Disjoint, CFLB, SMOOTHIE, Fabrics, Ours}
}

// Options say how an experiment is run.
type Options struct {
	Folder string // results go into a folder below, named after the experiment
	Quick  bool   // fewer cases: shows that it runs, not what the source shows
	// of experiments that make requests, or iterations, in each setting; 0: as many as the source,
	// or fewer if Quick
	Requests int
	// of experiments that look at packets: a pcap or pcapng file in place of synthetic ones
	Capture string
	Fresh   bool   // do not resume a run that did not finish
	Workers int    // how many processors may be used
	Version string // of the program, for the report
	// a line that replaces the one before, "" removes it; nil: nobody looks
	Progress func(line string)
}

// Conduct runs an experiment and writes results: report.md, result.json, and the tables and charts
// as CSV and SVG. It returns the report's file. A run that fails or is interrupted leaves its
// parts, from which the next one resumes.
func Conduct(ctx context.Context, e Experiment, o Options) (report string, err error) {
	return newRecorder(e, o).conduct(ctx, e)
}

func (r *Recorder) conduct(ctx context.Context, e Experiment) (report string, err error) {
	o := r.options
	if o.Fresh {
		if err := os.RemoveAll(r.parts); err != nil {
			return "", fmt.Errorf("%s: start again: %w", e.Name, err)
		}
	}
	if err := os.MkdirAll(r.parts, 0o755); err != nil {
		return "", fmt.Errorf("%s: make the folder for results: %w; name one with --folder", e.Name,
			err)
	}
	begun := time.Now()
	err = e.Run(ctx, r)
	r.Progress("")
	if err != nil {
		return "", fmt.Errorf("%s: %w; what was finished is kept, and the next run resumes", e.Name,
			err)
	}
	r.outcome.Seconds = time.Since(begun).Seconds()
	r.outcome.Date = begun.UTC().Format(time.RFC3339)
	r.outcome.Name, r.outcome.Title, r.outcome.Source = e.Name, e.Title, e.Source
	r.outcome.Quick, r.outcome.Version, r.outcome.Machine = o.Quick, o.Version, thisMachine()
	if report, err = r.finish(e); err != nil {
		return "", err
	}
	if err := os.RemoveAll(r.parts); err != nil {
		return "", fmt.Errorf("%s: remove the parts of the finished run: %w", e.Name, err)
	}
	return report, nil
}

// newRecorder keeps the results and parts of an experiment in a folder of its name.
func newRecorder(e Experiment, o Options) *Recorder {
	folder := filepath.Join(o.Folder, e.Name)
	r := &Recorder{options: o, folder: folder, parts: filepath.Join(folder, "parts")}
	if o.Quick {
		r.parts += "-quick"
	}
	return r
}

// Recorder takes down what an experiment finds.
type Recorder struct {
	options Options
	choose  func(part string) bool // whether a part is to be computed; nil: all are
	folder  string
	parts   string
	outcome outcome
	charts  []string
}

// outcome is all that was found, as result.json has it.
type outcome struct {
	Name        string       `json:"name"`
	Title       string       `json:"title"`
	Source      string       `json:"source"`
	Date        string       `json:"date"`
	Seconds     float64      `json:"seconds"`
	Quick       bool         `json:"quick"`
	Version     string       `json:"version"`
	Machine     machine      `json:"machine"`
	Comparisons []Comparison `json:"comparisons"`
	Tables      []Table      `json:"tables"`
	Notes       []string     `json:"notes"`
}

// Comparison is a number of the source beside ours.
type Comparison struct {
	What   string `json:"what"`
	Source string `json:"source"` // what the source says; "-" if it says nothing
	Ours   string `json:"ours"`
	Says   string `json:"says"` // what follows, in a word or a sentence
}

// Table is a table of the report, and a CSV file of its name.
type Table struct {
	Name    string     `json:"name"` // of the file
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}

// Add adds a row.
func (t *Table) Add(cells ...any) {
	t.Rows = append(t.Rows, lists.Map(cells, func(c any) string { return fmt.Sprint(c) }))
}

// Quick tells whether fewer cases will do.
func (r *Recorder) Quick() bool { return r.options.Quick }

// Requests is how many requests to make in each setting, where the source has made so many.
func (r *Recorder) Requests(source int) int {
	const quick = 20
	switch {
	case r.options.Requests > 0:
		return r.options.Requests
	case r.options.Quick:
		return min(source, quick)
	}
	return source
}

// Capture is the file of packets that the user gave, "" if there is none.
func (r *Recorder) Capture() string { return r.options.Capture }

// Workers is how many processors may be used.
func (r *Recorder) Workers() int { return max(1, r.options.Workers) }

// Progress shows how far the experiment is.
func (r *Recorder) Progress(format string, args ...any) {
	if r.options.Progress != nil {
		r.options.Progress(fmt.Sprintf(format, args...))
	}
}

// Compare adds a number of the source beside ours.
func (r *Recorder) Compare(c Comparison) {
	r.outcome.Comparisons = append(r.outcome.Comparisons, c)
}

// Note adds a remark that a reader needs to judge the numbers.
func (r *Recorder) Note(format string, args ...any) {
	r.outcome.Notes = append(r.outcome.Notes, fmt.Sprintf(format, args...))
}

// Table adds a table.
func (r *Recorder) Table(t Table) { r.outcome.Tables = append(r.outcome.Tables, t) }

// Part computes a part of an experiment, or takes it from an earlier run that did not finish. The
// value must survive JSON.
func Part[T any](r *Recorder, name string, compute func() (T, error)) (T, error) {
	var value T
	if r.choose != nil && !r.choose(name) {
		return value, errOther
	}
	file := r.partFile(name)
	if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &value) == nil {
		return value, nil
	}
	value, err := compute()
	if err != nil {
		return value, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return value, fmt.Errorf("keep part %s: %w", name, err)
	}
	return value, writeFile(file, text)
}

func (r *Recorder) partFile(name string) string { return filepath.Join(r.parts, name+".json") }

// writeFile leaves either the old content or all of the new.
func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.WriteFile(name+".new", content, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
