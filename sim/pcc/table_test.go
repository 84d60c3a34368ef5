package pcc

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sextant/lb/pool"
)

// The table of guarantees is true: in each set-up, all interleavings of the small world are
// explored, and connections break exactly where it says so.
func TestGuarantees(t *testing.T) {
	document := readDocument(t)
	for _, s := range readTable(t, document) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			found := s.explore()
			t.Logf("%d states", found.states)
			for i, line := range found.trace {
				t.Logf("%2d. %s", i+1, line)
			}
			if holds := found.trace == nil; holds != s.holds {
				t.Errorf("consistent: %v, but docs/explanation/pcc.md says %v", holds, s.holds)
			}
		})
	}
}

// breaksNothing explores a set-up, and shows how it loses a connection if it does.
func (s setup) breaksNothing(t *testing.T) {
	t.Helper()
	found := s.explore()
	t.Logf("%d states", found.states)
	for i, line := range found.trace {
		t.Errorf("%2d. %s", i+1, line)
	}
}

// What edges believe to know about flows breaks no connection, even if it is all wrong: where
// chains keep connections, chains with anybody in front keep them too.
func TestWrongCacheBreaksNothing(t *testing.T) {
	for _, s := range readTable(t, readDocument(t)) {
		if !s.holds || s.policy != pool.Offer {
			continue
		}
		s.cache, s.changes = true, min(s.changes, 3) // or else it takes minutes
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.breaksNothing(t)
		})
	}
}

// The order of a bucket's candidates breaks no connection: where chains keep connections, they keep
// them if edges order candidates by weights that differ from edge to edge and packet to packet, and
// if restarts forget them; a table that depends on nothing but the backends does so with sites,
// too.
func TestOrdersBreakNothing(t *testing.T) {
	for _, s := range readTable(t, readDocument(t)) {
		if !s.holds || s.policy != pool.Offer || s.method != pool.Rendezvous ||
			s.candidates < 2 {
			continue
		}
		s.orders, s.changes = true, min(s.changes, 3) // or else it takes minutes
		for _, sites := range []bool{false, true} {
			s := s
			if s.sites = sites; sites && s.hosts > s.depth && s.restart != "never" {
				continue // sites need chains that hold all, where an edge starts empty
			}
			t.Run(fmt.Sprintf("%s, sites %v", s.name, s.sites), func(t *testing.T) {
				t.Parallel()
				s.breaksNothing(t)
			})
		}
	}
}

// Where chains do not hold all hosts, sites need edges that remember: the checker finds how one
// that starts empty loses a connection.
func TestSitesNeedChainsThatHoldAll(t *testing.T) {
	tried := false
	for _, s := range readTable(t, readDocument(t)) {
		if !s.holds || s.policy != pool.Offer || s.method != pool.Rendezvous ||
			s.candidates < 2 || s.hosts <= s.depth || s.restart != "empty" {
			continue
		}
		tried, s.sites = true, true
		if found := s.explore(); len(found.trace) == 0 {
			t.Errorf("%s, in two sites: no connection is lost in %d states", s.name, found.states)
		}
	}
	if !tried {
		t.Error("the document has no such set-up")
	}
}

// The document shows how VRF-shadowing loses a connection by two changes, as the checker found it.
func TestShadowBreaks(t *testing.T) {
	document := readDocument(t)
	rows := readTable(t, document)
	i := slices.IndexFunc(rows, func(s setup) bool {
		return s.policy == pool.Shadow &&
			s.changes == 2
	})
	if i < 0 {
		t.Fatal("the table has no row for policy shadow with 2 changes")
	}
	var trace strings.Builder
	for i, line := range rows[i].explore().trace {
		fmt.Fprintf(&trace, "%2d. %s\n", i+1, line)
	}
	t.Logf("%s:\n%s", rows[i].name, trace.String())
	if trace.Len() == 0 || !strings.Contains(document, trace.String()) {
		t.Errorf("docs/explanation/pcc.md does not show this trace:\n%s", trace.String())
	}
}

// explore looks at all buckets, until a connection breaks in one.
func (s *setup) explore() finding {
	var all finding
	for bucket := range s.buckets() {
		found := newChecker(*s, bucket).explore()
		all.states += found.states
		if all.trace = found.trace; all.trace != nil {
			break
		}
	}
	return all
}

func readDocument(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/explanation/pcc.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readTable reads the set-ups from the table whose first column is "set-up".
func readTable(t *testing.T, document string) []setup {
	t.Helper()
	var columns []string
	var rows []setup
	for line := range strings.Lines(document) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "set-up":
			columns = cells
		case columns == nil || strings.HasPrefix(cells[0], "---"):
		case len(cells) != len(columns):
			columns = nil // the end of the table
		default:
			rows = append(rows, readRow(t, columns, cells))
		}
	}
	if len(rows) < 20 {
		t.Fatalf("docs/explanation/pcc.md has a table of %d set-ups; there were more", len(rows))
	}
	return rows
}

func readRow(t *testing.T, columns, cells []string) setup {
	t.Helper()
	cell := func(name string) string {
		i := slices.Index(columns, name)
		if i < 0 {
			t.Fatalf("the table has no column %q", name)
		}
		return cells[i]
	}
	number := func(name string, most int) int {
		n, err := strconv.Atoi(cell(name))
		if err != nil || n < 1 || n > most {
			t.Fatalf("%s: %q is not a number from 1 to %d", name, cell(name), most)
		}
		return n
	}
	word := func(name string, known ...string) string {
		if !slices.Contains(known, cell(name)) {
			t.Fatalf("%s: %q is none of %q", name, cell(name), known)
		}
		return cell(name)
	}
	policy, err := pool.ParsePolicy(cell("policy"))
	if err != nil {
		t.Fatal(err)
	}
	method, err := pool.ParseMethod(cell("table"))
	if err != nil {
		t.Fatal(err)
	}
	return setup{
		name: cell("set-up"), policy: policy, method: method,
		candidates: number("candidates", pool.MaxChain), depth: number("chain", pool.MaxChain),
		hosts: number("hosts", hostsMax), away: number("away", hostsMax),
		changes: number("changes", changesMax),
		edges:   number("edges", edgesMax), order: word("order", "any", "shared"),
		restart:  word("restart", "never", "empty", "own", "peer"),
		comeback: word("return", "any", "known", "announced", "held"),
		moves:    word("moves", "any", "settled"), holds: word("holds", "yes", "no") == "yes",
	}
}
