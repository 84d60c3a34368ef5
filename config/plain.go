package config

import (
	"bytes"
	"reflect"
	"strings"

	"sextant/packet/flow"
)

// The library takes 0.1 ms for the lines of a service with ten backends: it makes tokens of them,
// and a tree of these. Most lines are so plain that they can be read from left to right into the
// service. What is not, or is wrong, is left to the library.

// plainLines are the lines of an item that are still to be read.
type plainLines struct {
	text   []byte // behind the line
	indent int    // of the line
	line   []byte // without it; nil: there is none
	values int    // so far, as the decoder counts them
}

// readPlain reads the lines of a service, and counts the values; false: the library is to read
// them.
func readPlain(lines []byte, into *Service) (values int, ok bool) {
	l := plainLines{text: lines}
	if !l.next() || !l.item() {
		return 0, false
	}
	o, v := objectOf(reflect.TypeFor[Service](), "", ""), reflect.ValueOf(into).Elem()
	o.fill(v)
	ok = l.object(o, v) && l.line == nil
	return l.values, ok
}

// next goes to the next line. It is false for one that is not plain.
func (l *plainLines) next() bool {
	for len(l.text) > 0 {
		line, text, _ := bytes.Cut(l.text, []byte{'\n'})
		l.text = text
		l.line = bytes.TrimLeft(line, " ")
		if l.indent = len(line) - len(l.line); len(l.line) > 0 {
			return l.line[0] != '#' && l.line[len(l.line)-1] != ' '
		}
	}
	l.line, l.indent = nil, 0
	return true
}

// item goes behind the dash of one.
func (l *plainLines) item() bool {
	if len(l.line) < 3 || l.line[0] != '-' || l.line[1] != ' ' || l.line[2] == ' ' {
		return false
	}
	l.line, l.indent = l.line[2:], l.indent+2
	return true
}

// isItem reports whether the line is one of a list at an indentation.
func (l *plainLines) isItem(indent int) bool {
	return l.indent == indent && len(l.line) > 1 && l.line[0] == '-' && l.line[1] == ' '
}

// keys are those of an object that were read.
type keys struct {
	of   *object
	seen uint64 // a bit for each setting
}

// find returns the setting of a key that was not there yet; else nil.
func (k *keys) find(key []byte) *setting {
	for i, s := range k.of.settings {
		if s.key == string(key) && len(key) > 0 && i < 64 && k.seen>>i&1 == 0 {
			k.seen |= 1 << i
			return s
		}
	}
	return nil
}

// end does what follows when all keys were read.
func (k *keys) end(into reflect.Value) bool {
	for i, s := range k.of.settings {
		if s.hint != "" && k.seen>>i&1 == 0 {
			return false
		}
	}
	object, ok := reflect.TypeAssert[settler](into.Addr())
	if !ok {
		return true
	}
	known := true
	problems := object.settle(func(path string) bool {
		for i, s := range k.of.settings {
			if s.key == path {
				return k.seen>>i&1 != 0
			}
		}
		known = false
		return false
	})
	return known && len(problems) == 0
}

// object reads the lines of one, which begin at the line's indentation.
func (l *plainLines) object(o *object, into reflect.Value) bool {
	l.values++
	k, indent := keys{of: o}, l.indent
	for l.line != nil && l.indent == indent {
		key, value, found := bytes.Cut(l.line, []byte{':'})
		s := k.find(key)
		if !found || s == nil {
			return false
		}
		if len(value) == 0 {
			if !l.next() || !l.below(s, s.value(into), indent) {
				return false
			}
			continue
		}
		f := plainFlow{text: value, values: l.values}
		if !f.space() || !f.value(s, s.value(into)) || len(f.text) > 0 || !l.next() {
			return false
		}
		l.values = f.values
	}
	return l.indent < indent && k.end(into)
}

// below reads the lines below a key of an indentation.
func (l *plainLines) below(s *setting, into reflect.Value, indent int) bool {
	switch {
	case s.list:
		return l.indent >= indent && l.list(s, into)
	case s.object == nil, l.indent <= indent:
		return false
	case s.pointer:
		into.Set(reflect.New(s.typ))
		into = into.Elem()
	}
	s.object.fill(into)
	return l.object(s.object, into)
}

// list reads the lines of one, which begin at the line's indentation.
func (l *plainLines) list(s *setting, into reflect.Value) bool {
	l.values++
	indent, some := l.indent, false
	for ; l.line != nil && l.isItem(indent); some = true {
		if !l.item() {
			return false
		}
		element := appended(into, s.typ)
		if s.object != nil && l.line[0] != '{' {
			if s.object.fill(element); !l.object(s.object, element) {
				return false
			}
			continue
		}
		f := plainFlow{text: l.line, values: l.values}
		if !f.one(s, element) || len(f.text) > 0 || !l.next() {
			return false
		}
		l.values = f.values
	}
	return some && l.indent <= indent
}

// appended is a new element of a list.
func appended(list reflect.Value, typ reflect.Type) reflect.Value {
	list.Set(reflect.Append(list, reflect.Zero(typ)))
	return list.Index(list.Len() - 1)
}

// plainFlow is what of a line is still to be read.
type plainFlow struct {
	text   []byte
	inside int // of how many brackets
	values int
}

// space goes behind spaces, of which there is one at least.
func (f *plainFlow) space() bool {
	before := len(f.text)
	f.text = bytes.TrimLeft(f.text, " ")
	return len(f.text) < before
}

// take goes behind an octet, if it is the next one.
func (f *plainFlow) take(octet byte) bool {
	if len(f.text) == 0 || f.text[0] != octet {
		return false
	}
	f.text = f.text[1:]
	return true
}

func (f *plainFlow) value(s *setting, into reflect.Value) bool {
	switch {
	case s.list:
		f.values++
		return f.inBrackets('[', ']', func() bool { return f.one(s, appended(into, s.typ)) })
	case s.pointer:
		into.Set(reflect.New(s.typ))
		into = into.Elem()
	}
	return f.one(s, into)
}

// inBrackets reads what is between brackets.
func (f *plainFlow) inBrackets(opens, closes byte, read func() bool) bool {
	if !f.take(opens) {
		return false
	}
	f.inside++
	for {
		f.space()
		if !read() {
			return false
		}
		f.space()
		if f.take(closes) {
			f.inside--
			return true
		}
		if !f.take(',') {
			return false
		}
	}
}

// one reads a scalar or an object.
func (f *plainFlow) one(s *setting, into reflect.Value) bool {
	f.values++
	if s.object == nil {
		return f.scalar(s.codec, into)
	}
	s.object.fill(into)
	k := keys{of: s.object}
	return f.inBrackets('{', '}', func() bool {
		key, value, found := bytes.Cut(f.text, []byte{':'})
		s := k.find(key)
		if !found || s == nil {
			return false
		}
		f.text = value
		return f.space() && f.value(s, s.value(into))
	}) && k.end(into)
}

// scalar reads a text in quotes, or one of letters, digits and few other characters.
func (f *plainFlow) scalar(c *codec, into reflect.Value) bool {
	if c.typ == reflect.TypeFor[flow.Secret]() {
		return false
	}
	if f.take('"') {
		text, rest, found := bytes.Cut(f.text, []byte{'"'})
		f.text = rest
		return found && !c.number && !bytes.ContainsFunc(text, isUnusual) &&
			c.set(into, string(text)) == nil
	}
	end := 0
	for end < len(f.text) && isPlain(f.text[end], f.inside > 0) {
		end++
	}
	text := string(f.text[:end])
	f.text = f.text[end:]
	if end == 0 || strings.IndexByte("-.:_", text[0]) >= 0 || text[end-1] == ':' ||
		strings.EqualFold(text, "null") || c.number && !isDecimal(text) {
		return false
	}
	return c.set(into, text) == nil
}

// isUnusual reports whether a character can't be in quotes.
func isUnusual(r rune) bool { return r < ' ' || r > '~' || r == '\\' }

// isPlain reports whether an octet can be in a text without quotes.
func isPlain(octet byte, inBrackets bool) bool {
	switch {
	case alphanumeric(rune(octet)), octet == '-', octet == '_', octet == '.', octet == '/':
		return true
	}
	return octet == ':' && !inBrackets
}

// isDecimal reports whether a number is written as numbers are.
func isDecimal(text string) bool {
	for _, r := range text {
		if r < '0' || r > '9' {
			return false
		}
	}
	return len(text) < len("1000000000000000000") && (text[0] != '0' || len(text) == 1)
}
