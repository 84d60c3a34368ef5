package lint

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestTreeRows, with -update, gives packages that are not in the tree a row in its table, above
// what they import: the first sentence of the package's comment.
func TestTreeRows(t *testing.T) {
	const table = "| `agent` | all |\n| `agent/role` | shared |\n| `config` | files |\n"
	const added = "| `agent/idle` | role idle |\n"
	want := strings.Replace(table, "| `agent/role`", added+"| `agent/role`", 1)
	got := withRow(table, "agent/idle", "role idle", []string{"config", "agent/role", "fmt"})
	if got != want {
		t.Errorf("the table becomes\n%s\nwant\n%s", got, want)
	}
	if got := withRow(table, "leaf", "alone", nil); got != table+"| `leaf` | alone |\n" {
		t.Errorf("with a package that imports none:\n%s", got)
	}
	if *update {
		writeRows(t, open(t, "../..", tree))
	}
}

func writeRows(t *testing.T, r *repository) {
	t.Helper()
	imports, comments := map[string][]string{}, map[string]string{}
	for _, s := range r.sources {
		if s.isTest() || r.place(s.dir()) >= 0 {
			continue
		}
		for _, spec := range s.file.Imports {
			imported := strings.TrimPrefix(strings.Trim(spec.Path.Value, `"`), "sextant/")
			imports[s.dir()] = append(imports[s.dir()], imported)
		}
		if s.file.Doc != nil {
			comments[s.dir()] = s.file.Doc.Text()
		}
	}
	table := string(r.texts[treeFile])
	for _, path := range slices.Sorted(maps.Keys(imports)) {
		sentence, _, _ := strings.Cut(strings.ReplaceAll(comments[path], "\n", " "), ". ")
		_, what, _ := strings.Cut(sentence, " is ")
		table = withRow(table, path, strings.TrimRight(what, ". "), imports[path])
	}
	if err := os.WriteFile(r.root+"/"+treeFile, []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
}

// withRow is a table with a package's row before the first row of what it imports, or behind the
// last row.
func withRow(table, path, what string, imports []string) string {
	lines := strings.SplitAfter(table, "\n")
	at := 0
	for i, line := range lines {
		cells := strings.Split(line, "`")
		if !strings.HasPrefix(line, "| `") || len(cells) < 3 {
			continue
		}
		if at = i + 1; slices.Contains(imports, cells[1]) {
			at = i
			break
		}
	}
	return strings.Join(slices.Insert(lines, at, "| `"+path+"` | "+what+" |\n"), "")
}
