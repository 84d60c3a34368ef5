package lint

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z][A-Za-z0-9]*\b`)

// namedTests wants each test that a page names to be there: a name may
// be the beginning of several, as -run takes it.
func namedTests(r *repository) []finding {
	var all []string
	for _, s := range r.sources {
		if !s.isTest() {
			continue
		}
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				all = append(all, f.Name.Name)
			}
		}
	}
	tests := "\n" + strings.Join(all, "\n") + "\n"
	var findings []finding
	for _, name := range r.files {
		if !strings.HasSuffix(name, ".md") || strings.Contains(name, "testdata/") {
			continue
		}
		for i, line := range strings.Split(string(r.texts[name]), "\n") {
			for _, named := range testName.FindAllString(line, -1) {
				if !strings.Contains(tests, "\n"+named) {
					findings = append(findings, finding{name, i + 1,
						"there is no test " + named, "name one that is there"})
				}
			}
		}
	}
	return findings
}

func TestNamedTests(t *testing.T) { check(t, "named", namedTests) }
