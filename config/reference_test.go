package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const reference = "../docs/node-file.md"

// TestReferenceNamesAllKeys holds the page that describes the file to the schema: each key of a field table is on it.
func TestReferenceNamesAllKeys(t *testing.T) {
	page := readReference(t)
	keys := schemaKeys(t)
	if len(keys) < 50 {
		t.Fatalf("the schema has %d keys; the test does not find them any more", len(keys))
	}
	for key := range keys {
		if !regexp.MustCompile(`(^|[^A-Za-z])` + key + `:`).MatchString(page) {
			t.Errorf("key %q is not on %s", key, reference)
		}
	}
}

// TestReferenceIsValid reads the page's examples as one file.
func TestReferenceIsValid(t *testing.T) {
	var file strings.Builder
	for line := range strings.Lines(readReference(t)) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			file.WriteString(code)
		}
	}
	if _, err := Parse("node-file.md", []byte(file.String())); err != nil {
		t.Error(err)
	}
}

func readReference(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// schemaKeys are the first strings of all field literals of the package.
func schemaKeys(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			if isNamed(literal.Type, "field") {
				addKey(keys, literal)
			}
			if list, ok := literal.Type.(*ast.ArrayType); ok && isNamed(list.Elt, "field") {
				for _, element := range literal.Elts {
					if inner, ok := element.(*ast.CompositeLit); ok && inner.Type == nil {
						addKey(keys, inner)
					}
				}
			}
			return true
		})
	}
	return keys
}

func isNamed(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}

func addKey(keys map[string]bool, literal *ast.CompositeLit) {
	if len(literal.Elts) == 0 {
		return
	}
	if text, ok := literal.Elts[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
		if key, err := strconv.Unquote(text.Value); err == nil {
			keys[key] = true
		}
	}
}
