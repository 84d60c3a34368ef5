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

// fuzzCall is the name of the function by which a test gives programs their fuzz target.
const fuzzCall = "fuzzes"

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
				"write one that runs it, and give it the program by " + fuzzCall})
		}
	}
	return findings
}

// fuzzTargets reads which programs are given to a function whose name is that of a target.
func fuzzTargets(r *repository) map[string]bool {
	fuzzed := map[string]bool{}
	for _, s := range r.sources {
		if !s.isTest() {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			function, isNamed := call.Fun.(*ast.Ident)
			target, isName := call.Args[0].(*ast.Ident)
			if !isNamed || function.Name != fuzzCall || !isName ||
				!strings.HasPrefix(target.Name, "Fuzz") {
				return true
			}
			for _, arg := range call.Args[1:] {
				if text, isText := arg.(*ast.BasicLit); isText {
					if program, err := strconv.Unquote(text.Value); err == nil {
						fuzzed[program] = true
					}
				}
			}
			return false
		})
	}
	return fuzzed
}
