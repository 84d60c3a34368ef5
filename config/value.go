package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"sextant/packet/flow"
	"sextant/packet/syntax"
)

// value is a node of the file together with its path. Its methods read it into
// Go values and file a fault where that fails.
type value struct {
	d    *decoder
	path string
	node ast.Node
}

// fail files a fault at the value and remembers that it could not be read.
func (v value) fail(p *Problem) {
	v.d.broken = append(v.d.broken, v.path)
	v.d.add(p, PlaceOf(first(v.node)))
}

const tooLarge = "the file is too large"

// resolve looks through anchors and aliases. It returns nil when there is nothing to read.
func (v value) resolve() ast.Node {
	if v.d.values++; v.d.values > v.d.most.values {
		if v.d.values == v.d.most.values+1 {
			v.fail(invalid(tooLarge,
				fmt.Sprintf("keep it, aliases written out, under %d values",
					v.d.most.values)))
		}
		return nil
	}
	// An anchor may name an anchor or an alias; a chain that does not end is cut.
	node := v.node
	for range maxNested {
		switch n := node.(type) {
		case *ast.AnchorNode:
			v.d.anchors[n.Name.GetToken().Value] = n.Value
			node = n.Value
		case *ast.AliasNode:
			target, ok := v.d.anchors[n.Value.GetToken().Value]
			if !ok {
				v.fail(invalid(fmt.Sprintf("alias %q has no anchor above it",
					n.Value.GetToken().Value),
					"write the value out"))
				return nil
			}
			node = target
		case *ast.TagNode:
			v.fail(invalid("a YAML tag stands here", "delete "+strconv.Quote(n.Start.Value)))
			return nil
		default:
			return node
		}
	}
	v.fail(invalid("the alias leads to itself", "write the value out"))
	return nil
}

// object reads the keys of a mapping into a struct. Unknown, doubled and missing keys are faults.
func (v value) object(o *object, into reflect.Value) {
	entries, ok := v.entries()
	if !ok {
		return
	}
	seen := map[string]Place{}
	for _, entry := range entries {
		key, at := keyOf(entry), PlaceOf(entry.Key.GetToken())
		if earlier, doubled := seen[key]; doubled {
			v.d.add(invalid(fmt.Sprintf("%q is given twice", key),
				fmt.Sprintf("delete one of the two (the other is on line %d)", earlier.Line)), at)
			continue
		}
		seen[key] = at
		s := o.find(key)
		if s == nil {
			v.d.add(invalid(fmt.Sprintf("unknown key %q", key), suggest(key, o.settings)), at)
			continue
		}
		child := value{v.d, join(v.path, key), entry.Value}
		v.d.places[child.path] = child.place(at)
		child.read(s, s.value(into))
	}
	v.missing(o, into, seen)
	if object, ok := reflect.TypeAssert[settler](into.Addr()); ok {
		v.judge(object.settle(func(path string) bool {
			_, given := v.d.places[join(v.path, path)]
			return given
		}))
	}
}

// judge files problems of an object whose paths begin at the object.
func (v value) judge(problems []*Problem) {
	for _, p := range problems {
		p.Path = join(v.path, p.Path)
		for i, path := range p.about {
			p.about[i] = join(v.path, path)
		}
		v.d.judge(p)
		v.d.broken = append(v.d.broken, p.Path)
	}
}

// read reads the value of a setting.
func (v value) read(s *setting, into reflect.Value) {
	switch {
	case v.d.services != nil && v.path == "edge.services":
		into.Set(reflect.ValueOf(v.d.services))
	case s.list:
		v.each(func(item value) {
			element := reflect.New(s.typ).Elem()
			item.one(s, element)
			into.Set(reflect.Append(into, element))
		})
	case s.pointer:
		into.Set(reflect.New(s.typ))
		v.one(s, into.Elem())
	default:
		v.one(s, into)
	}
}

// one reads a scalar or an object.
func (v value) one(s *setting, into reflect.Value) {
	if s.object != nil {
		s.object.fill(into)
		v.object(s.object, into)
		return
	}
	text, ok := v.scalar(s.codec)
	if !ok {
		return
	}
	if into.Type() == reflect.TypeFor[flow.Secret]() {
		v.d.secret = text // so that it is in no error
	}
	if err := s.codec.set(into, text); err != nil {
		v.fail(problemOf(err))
	}
}

func (v value) scalar(c *codec) (string, bool) {
	if !c.number {
		return v.text()
	}
	n, ok := v.number()
	return strconv.Itoa(n), ok
}

func (v value) missing(o *object, into reflect.Value, seen map[string]Place) {
	for _, s := range o.settings {
		hint := s.hint
		if _, given := seen[s.key]; hint == "" || given {
			continue
		}
		if len(s.words) > 0 {
			hint = strings.Replace(hint, "WORDS", alternatives(s.words), 1)
		}
		path := join(v.path, s.key)
		v.d.broken = append(v.d.broken, path)
		v.d.add(invalid(s.key+" is missing", "add "+hint), v.d.place(path))
	}
}

// place of a value: its own if it is a scalar, else that of its key.
func (v value) place(key Place) Place {
	switch v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.NullNode:
		return key
	}
	return PlaceOf(first(v.node))
}

func (v value) entries() ([]*ast.MappingValueNode, bool) {
	switch n := v.resolve().(type) {
	case nil:
		return nil, false
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	case *ast.NullNode:
		return nil, true
	default:
		v.fail(invalid("keys and values are wanted here, not "+describe(n),
			`write them as "key: value", indented`))
		return nil, false
	}
}

// each calls read with the items of a list. No value at all is an empty list.
func (v value) each(read func(value)) {
	switch n := v.resolve().(type) {
	case nil, *ast.NullNode:
	case *ast.SequenceNode:
		for i, item := range n.Values {
			child := value{v.d, fmt.Sprintf("%s[%d]", v.path, i), item}
			v.d.places[child.path] = PlaceOf(first(item))
			read(child)
		}
	default:
		v.fail(invalid("a list is wanted here, not "+describe(n),
			`begin each item with "- " or put the list in [brackets]`))
	}
}

// text reads a scalar as it is written.
func (v value) text() (string, bool) {
	switch n := v.resolve().(type) {
	case nil:
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	case *ast.NullNode:
		v.fail(invalid(last(v.path)+" has no value", "write one, or delete the key"))
	default:
		v.fail(invalid("text is wanted here, not "+describe(n),
			"write one value, in quotes if it begins with a bracket"))
	}
	return "", false
}

// number reads a whole decimal number.
func (v value) number() (int, bool) {
	node := v.resolve()
	if node == nil {
		return 0, false
	}
	if _, ok := node.(*ast.IntegerNode); ok {
		text := node.GetToken().Value
		n, err := strconv.Atoi(text)
		if err == nil && strconv.Itoa(n) == text {
			return n, true
		}
	}
	if t := node.GetToken(); isUnquoted(t) {
		if _, err := strconv.Atoi(t.Value); errors.Is(err, strconv.ErrRange) {
			v.fail(invalid(fmt.Sprintf("%s %s is out of range", last(v.path), t.Value),
				"write a number of fewer digits"))
			return 0, false
		}
	}
	v.fail(invalid(last(v.path)+" is not a whole number",
		"write it in decimal digits, without quotes"))
	return 0, false
}

// isUnquoted reports whether a scalar is written without quotes.
func isUnquoted(t *token.Token) bool {
	return t != nil && t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType
}

const otherHint = "correct the value"

// problemOf returns the problem that a codec's error is: one of config, or of a package below.
func problemOf(err error) *Problem {
	var p *Problem
	var wrong *syntax.Error
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &wrong):
		return invalid(wrong.Text, wrong.Hint)
	}
	return invalid(err.Error(), otherHint)
}

func keyOf(entry *ast.MappingValueNode) string {
	if complex, ok := entry.Key.(*ast.MappingKeyNode); ok && complex.Value != nil {
		return complex.Value.GetToken().Value
	}
	return entry.Key.GetToken().Value
}

// first returns the token with which a node begins: a mapping's own token is its first colon.
func first(n ast.Node) *token.Token {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return n.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	}
	return n.GetToken()
}

func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "keys and values"
	case *ast.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }
