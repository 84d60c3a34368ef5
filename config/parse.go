package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds on foreign bytes: the YAML parser is recursive, and aliases multiply.
const (
	maxBytes  = 16 << 20
	maxValues = 2 << 20 // values read, those behind aliases each time
	maxNested = 32      // lists and mappings inside one another on one line
	maxIndent = 256     // columns, and so the depth of block style
	maxKeys   = 1000    // of one mapping: the parser moves all of them for each one more
)

// Parse reads a node file. The name is used in errors only. The error is of
// type Errors and lists all faults that were found.
func Parse(name string, data []byte) (*Node, error) {
	n, p, err := parseNode(name, data, readBounds{maxBytes, maxValues}, lastParts.Load())
	if p != nil {
		keepParts(n, *p)
	}
	return n, err
}

// ParseWithin is Parse of a file with at most so many values, those behind aliases each time: a few
// bytes can stand for any number of them.
func ParseWithin(name string, data []byte, values int) (*Node, error) {
	n, _, err := parseNode(name, data, readBounds{maxBytes, values}, nil)
	return n, err
}

// ParseOwn is Parse for a text that [Marshal] wrote of a node that was accepted: with all defaults
// written out it can exceed the bounds of foreign files several times.
func ParseOwn(name string, data []byte) (*Node, error) {
	n, _, err := parseNode(name, data, readBounds{math.MaxInt, math.MaxInt}, lastParts.Load())
	return n, err
}

// byteOrderMark begins files of some editors (RFC 3629, section 6).
const byteOrderMark = "\xef\xbb\xbf"

// readBounds are how much is read.
type readBounds struct{ bytes, values int }

// parseNode reads a file in parts, which it returns, or else whole.
func parseNode(
	name string, data []byte, most readBounds, before *readParts,
) (*Node, *parts, error) {
	data = bytes.TrimPrefix(data, []byte(byteOrderMark))
	if n, p := parseInParts(name, data, most, before); n != nil {
		return n, &p, nil
	}
	n, err := parseWhole(name, data, most)
	return n, nil, err
}

func parseWhole(name string, data []byte, most readBounds) (*Node, error) {
	d := newDecoder(name, data, most)
	n := d.node(data)
	if d.values > most.values { // the rest was not read, and can't be judged
		d.faults = slices.DeleteFunc(d.faults, func(f fault) bool { return f.Text != tooLarge })
		n = nil
	}
	if n == nil {
		return nil, d.errors()
	}
	for _, p := range Validate(n) {
		d.judge(p)
	}
	if len(d.faults) > 0 {
		return nil, d.errors()
	}
	return n, nil
}

func newDecoder(name string, data []byte, most readBounds) *decoder {
	return &decoder{
		name:    name,
		most:    most,
		lines:   strings.Split(string(data), "\n"),
		places:  map[string]Place{},
		anchors: map[string]ast.Node{},
	}
}

// node reads the values of a file; nil: it has none. They are not judged together yet.
func (d *decoder) node(data []byte) *Node {
	root := d.root(data)
	if root == nil {
		return nil
	}
	fields, n := objectOf(reflect.TypeFor[Node](), "", ""), fresh[Node]()
	d.places[""] = PlaceOf(first(root))
	value{d: d, node: root}.object(fields, reflect.ValueOf(&n).Elem())
	return &n
}

// root returns the file's only document, or nil if it has faults.
func (d *decoder) root(data []byte) ast.Node {
	if p, at := unreadable(data, d.most.bytes); p != nil {
		d.add(p, at)
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if t := tooDeep(tokens); t != nil {
		d.add(invalid("lists and mappings are nested too deeply", "a node file needs 8 levels"),
			PlaceOf(t))
		return nil
	}
	if t := tooManyKeys(tokens); t != nil {
		d.add(invalid(fmt.Sprintf("a mapping has more than %d keys", maxKeys),
			"a node file needs a few dozen; begin the items of a list with dashes"), PlaceOf(t))
		return nil
	}
	file, err := parse(tokens)
	if err != nil {
		d.syntax(err)
		return nil
	}
	return d.document(file)
}

// document picks the one document that has content.
func (d *decoder) document(file *ast.File) ast.Node {
	var root ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType ||
			doc.Body.Type() == ast.CommentType {
			continue
		}
		if root != nil {
			d.add(invalid("a second document starts here", "write one document per file"),
				PlaceOf(first(doc.Body)))
			return nil
		}
		root = doc.Body
	}
	if root == nil {
		d.add(invalid("the file is empty", `describe the node, beginning with "node: NAME"`),
			Place{1, 1})
	}
	return root
}

// parse runs the library's parser. It is known to panic on some malformed
// inputs, which is a syntax error like another.
func parse(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the text is not YAML (%v)", r)
		}
	}()
	// Duplicate keys are allowed here because the reader reports them together with all other
	// faults.
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

func (d *decoder) syntax(err error) {
	p, at := invalid("the text is not YAML", "check indentation, brackets and quotes"), Place{1, 1}
	if located, ok := errors.AsType[yaml.Error](err); ok {
		p.Text, at = "not YAML: "+located.GetMessage(), PlaceOf(located.GetToken())
	}
	if text := d.line(at.Line); strings.HasSuffix(strings.TrimSpace(text), "::") {
		p.Mend = "put an address that ends with a colon in quotes"
	}
	d.add(p, at)
}

// unreadable finds what no YAML file may be.
func unreadable(data []byte, most int) (*Problem, Place) {
	if len(data) > most {
		return invalid(fmt.Sprintf("the file has %d bytes", len(data)),
			fmt.Sprintf("a node file has at most %d", most)), Place{1, 1}
	}
	if utf8.Valid(data) {
		return nil, Place{}
	}
	at := Place{1, 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		at.Column++
		if r == '\n' {
			at = Place{at.Line + 1, 1}
		}
		data = data[size:]
	}
	return invalid("the text is not UTF-8", "save the file as UTF-8"), at
}

// tooDeep returns the token at which the text nests deeper than the bounds.
func tooDeep(tokens token.Tokens) *token.Token {
	flow, openers, line := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, openers = t.Position.Line, 0
			if flow == 0 && t.Position.Column > maxIndent {
				return t
			}
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow = max(flow-1, 0)
		case token.SequenceEntryType, token.MappingKeyType, token.TagType, token.AnchorType:
			openers++
		case token.CollectEntryType:
			openers = 0
		}
		if flow+openers > maxNested {
			return t
		}
	}
	return nil
}

// tooManyKeys returns the token at which a mapping has more keys than the bound.
func tooManyKeys(tokens token.Tokens) *token.Token {
	var inFlow []int               // keys of the mappings and lists in brackets that are open
	var inBlock [maxIndent + 2]int // keys so far, by their columns
	deepest := 0
	closeBehind := func(column int) { // what is indented further has ended
		for ; deepest > column; deepest-- {
			inBlock[deepest] = 0
		}
	}
	for i, t := range tokens {
		column := min(max(t.Position.Column, 0), maxIndent+1)
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			inFlow = append(inFlow, 0)
		case token.MappingEndType, token.SequenceEndType:
			inFlow = inFlow[:max(len(inFlow)-1, 0)]
		case token.SequenceEntryType:
			if len(inFlow) == 0 {
				closeBehind(column)
			}
		case token.MappingValueType:
			count := &inBlock[0]
			if len(inFlow) > 0 {
				count = &inFlow[len(inFlow)-1]
			} else if i > 0 {
				column = min(max(tokens[i-1].Position.Column, 0), maxIndent+1)
				closeBehind(column)
				deepest, count = max(deepest, column), &inBlock[column]
			}
			if *count++; *count > maxKeys {
				return t
			}
		}
	}
	return nil
}
