// Package tablefile writes rows of results, structs with a column in each field, as CSV (RFC 4180)
// or as Apache Parquet, from one definition. A field's tag `parquet:"name"` names its column; the
// unit is at the end of the name, as in mean_ms.
package tablefile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Format is how rows are written; also the ending of a file's name.
type Format string

// CSV is for people and spreadsheets, Parquet for data frames: typed, in columns, compressed.
const (
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Formats are the names of all formats.
func Formats() []string { return []string{string(CSV), string(Parquet)} }

// Seconds is a time. CSV writes it with twelve digits, which is to the picosecond.
type Seconds float64

// WriteFile writes rows into a file, which it creates or replaces.
func WriteFile[Row any](name string, format Format, rows []Row) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	err = errors.Join(Write(f, format, rows), f.Close())
	if err != nil {
		return fmt.Errorf("write the results to %s: %w", name, err)
	}
	return nil
}

// Write writes rows; those of no row are a head alone. Fields are of strings, integers and floats.
func Write[Row any](w io.Writer, format Format, rows []Row) error {
	switch format {
	case CSV:
		return writeCSV(w, rows)
	case Parquet:
		return parquet.Write(w, rows, parquet.Compression(&parquet.Zstd))
	default:
		return fmt.Errorf("no format %q; there are %s", format, strings.Join(Formats(), ", "))
	}
}

func writeCSV[Row any](w io.Writer, rows []Row) error {
	out := csv.NewWriter(w)
	line := Columns[Row]()
	if err := out.Write(line); err != nil {
		return err
	}
	for i := range rows {
		row := reflect.ValueOf(&rows[i]).Elem()
		for column := range line {
			line[column] = text(row.Field(column))
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Columns are the names of a row's columns.
func Columns[Row any]() []string {
	t := reflect.TypeFor[Row]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("parquet")
	}
	return names
}

const (
	digits         = 9  // of a number that is measured
	picosecondsLog = 12 // digits of a time
)

func text(v reflect.Value) string {
	switch {
	case v.Type() == reflect.TypeFor[Seconds]():
		return strconv.FormatFloat(v.Float(), 'f', picosecondsLog, 64)
	case v.CanFloat():
		return strconv.FormatFloat(v.Float(), 'g', digits, 64)
	default:
		return fmt.Sprint(v.Interface())
	}
}
