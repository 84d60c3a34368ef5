package lint

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the findings in the fixtures to testdata/*/want.txt")

// A finding is one place that breaks a rule.
type finding struct {
	path string
	line int
	what string
	mend string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s; %s", f.path, f.line, f.what, f.mend)
}

type rule func(*repository) []finding

// check runs a rule over this repository, where it must find nothing, and over testdata/<name>, a
// repository with the given rooms, where it must find what want.txt says.
func check(t *testing.T, name string, apply rule, fixtureRooms ...folder) {
	t.Helper()
	t.Run("repository", func(t *testing.T) {
		for _, f := range sorted(apply(open(t, "../..", tree))) {
			t.Error(f)
		}
	})
	t.Run("fixture", func(t *testing.T) {
		root := filepath.Join("testdata", name)
		var got strings.Builder
		for _, f := range sorted(apply(open(t, root, fixtureRooms))) {
			fmt.Fprintln(&got, f)
		}
		compareWithFile(t, got.String(), filepath.Join(root, "want.txt"))
	})
}

func compareWithFile(t *testing.T, got, path string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(want) == 0 {
		t.Errorf("%s is empty: a fixture shows what its rule finds", path)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("findings differ from %s (-want +got); see -update\n%s", path, diff)
	}
}

func sorted(findings []finding) []finding {
	sort.Slice(findings, func(i, j int) bool {
		a, b := findings[i], findings[j]
		if a.path != b.path {
			return a.path < b.path
		}
		if a.line != b.line {
			return a.line < b.line
		}
		return a.what < b.what
	})
	return findings
}
