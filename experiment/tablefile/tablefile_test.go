package tablefile

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

type row struct {
	Name  string  `parquet:"name"`
	Start Seconds `parquet:"start_s"`
	Bytes uint64  `parquet:"bytes"`
	Count int     `parquet:"count"`
	Mean  float64 `parquet:"mean_ms"`
}

var rows = []row{
	{"a, \"b\"", 0.000000000001, math.MaxUint64, -1, 1.0 / 3},
	{"", 4000.123456789012, 0, math.MaxInt64, math.Inf(1)},
}

func TestCSV(t *testing.T) {
	var out bytes.Buffer
	if err := Write(&out, CSV, rows); err != nil {
		t.Fatal(err)
	}
	const want = "name,start_s,bytes,count,mean_ms\n" +
		"\"a, \"\"b\"\"\",0.000000000001,18446744073709551615,-1,0.333333333\n" +
		",4000.123456789012,0,9223372036854775807,+Inf\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A reader that knows nothing of the type finds columns by name, and each value as it was.
func TestParquet(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.parquet")
	if err := WriteFile(file, Parquet, rows); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	const schema = "message row {\n\trequired binary name (STRING);\n\trequired double start_s;\n" +
		"\trequired int64 bytes (INT(64,false));\n\trequired int64 count (INT(64,true));\n" +
		"\trequired double mean_ms;\n}"
	if f.Schema().String() != schema {
		t.Errorf("schema %s, want %s", f.Schema(), schema)
	}
	in := f.RowGroups()[0].Rows()
	defer in.Close()
	read := make([]parquet.Row, len(rows)+1)
	if n, err := in.ReadRows(read); n != len(rows) || err != nil && err != io.EOF {
		t.Fatalf("%d rows, %v", n, err)
	}
	for i, want := range rows {
		got := row{read[i][0].String(), Seconds(read[i][1].Double()), read[i][2].Uint64(),
			int(read[i][3].Int64()), read[i][4].Double()}
		if got != want {
			t.Errorf("row %d: %v, want %v", i, got, want)
		}
	}
}

// No row is a head alone, in both.
func TestNoRow(t *testing.T) {
	for _, format := range Formats() {
		var out bytes.Buffer
		if err := Write(&out, Format(format), []row{}); err != nil {
			t.Fatal(err)
		}
		if Format(format) == CSV {
			if out.String() != strings.Join(Columns[row](), ",")+"\n" {
				t.Errorf("%q", out.String())
			}
			continue
		}
		f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
		if err != nil || f.NumRows() != 0 || len(f.Schema().Columns()) != len(Columns[row]()) {
			t.Errorf("%v, %v", f, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	if err := Write(&bytes.Buffer{}, "xls", rows); err == nil ||
		!strings.Contains(err.Error(), "csv, parquet") {
		t.Error(err)
	}
	if err := WriteFile(filepath.Join(t.TempDir(), "none", "x.csv"), CSV, rows); err == nil {
		t.Error("a file in a folder that is not there")
	}
}
