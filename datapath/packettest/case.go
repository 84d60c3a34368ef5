package packettest

import "testing"

// Sides of the interface that a frame comes in by.
const (
	External = "external"
	Internal = "internal"
	Mixed    = "mixed"
)

// Case is a frame, and what becomes of it: "pass", "redirect" (all routes lead elsewhere), "take",
// or the reason for which it is dropped.
type Case struct {
	Name  string
	Side  string // edge only
	Frame []byte
	Want  string
}

// row is a case of a table about one side.
type row struct {
	name  string
	frame []byte
	want  string
}

func from(side string, rows []row) []Case {
	cases := make([]Case, len(rows))
	for i, r := range rows {
		cases[i] = Case{Name: r.name, Side: side, Frame: r.frame, Want: r.want}
	}
	return cases
}

// onto returns the function that puts IP packets on the wire.
func (l Link) onto(t testing.TB) func(ip []byte) []byte {
	return func(ip []byte) []byte {
		t.Helper()
		return l.Frame(t, ip)
	}
}
