package lint

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sextant/config"
)

const (
	top        = "../.."
	limitsPage = "docs/reference/limits.md"
)

// limitRow is a row of the page: a number, the package or the header that has the constant, and its
// name; or a key of the node file, and minimum or maximum.
var limitRow = regexp.MustCompile("(?m)^\\| (.+) \\| ([0-9,]+)( s)? \\| `([^`]+)` (\\w+) \\|$")

// notLimits are constants of config that bound values, but tell an operator nothing about sizes.
var notLimits = []string{"maxEtcdPrefix", "maxHoldTime", "maxRateKbps", "maxSIDHistory",
	"maxTLVHistory"}

// TestLimitsAreThoseOfTheCode holds the page of limits to the constants that it names.
func TestLimitsAreThoseOfTheCode(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(top, limitsPage))
	if err != nil {
		t.Fatal(err)
	}
	rows := limitRow.FindAllStringSubmatch(string(page), -1)
	if len(rows) < 40 {
		t.Fatalf("%d limits on %s; the test does not find them any more", len(rows), limitsPage)
	}
	for _, row := range rows {
		what, where, name := row[1], row[4], row[5]
		want, err := strconv.ParseInt(strings.ReplaceAll(row[2], ",", ""), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if row[3] != "" {
			want *= int64(time.Second)
		}
		var got int64
		if name == "minimum" || name == "maximum" {
			got, err = bound(where, name)
		} else if strings.HasSuffix(where, ".h") {
			got, err = macro(where, name)
		} else {
			got, err = constantOf(where, name)
		}
		if err != nil || got != want {
			t.Errorf("%s: %s: %s%s on the page, %d in the code (%v)", limitsPage, what, row[2],
				row[3], got, err)
		}
	}
}

// TestAllLimitsAreOnThePage finds the bounds of the node file.
func TestAllLimitsAreOnThePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(top, limitsPage))
	if err != nil {
		t.Fatal(err)
	}
	for name := range constants("config") {
		if regexp.MustCompile(`^[mM]ax[A-Z]`).MatchString(name) && !slices.Contains(notLimits,
			name) &&
			!strings.Contains(string(page), "`config` "+name+" |") {
			t.Errorf("%s lacks config's %s", limitsPage, name)
		}
	}
}

// bound is the least or the most that a key of the node file can be.
func bound(key, which string) (int64, error) {
	for _, s := range config.Settings() {
		if s.Path != key || !s.Bounded {
			continue
		}
		if which == "minimum" {
			return s.Least, nil
		}
		return s.Most, nil
	}
	return 0, fmt.Errorf("no key %s with bounds", key)
}

// macro is the number behind a #define of a header.
func macro(header, name string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(top, header))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`(?m)^#define ` + name + ` (\d+)\b`).FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("%s has no #define %s with a number", header, name)
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// constants are the expressions of a package's constants by name.
func constants(folder string) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	files, _ := filepath.Glob(filepath.Join(top, folder, "*.go")) // the pattern is right
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil || strings.HasSuffix(name, "_test.go") {
			continue // what does not compile is another test's
		}
		for _, declaration := range file.Decls {
			block, ok := declaration.(*ast.GenDecl)
			if !ok || block.Tok != token.CONST {
				continue
			}
			for _, spec := range block.Specs {
				value := spec.(*ast.ValueSpec)
				for i, expression := range value.Values {
					found[value.Names[i].Name] = expression
				}
			}
		}
	}
	return found
}

// constantOf is the number of a package's constant.
func constantOf(folder, name string) (int64, error) {
	expression, ok := constants(folder)[name]
	if !ok {
		return 0, fmt.Errorf("package %s has no constant %s", folder, name)
	}
	value, err := evaluate(folder, expression)
	if err != nil {
		return 0, fmt.Errorf("%s of package %s: %w", name, folder, err)
	}
	number, exact := constant.Int64Val(constant.ToInt(value))
	if !exact {
		return 0, fmt.Errorf("%s of package %s is no whole number", name, folder)
	}
	return number, nil
}

// folderOf is the folder of a package of this repository, whose names differ.
func folderOf(name string) string {
	i := slices.IndexFunc(tree, func(f folder) bool { return path.Base(f.path) == name })
	if i < 0 {
		return name
	}
	return tree[i].path
}

// evaluate computes what a constant is made of: numbers, durations, other constants.
func evaluate(folder string, e ast.Expr) (constant.Value, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), nil
	case *ast.ParenExpr:
		return evaluate(folder, e.X)
	case *ast.Ident:
		number, err := constantOf(folder, e.Name)
		return constant.MakeInt64(number), err
	case *ast.SelectorExpr:
		from := e.X.(*ast.Ident).Name
		if units := map[string]time.Duration{"Second": time.Second, "Minute": time.Minute,
			"Hour": time.Hour}; from == "time" {
			return constant.MakeInt64(int64(units[e.Sel.Name])), nil
		}
		number, err := constantOf(folderOf(from), e.Sel.Name)
		return constant.MakeInt64(number), err
	case *ast.BinaryExpr:
		x, err := evaluate(folder, e.X)
		if err != nil {
			return nil, err
		}
		y, err := evaluate(folder, e.Y)
		if err != nil {
			return nil, err
		}
		if e.Op == token.SHL {
			bits, _ := constant.Uint64Val(y)
			return constant.Shift(x, token.SHL, uint(bits)), nil
		}
		return constant.BinaryOp(x, e.Op, y), nil
	default:
		return nil, fmt.Errorf("an expression of kind %T, which this test does not know", e)
	}
}
