package config

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Place is a position in a YAML file, both counted from 1.
type Place struct{ Line, Column int }

// PlaceOf is where a token of the file begins; without one, where the file does.
func PlaceOf(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{1, 1}
	}
	return Place{max(t.Position.Line, 1), max(t.Position.Column, 1)}
}

// fault is a problem with its place, before it becomes an Error.
type fault struct {
	*Problem
	Place
}

// decoder collects what Parse learns about a file besides its values.
type decoder struct {
	name    string
	lines   []string
	places  map[string]Place    // by path, of each value that was met
	broken  []string            // paths of values that could not be read
	anchors map[string]ast.Node // met so far
	secret  string              // text that no excerpt may show
	faults  []fault
	values  int
	most    readBounds
	// of the edge, which were read already; nil: they are in the text
	services []Service
}

func (d *decoder) line(number int) string {
	if number < 1 || number > len(d.lines) {
		return ""
	}
	return d.lines[number-1]
}

func (d *decoder) add(p *Problem, at Place) { d.faults = append(d.faults, fault{p, at}) }

// judge files a problem that Validate found, unless it rests on a value that could not be read.
func (d *decoder) judge(p *Problem) {
	for _, path := range append([]string{p.Path}, p.about...) {
		for _, broken := range d.broken {
			if within(broken, path) || within(path, broken) {
				return
			}
		}
	}
	d.add(p, d.place(p.Path))
}

// within says whether path is at or below the other path.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || other == "" || rest[0] == '.' || rest[0] == '[')
}

// place finds a path in the file, or the nearest one above it that is there.
func (d *decoder) place(path string) Place {
	for path != "" {
		if at, ok := d.places[path]; ok {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	if at, ok := d.places[""]; ok {
		return at
	}
	return Place{1, 1}
}

func (d *decoder) errors() Errors {
	sort.SliceStable(d.faults, func(i, j int) bool {
		a, b := d.faults[i], d.faults[j]
		return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
	})
	var list Errors
	for i, f := range d.faults {
		if i == MaxErrors {
			list = append(list, fmt.Errorf("%s: faults besides these: %d", d.name, len(d.faults)-i))
			break
		}
		list = append(list, &Error{f.Problem, d.name, f.Line, f.Column, d.excerpt(f.Place)})
	}
	return list
}

// likeSecrets are texts that may be secrets or keys: nothing else in a node file is so long in
// hexadecimal digits.
var likeSecrets = regexp.MustCompile(`[0-9A-Fa-f]{32,}`)

// stars take the place of a text.
func stars(text string) string { return strings.Repeat("*", utf8.RuneCountInString(text)) }

func (d *decoder) excerpt(at Place) string {
	line := d.line(at.Line)
	if strings.TrimSpace(line) == "" {
		return ""
	}
	if d.secret != "" {
		line = strings.ReplaceAll(line, d.secret, stars(d.secret))
	}
	// one that was not read as the secret: behind a wrong key, or given twice
	line = likeSecrets.ReplaceAllStringFunc(line, stars)
	return excerpt(line, at.Line, at.Column)
}
