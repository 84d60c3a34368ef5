package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// The library takes 0.2 ms for the lines of a service with ten backends, and a node file may have
// ten thousand services. Here the same lines are written without a tree of them. What is unusual is
// left to the library.

// yamlLines are the lines of an object.
type yamlLines struct {
	text    []byte
	dash    bool // the last thing written is a dash, behind which the first key is
	unusual bool // the library is to write it
}

// object writes the keys of an object at an indentation; false: there are none.
func (w *yamlLines) object(o *object, v reflect.Value, indent int) (some bool) {
	applies := o.applying(v)
	for _, s := range o.settings {
		if s.key == "" || applies != nil && !applies(s.key) {
			continue
		}
		if value := s.value(v); !s.left(value) {
			w.line(indent)
			w.text = append(append(w.text, s.key...), ':')
			w.setting(s, value, indent)
			some = true
		}
	}
	return some
}

// line begins one.
func (w *yamlLines) line(indent int) {
	if w.dash {
		w.dash = false
		return
	}
	w.text = append(w.text, '\n')
	for range indent {
		w.text = append(w.text, ' ')
	}
}

// setting writes what stands behind a key and its colon.
func (w *yamlLines) setting(s *setting, v reflect.Value, indent int) {
	switch {
	case s.list && s.flow, s.list && v.Len() == 0:
		w.flow(s, v)
		return
	case s.list:
		w.items(s, v, indent+len(listIndent))
		return
	case s.pointer:
		v = v.Elem()
	}
	if s.object == nil {
		w.text = append(w.text, ' ')
		w.scalar(s, v, false)
	} else if !w.object(s.object, v, indent+len(listIndent)) {
		w.text = append(w.text, " {}"...)
	}
}

// items writes a list, each item in lines of its own.
func (w *yamlLines) items(s *setting, v reflect.Value, indent int) {
	for i := range v.Len() {
		w.line(indent)
		w.text = append(w.text, "- "...)
		if s.object == nil {
			w.scalar(s, v.Index(i), false)
			continue
		}
		if w.dash = true; !w.object(s.object, v.Index(i), indent+len(listIndent)) {
			w.dash, w.unusual = false, true
		}
	}
}

// flow writes a list on one line.
func (w *yamlLines) flow(s *setting, v reflect.Value) {
	if s.object != nil && v.Len() > 0 {
		w.unusual = true
		return
	}
	w.text = append(w.text, " ["...)
	for i := range v.Len() {
		if i > 0 {
			w.text = append(w.text, ", "...)
		}
		w.scalar(s, v.Index(i), true)
	}
	w.text = append(w.text, ']')
}

func (w *yamlLines) scalar(s *setting, v reflect.Value, inFlow bool) {
	switch written := s.one(v).(type) {
	case string:
		if slices.Contains(s.plain, written) {
			w.text = append(w.text, written...)
		} else {
			w.string(written, inFlow)
		}
	case int:
		w.text = strconv.AppendInt(w.text, int64(written), 10)
	case bool:
		w.text = strconv.AppendBool(w.text, written)
	case float64:
		begin := len(w.text)
		w.text = strconv.AppendFloat(w.text, written, 'g', -1, 64)
		if !strings.ContainsAny(string(w.text[begin:]), ".e") {
			w.text = append(w.text, ".0"...)
		}
	default:
		w.unusual = true
	}
}

// string writes a text in quotes if it needs them.
func (w *yamlLines) string(text string, inFlow bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) ||
		inFlow && strings.Contains(text, ":/") {
		w.unusual = true
		return
	}
	if needsQuotes(text) || inFlow && strings.ContainsAny(text, `]},'":`) {
		w.text = strconv.AppendQuote(w.text, text)
		return
	}
	w.text = append(w.text, text...)
}

// needsQuotes is what the library says of a text. It tries whether that is a time, in five ways,
// which most texts can't be.
func needsQuotes(text string) bool {
	if text != "" && text[len(text)-1] == ':' {
		return true
	}
	return !isName(text) && !isAddress(text) && token.IsNeedQuoted(text)
}

// isName reports whether a text is certainly a text to YAML: it has a digit, and begins with a
// letter, or with a digit and ends with a letter that no number has. So it is no word, number or
// time, and none of its characters has a meaning.
func isName(text string) bool {
	if text == "" || len(text) > maxName {
		return false
	}
	digits := 0
	for i := range len(text) {
		if !isPlain(text[i], true) {
			return false
		}
		if text[i] >= '0' && text[i] <= '9' {
			digits++
		}
	}
	first, last := text[0], text[len(text)-1]
	switch {
	case digits == 0, !alphanumeric(rune(first)):
		return false
	case first <= '9': // such as 1h0m0s; what is too long for a number counts as one
		return last >= 'g' && last <= 'z' && len(text) < len("0x00000000000000")
	}
	return true
}

// isAddress reports whether a text has hexadecimal digits and at least two colons, the first behind
// one to four digits: it is no number, and no time, which has dashes.
func isAddress(text string) bool {
	first, colons := 0, 0
	for i := range len(text) {
		switch octet := text[i]; {
		case octet == ':':
			if colons++; colons == 1 {
				first = i
			}
		case (octet < '0' || octet > '9') && (octet < 'a' || octet > 'f'):
			return false
		}
	}
	return colons > 1 && first >= 1 && first <= 4
}
