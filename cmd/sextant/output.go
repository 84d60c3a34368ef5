package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/packet/lists"
)

// The formats of the output.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
)

var formats = []string{formatTable, formatWide, formatJSON, formatYAML, formatName}

// view is one answer in all formats.
type view struct {
	value  any    // for JSON and YAML
	tables tables // for people
	prose  string // before the tables
	names  []string
}

type tables []table

// table has columns that are always shown and columns that are shown when
// wide. A row has both, one after the other.
type table struct {
	title   string // shown above; "" is none
	columns []string
	wide    []string
	rows    [][]string
}

// add adds a row.
func (t *table) add(cells ...any) {
	t.rows = append(t.rows, lists.Map(cells, func(c any) string { return fmt.Sprint(c) }))
}

// show prints an answer in the format that the user wants.
func (a *app) show(v view) error {
	switch a.output {
	case formatJSON:
		return writeJSON(a.stdout, v.value)
	case formatYAML:
		return writeYAML(a.stdout, v.value)
	case formatName:
		for _, name := range v.names {
			fmt.Fprintln(a.stdout, cell(name))
		}
		return nil
	}
	fmt.Fprint(a.stdout, visible(v.prose))
	return v.tables.write(a.stdout, a.output == formatWide)
}

// showUnless shows an answer unless there is an error in its place.
func (a *app) showUnless(v view, err error) error {
	if err != nil {
		return err
	}
	return a.show(v)
}

// listView is a list with a row and a name for each item.
func listView[T any](items []T, t table, row func(T) (name string, cells []any)) view {
	v := view{value: api.List[T]{Items: items}}
	for _, item := range items {
		name, cells := row(item)
		v.names = append(v.names, name)
		t.add(cells...)
	}
	v.tables = tables{t}
	return v
}

// answered shows the answer to a question.
func answered[T any](a *app, as func(T) view) func(T, error) error {
	return func(answer T, err error) error {
		return a.showUnless(as(answer), err)
	}
}

// shows makes the run of a command that puts one question to a daemon and shows the answer.
func shows[C, T any](a *app, client func(*cobra.Command) C,
	ask func(C, context.Context) (T, error), as func(T) view) func(*cobra.Command, []string) error {
	return a.timed(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
		return answered(a, as)(ask(client(cmd), ctx))
	})
}

func writeJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func (ts tables) write(w io.Writer, wide bool) error {
	for i, t := range ts {
		if i > 0 || t.title != "" {
			fmt.Fprintln(w)
		}
		if t.title != "" {
			fmt.Fprintln(w, cell(t.title))
		}
		if err := t.write(w, wide); err != nil {
			return err
		}
	}
	return nil
}

// write prints the header even if there is no row. Nothing is cut off.
func (t table) write(w io.Writer, wide bool) error {
	var text bytes.Buffer
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	header := t.columns
	if wide {
		header = append(header[:len(header):len(header)], t.wide...)
	}
	for _, row := range append([][]string{header}, t.rows...) {
		cells := make([]string, len(header))
		for i, text := range row[:len(header)] {
			cells[i] = cell(text)
		}
		fmt.Fprintln(columns, strings.Join(cells, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	// tabwriter pads the last column of rows that are not the longest.
	out := bufio.NewWriter(w) // a long table is not one write for each row
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
	return out.Flush()
}
