package main

import (
	"bytes"
	"strconv"
	"testing"
)

// pieces notes how many writes a text comes in.
type pieces struct {
	bytes.Buffer
	writes int
}

func (p *pieces) Write(text []byte) (int, error) {
	p.writes++
	return p.Buffer.Write(text)
}

// A table of ten thousand rows is whole, and comes in pages rather than by row: each write to a
// terminal or a pipe is a system call.
func TestLongTableIsNotWrittenByRow(t *testing.T) {
	const rows, page = 10_000, 4096
	list := table{columns: []string{"NAME", "PACKETS"}}
	want := "NAME   PACKETS\n"
	for i := range rows {
		name := strconv.Itoa(10_000 + i)
		list.rows = append(list.rows, []string{name, "7"})
		want += name + "  7\n"
	}
	var out pieces
	if err := list.write(&out, false); err != nil || out.String() != want {
		t.Errorf("error %v, %d bytes, want %d", err, out.Len(), len(want))
	}
	if most := len(want)/page + 1; out.writes > most {
		t.Errorf("%d writes of %d bytes, want %d at most", out.writes, len(want), most)
	}
}
