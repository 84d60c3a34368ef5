package lint

import (
	"go/ast"
	"go/types"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

func TestParsersAreFuzzed(t *testing.T) { check(t, "fuzz", fuzzed) }

// parserName is what functions are called that make something of bytes.
var parserName = regexp.MustCompile(`^([Pp]arse|[Dd]ecode|[Rr]ead|[Uu]nmarshal)`)

// notForeign are parsers of bytes that nobody else writes, or that another parser has looked at.
var notForeign = map[string]string{
	"sextant/experiment":                      "what our own programs write in a lab",
	"sextant/cmd/sextant.topologySource.read": "gives the bytes on to package topology/format",
}

// fuzzed finds functions that parse bytes or text from a stream, and that no fuzz target reaches:
// none of those that a test file with a target mentions, and nothing that these use.
func fuzzed(r *repository) []finding {
	g := newUseGraph(r)
	var targets []string
	for _, p := range ownPackages(r) {
		for _, file := range p.Syntax {
			if isTest(r.relative(p.Fset.Position(file.Pos()).Filename)) && hasTarget(file) {
				for _, object := range mentioned(p, file) {
					targets = append(targets, nameOf(object))
				}
			}
		}
	}
	g.walk(targets)
	var findings []finding
	for _, p := range ownPackages(r) {
		for _, file := range p.Syntax {
			name := r.relative(p.Fset.Position(file.Pos()).Filename)
			if p.ForTest != "" || isTest(name) || strings.HasSuffix(p.PkgPath, "test") {
				continue
			}
			for _, parser := range parsersIn(p, file) {
				if object := p.TypesInfo.Defs[parser]; !g.reached[nameOf(object)] &&
					!isOwnText(nameOf(object)) {
					findings = append(findings, finding{name, p.Fset.Position(parser.Pos()).Line,
						parser.Name + " parses bytes, and no fuzz target reaches it",
						"write one, in a test file of its package: make fuzz finds it by its name"})
				}
			}
		}
	}
	return findings
}

func isOwnText(name string) bool {
	for own := range notForeign {
		if rest, ok := strings.CutPrefix(name, own); ok &&
			(rest == "" || rest[0] == '.' || rest[0] == '/') {
			return true
		}
	}
	return false
}

func hasTarget(file *ast.File) bool {
	for _, decl := range file.Decls {
		if function, ok := decl.(*ast.FuncDecl); ok && function.Recv == nil &&
			strings.HasPrefix(function.Name.Name, "Fuzz") {
			return true
		}
	}
	return false
}

// parsersIn lists the functions and methods of a file that are called like parsers and take bytes.
func parsersIn(p *packages.Package, file *ast.File) (names []*ast.Ident) {
	for _, decl := range file.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok || !parserName.MatchString(function.Name.Name) ||
			function.Name.Name == "Read" { // of an io.Reader, which fills them
			continue
		}
		for _, field := range function.Type.Params.List {
			if isBytes(p.TypesInfo.TypeOf(field.Type)) {
				names = append(names, function.Name)
				break
			}
		}
	}
	return names
}

// isBytes reports whether a parameter brings bytes: a slice of them, or a stream.
func isBytes(t types.Type) bool {
	switch t.String() {
	case "[]byte", "io.Reader", "*bufio.Reader", "*bufio.Scanner":
		return true
	}
	return false
}
