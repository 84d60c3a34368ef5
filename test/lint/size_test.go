package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// What a reader can hold in mind.
const (
	fileLinesMax     = 600
	functionLinesMax = 100
	tableLinesMax    = 140 // of a function of a test, which may hold its table
	columnsMax       = 100
	shellColumnsMax  = 140
)

// tabWidth is the width of a tab in files of each kind, and tells which files are measured.
var tabWidth = map[string]int{".go": 4, ".sh": 4, ".c": 8, ".h": 8}

func TestSizes(t *testing.T) { check(t, "size", sizes) }

func sizes(r *repository) []finding {
	var findings []finding
	for _, s := range r.sources {
		findings = append(findings, measureLines(s.name, linesOf(r, s.name), tabWidth[".go"],
			s.texts())...)
		findings = append(findings, measureFunctions(s)...)
	}
	for _, name := range r.documents() {
		findings = append(findings, measureProse(r, name)...)
	}
	for _, name := range r.files {
		kind := kindOf(r, name)
		if kind == ".go" || tabWidth[kind] == 0 || inTestdata(name) {
			continue
		}
		lines := linesOf(r, name)
		findings = append(findings, measureLines(name, lines, tabWidth[kind], nil)...)
		findings = append(findings, measureBraces(name, kind, lines)...)
	}
	return findings
}

// kindOf is the extension of a file; a shell script may have none.
func kindOf(r *repository, name string) string {
	if path.Ext(path.Base(name)) == "" && bytes.HasPrefix(r.texts[name], []byte("#!")) {
		return ".sh"
	}
	return path.Ext(name)
}

func linesOf(r *repository, name string) []string {
	return strings.Split(strings.TrimSuffix(string(r.texts[name]), "\n"), "\n")
}

// texts are the lines of raw strings, which are what somebody else reads.
func (s source) texts() map[int]bool {
	lines := map[int]bool{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(text.Value, "`") {
			first := s.line(text)
			for i := range 1 + strings.Count(text.Value, "\n") {
				lines[first+i] = true
			}
		}
		return true
	})
	return lines
}

// unbreakable are a command or a diagram in a comment, and bytes in hexadecimal.
var unbreakable = regexp.MustCompile(`^//\t|[0-9a-f]{32}`)

func measureLines(name string, lines []string, tab int, exempt map[int]bool) []finding {
	var findings []finding
	if len(lines) > fileLinesMax {
		findings = append(findings, finding{name, fileLinesMax + 1,
			fmt.Sprintf("the file has %d lines, more than %d", len(lines), fileLinesMax),
			"a file is about one thing: split it by concern"})
	}
	most := columnsMax
	if tabWidth[path.Ext(name)] == 0 || path.Ext(name) == ".sh" {
		most = shellColumnsMax
	}
	for i, line := range lines {
		// A directive to the go command has to stay on its line.
		if width := columns(line, tab); width > most && !strings.HasPrefix(line, "//go:") &&
			!exempt[i+1] && !unbreakable.MatchString(line) {
			findings = append(findings, finding{name, i + 1,
				fmt.Sprintf("the line has %d columns, more than %d", width, most),
				"break it"})
		}
	}
	return findings
}

var linkTarget = regexp.MustCompile(`\[[^\]]*\]\([^)\s]*\)`)

// measureProse measures the lines of a document but for tables, code, and what can't be broken: a
// link or a span of code that fills its line.
func measureProse(r *repository, name string) []finding {
	var findings []finding
	for _, line := range markdownLines(r, name) {
		width := utf8.RuneCountInString(line.text)
		text := codeSpan.ReplaceAllString(linkTarget.ReplaceAllString(line.text, "x"), "x")
		if width <= columnsMax || line.inBlock || strings.HasPrefix(line.text, "|") ||
			!strings.Contains(strings.TrimSpace(text), " ") {
			continue
		}
		findings = append(findings, finding{name, line.number,
			fmt.Sprintf("the line has %d columns, more than %d", width, columnsMax), "break it"})
	}
	return findings
}

func columns(line string, tab int) int {
	width := 0
	for _, char := range line {
		if char == '\t' {
			width += tab - width%tab
		} else {
			width++
		}
	}
	return width
}

func tooLong(name string, line int, function string, length int) []finding {
	most := functionLinesMax
	if isTest(name) {
		most = tableLinesMax
	}
	if length <= most {
		return nil
	}
	return []finding{{name, line, fmt.Sprintf("%s has %d lines, more than %d", function, length,
		functionLinesMax),
		"one function does one thing: give its steps names of their own; long tables go to the " +
			"package level"}}
}

func measureFunctions(s source) []finding {
	var findings []finding
	for _, decl := range s.file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			first, last := s.fset.Position(f.Pos()).Line, s.fset.Position(f.End()).Line
			findings = append(findings, tooLong(s.name, first, f.Name.Name, last-first+1)...)
		}
	}
	return findings
}

// Where functions begin in C and in shell, in the style of the house: in C the brace is alone on
// its line.
var (
	cFunction     = regexp.MustCompile(`^[A-Za-z_].*?([A-Za-z_][A-Za-z0-9_]*)\(`)
	shellFunction = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_-]*)\(\) *[{(]`)
)

// measureBraces measures functions of C and shell: from the line that names one to the closing
// brace in column 0.
func measureBraces(name, kind string, lines []string) []finding {
	begin := cFunction
	if kind == ".sh" {
		begin = shellFunction
	}
	var findings []finding
	function, first := "", 0
	for i, line := range lines {
		if match := begin.FindStringSubmatch(line); match != nil {
			function, first = match[1], i
		}
		if strings.HasPrefix(line, "}") || strings.HasPrefix(line, ")") {
			if function != "" {
				findings = append(findings, tooLong(name, first+1, function, i-first+1)...)
			}
			function = ""
		}
		if !strings.HasPrefix(line, "\t") && strings.ContainsAny(line[max(0, len(line)-1):], ";}") {
			function = "" // a declaration without a body, or a body on the same line
		}
	}
	return findings
}
