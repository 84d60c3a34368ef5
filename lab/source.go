package lab

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"sextant/config"
)

// source knows where in the file each value stands.
type source struct {
	file   string
	lines  []string
	places map[string]config.Place // by path
}

func newSource(file string, data []byte) *source {
	return &source{file: file, lines: strings.Split(string(data), "\n"),
		places: map[string]config.Place{}}
}

// at returns the place of a path, or of the nearest one above it that is in
// the file.
func (s *source) at(path string) config.Place {
	for path != "" {
		if at, ok := s.places[path]; ok {
			return at
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return config.Place{Line: 1, Column: 1}
}

// locate puts a fault at the place of its path. A source of nil, which a Spec
// that was not read from a file has, knows no places.
func (s *source) locate(f *Fault) {
	if s != nil {
		s.put(f, s.at(f.Path))
	}
}

// put puts a fault at a place and shows the line there.
func (s *source) put(f *Fault, at config.Place) {
	f.File, f.Line, f.Column = s.file, at.Line, at.Column
	if at.Line > len(s.lines) || strings.TrimSpace(s.lines[at.Line-1]) == "" {
		return
	}
	line := strings.TrimRight(s.lines[at.Line-1], "\r")
	gutter := fmt.Sprintf("%5d | ", at.Line)
	f.Excerpt = fmt.Sprintf("%s%s\n%s| %s^", gutter, line, strings.Repeat(" ", len(gutter)-2),
		blanks(line, at.Column-1))
}

// blanks is as wide as the first characters of a line; tabs stay tabs.
func blanks(line string, count int) string {
	text := []rune(line)
	text = text[:min(count, len(text))]
	for i, r := range text {
		if r != '\t' {
			text[i] = ' '
		}
	}
	return string(text)
}

// survey notes the place of every value below node and reports the keys that
// t, the type it will be decoded into, does not know. A scalar stands where it
// begins, a mapping or list where its key does.
func (s *source) survey(r *report, path string, node ast.Node, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[yaml.InterfaceUnmarshaler]()) {
		t = reflect.TypeFor[any]() // it judges its shape itself
	}
	switch n := node.(type) {
	case *ast.AnchorNode:
		s.survey(r, path, n.Value, t)
	case *ast.MappingValueNode:
		s.surveyEntry(r, path, n, t)
	case *ast.MappingNode:
		seen := map[string]bool{}
		for _, entry := range n.Values {
			s.surveyEntry(r, path, entry, t)
			key := entry.Key.GetToken().Value
			if seen[key] {
				child := join(path, key)
				s.places[child] = config.PlaceOf(entry.Key.GetToken())
				r.add(child, "delete one of the two", "%q is given twice", key)
			}
			seen[key] = true
		}
	case *ast.SequenceNode:
		for i, item := range n.Values {
			child := fmt.Sprintf("%s[%d]", path, i)
			s.places[child] = config.PlaceOf(first(item))
			s.survey(r, child, item, elementOf(t))
		}
	}
}

func (s *source) surveyEntry(r *report, path string, entry *ast.MappingValueNode, t reflect.Type) {
	key := entry.Key.GetToken().Value
	child := join(path, key)
	s.places[child] = config.PlaceOf(entry.Key.GetToken())
	if scalar(entry.Value) {
		s.places[child] = config.PlaceOf(entry.Value.GetToken())
	}
	below := elementOf(t)
	if t.Kind() == reflect.Struct {
		field, known := fieldOf(t, key)
		if !known {
			s.unknown(r, child, key, entry, t)
			return
		}
		below = field
	}
	s.survey(r, child, entry.Value, below)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (s *source) unknown(r *report, path, key string, entry *ast.MappingValueNode, t reflect.Type) {
	s.places[path] = config.PlaceOf(entry.Key.GetToken())
	r.add(path, "known here: "+strings.Join(keysOf(t), ", "), "unknown key %q", key)
}

func scalar(node ast.Node) bool {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.NullNode, *ast.AnchorNode:
		return false
	}
	return true
}

// first is the token with which a value begins: of a mapping that of its first
// key, because the library gives it the colon's.
func first(node ast.Node) *token.Token {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return node.GetToken()
}

// elementOf is the type of the values of a map or list, and of nothing known
// otherwise.
func elementOf(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Map, reflect.Slice:
		return t.Elem()
	}
	return reflect.TypeFor[any]()
}

func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for field := range t.Fields() {
		if field.Tag.Get("yaml") == key {
			return field.Type, true
		}
	}
	return nil, false
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for field := range t.Fields() {
		keys = append(keys, field.Tag.Get("yaml"))
	}
	slices.Sort(keys)
	return keys
}
