package lint

import (
	"go/ast"
	"go/constant"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Words that say that something is not done.
var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b` +
	`|(?i:\b(not (yet )?implemented|unimplemented)\b)` +
	`|panic\("(?i:unreachable)`)

func TestNothingIsLeftUnfinished(t *testing.T) { check(t, "stubs", stubs) }

// stubs finds what is announced and not there: words in any file, and tests that are skipped for no
// good reason.
func stubs(r *repository) []finding {
	var findings []finding
	for _, name := range r.files {
		if strings.HasPrefix(name, "test/lint/") || isForeign(name) || isBinary(r.texts[name]) {
			continue
		}
		for i, line := range linesOf(r, name) {
			if word := unfinished.FindString(line); word != "" {
				findings = append(findings, finding{name, i + 1, strconv.Quote(word),
					"finish it, or take it out; what is planned is an issue, not a comment"})
			}
		}
	}
	for _, s := range r.sources {
		findings = append(findings, unreasonedSkips(s)...)
	}
	return findings
}

// isForeign tells texts that others wrote, or their programs.
func isForeign(name string) bool {
	return name == "go.sum" || name == "LICENSE" || path.Dir(name) == "bpf/LICENSES" ||
		strings.HasSuffix(name, ".pb.go")
}

// A machine may lack a feature of the kernel, or a browser, or the tester the privilege; nothing
// else excuses a skip.
var skipReason = regexp.MustCompile(`(?i)\b(kernel|root|privileges?|cap_[a-z_]+|chromium)\b`)

func unreasonedSkips(s source) []finding {
	var findings []finding
	ast.Inspect(s.file, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		selector, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !isTestValue(selector.X) {
			return true
		}
		switch selector.Sel.Name {
		case "Skip", "Skipf", "SkipNow":
			if !skipReason.MatchString(literalText(call)) {
				findings = append(findings, finding{s.name, s.line(call),
					"a test is skipped without a good reason",
					"name in the message the kernel feature, the privilege or the browser that " +
						"is missing; nothing else is a reason"})
			}
		}
		return true
	})
	return findings
}

// isTestValue tells by its customary name what is a *testing.T or its like.
func isTestValue(expr ast.Expr) bool {
	ident, ok := expr.(*ast.Ident)
	return ok && (ident.Name == "t" || ident.Name == "b" || ident.Name == "f" || ident.Name == "tb")
}

// literalText is the text of all string literals in a call's arguments.
func literalText(call *ast.CallExpr) string {
	var text strings.Builder
	for _, arg := range call.Args {
		ast.Inspect(arg, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text.WriteString(constant.StringVal(constant.MakeFromLiteral(literal.Value,
					token.STRING, 0)))
			}
			return true
		})
	}
	return text.String()
}
