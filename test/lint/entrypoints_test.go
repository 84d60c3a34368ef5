package lint

import (
	"go/ast"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestEntryPointsAreFuzzed(t *testing.T) { check(t, "entrypoints", entryPoints) }

// entryPoint is a program of an object: a section of code, and the function in it.
var entryPoint = regexp.MustCompile(`SEC\("(?:xdp|tc|tcx|sockops|classifier|cgroup|sk_)[^"]*"\)` +
	`\s+int\s+(\w+)\(`)

// fuzzTable is the name of the table in which a test gives each program its fuzz target.
const fuzzTable = "fuzzedPrograms"

// entryPoints finds programs of bpf/ that no fuzz target gives frames, or events. Those of
// benchmarks run nowhere else.
func entryPoints(r *repository) []finding {
	fuzzed := fuzzTargets(r)
	var findings []finding
	for _, name := range r.files {
		if path.Dir(name) != "bpf" || path.Ext(name) != ".c" ||
			strings.HasPrefix(path.Base(name), "bench") {
			continue
		}
		text := string(r.texts[name])
		for _, at := range entryPoint.FindAllStringSubmatchIndex(text, -1) {
			program := text[at[2]:at[3]]
			if fuzzed[program] {
				continue
			}
			findings = append(findings, finding{name, 1 + strings.Count(text[:at[2]], "\n"),
				"program " + program + " has no fuzz target",
				"write one that runs it, and give it a row in " + fuzzTable})
		}
	}
	return findings
}

// fuzzTargets reads which programs the table gives a function whose name is that of a target.
func fuzzTargets(r *repository) map[string]bool {
	fuzzed := map[string]bool{}
	for _, s := range r.sources {
		if !s.isTest() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != fuzzTable || len(spec.Values) != 1 {
				return true
			}
			table, ok := spec.Values[0].(*ast.CompositeLit)
			if !ok {
				return true
			}
			for _, element := range table.Elts {
				row := element.(*ast.KeyValueExpr)
				key, isText := row.Key.(*ast.BasicLit)
				target, isName := row.Value.(*ast.Ident)
				if !isText || !isName || !strings.HasPrefix(target.Name, "Fuzz") {
					continue
				}
				if program, err := strconv.Unquote(key.Value); err == nil {
					fuzzed[program] = true
				}
			}
			return false
		})
	}
	return fuzzed
}
