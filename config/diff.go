package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Operation is what a Change does.
type Operation string

// The operations.
const (
	Add    Operation = "add"
	Remove Operation = "remove"
	Modify Operation = "modify"
)

// Change is one difference between two nodes. Objects are known by their
// names; their order in the file is no difference.
type Change struct {
	Operation Operation `json:"operation"`
	Object    string    `json:"object"`          // like "service web: backend web3"
	Field     string    `json:"field,omitempty"` // of Modify: the key that differs
	From      string    `json:"from,omitempty"`  // of Modify and Remove: the value before
	To        string    `json:"to,omitempty"`    // of Modify and Add: the value after
}

// String writes the change as a line of "sextant diff":
//
//   - service web: backend web4 (sid fcbb:bb00:4::, weight 1, up)
//     ~ service web: backend web3: weight 1 -> 2
func (c Change) String() string {
	switch c.Operation {
	case Add:
		return "+ " + c.Object + bracketed(c.To)
	case Remove:
		return "- " + c.Object + bracketed(c.From)
	default:
		return fmt.Sprintf("~ %s: %s %s -> %s", c.Object, c.Field, orNone(c.From), orNone(c.To))
	}
}

func bracketed(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// identified is an item of a list that is not known by its first setting.
type identified interface{ identity() string }

// summarized is an object of which a list of changes says more than its title when it comes or
// goes.
type summarized interface{ summary() string }

// Diff lists what turns node a into node b, in the order of the file's schema.
// A changed secret is named, never shown.
func Diff(a, b *Node) []Change { return difference("node", a, b) }

// difference compares two objects of one type, by structure.
func difference[T any](title string, a, b *T) []Change {
	var d differ
	d.object(title, objectOf(reflect.TypeFor[T](), "", ""), reflect.ValueOf(a).Elem(),
		reflect.ValueOf(b).Elem())
	return d.changes
}

type differ struct{ changes []Change }

func (d *differ) modify(object, field, from, to string) {
	d.changes = append(d.changes, Change{Modify, object, field, from, to})
}

// object compares the settings of an object that is on both sides: those of its own first, then the
// items of its lists.
func (d *differ) object(title string, o *object, a, b reflect.Value) {
	for _, own := range []bool{true, false} {
		for _, s := range o.settings {
			if own == (s.tag.Get("item") == "" && s.tag.Get("change") != "role") {
				d.setting(title, s, s.value(a), s.value(b))
			}
		}
	}
}

func (d *differ) setting(title string, s *setting, a, b reflect.Value) {
	name := s.key
	if shown := s.tag.Get("shown"); shown != "" {
		name = shown
	}
	switch {
	case s.secret != "":
		if !equal(a, b) {
			d.modify(title, s.secret, hiddenText, otherHiddenText)
		}
	case s.list && s.tag.Get("item") != "":
		d.items(title, s, a, b)
	case s.pointer && s.tag.Get("change") != "whole":
		d.role(s.titled(title), s, a, b)
	case s.object == nil, s.list, s.tag.Get("change") == "whole":
		if !equal(a, b) {
			from, to := s.shown(a), s.shown(b)
			if s.tag.Get("hidden") != "" {
				from, to = hiddenText, otherHiddenText
			}
			d.modify(title, name, from, to)
		}
	default:
		d.object(s.titled(title), s.object, reflect.Indirect(a), reflect.Indirect(b))
	}
}

const hiddenText, otherHiddenText = "(not shown)", "(another, not shown)"

// titled is the title of an object in a list of changes.
func (s *setting) titled(owner string) string {
	if title := s.tag.Get("title"); title != "" {
		return title
	}
	if owner == "node" {
		return s.key
	}
	return owner + ": " + s.key
}

// shown writes a value for people; "" if there is none.
func (s *setting) shown(v reflect.Value) string {
	if s.codec != nil {
		if s.codec.number && s.omit == "zero" && v.IsZero() {
			return ""
		}
		return s.textOf(v)
	}
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return ""
	}
	if text, ok := reflect.TypeAssert[fmt.Stringer](v); ok {
		return text.String()
	}
	return fmt.Sprint(v.Interface())
}

// role compares an object that comes and goes as one: the items of its lists come and go with it.
func (d *differ) role(title string, s *setting, a, b reflect.Value) {
	switch {
	case a.IsNil() && b.IsNil():
	case !a.IsNil() && !b.IsNil():
		d.object(title, s.object, a.Elem(), b.Elem())
	case s.tag.Get("change") == "role" && a.IsNil():
		d.come(Add, title, s.object, b.Elem())
	case s.tag.Get("change") == "role":
		d.come(Remove, title, s.object, a.Elem())
	case a.IsNil():
		d.one(Add, title, s.shown(b))
	default:
		d.one(Remove, title, s.shown(a))
	}
}

// come lists an object that comes or goes, and the items of its lists.
func (d *differ) come(operation Operation, title string, o *object, v reflect.Value) {
	d.one(operation, title, summaryOf(v))
	for _, s := range o.settings {
		switch {
		case s.list && s.tag.Get("item") != "":
			none := reflect.Zero(s.value(v).Type())
			if operation == Add {
				d.items(title, s, none, s.value(v))
			} else {
				d.items(title, s, s.value(v), none)
			}
		case s.pointer && s.tag.Get("change") == "role" && !s.value(v).IsNil():
			d.come(operation, s.titled(title), s.object, s.value(v).Elem())
		}
	}
}

func (d *differ) one(operation Operation, title, summary string) {
	c := Change{Operation: operation, Object: title, To: summary}
	if operation == Remove {
		c.From, c.To = summary, ""
	}
	d.changes = append(d.changes, c)
}

func summaryOf(v reflect.Value) string {
	if of, ok := reflect.TypeAssert[summarized](v); ok {
		return of.summary()
	}
	return ""
}

// items compares two lists of objects that are known by their identity: first what is gone or in
// both, in a's order, then what is new, in b's.
func (d *differ) items(owner string, s *setting, a, b reflect.Value) {
	if equal(a, b) {
		return // as most lists are, and the longest
	}
	same := sameItems(a, b)
	before, after := s.byIdentity(a, same), s.byIdentity(b, same)
	for i := same.first; i < a.Len()-same.last; i++ {
		item := a.Index(i)
		id := s.identityOf(item, i)
		title := s.itemTitle(owner, id)
		other, both := after[id]
		switch {
		case !both:
			d.item(Remove, title, s, item)
		case s.codec != nil:
		case sameMemory(item, other):
		case s.tag.Get("change") == "whole":
			if !equal(item, other) {
				d.modify(title, "is", s.shown(item), s.shown(other))
			}
		default:
			d.object(title, s.object, item, other)
		}
	}
	for i := same.first; i < b.Len()-same.last; i++ {
		id := s.identityOf(b.Index(i), i)
		if _, both := before[id]; !both {
			d.item(Add, s.itemTitle(owner, id), s, b.Index(i))
		}
	}
}

func (d *differ) item(operation Operation, title string, s *setting, v reflect.Value) {
	switch {
	case s.codec != nil:
		d.one(operation, title, "")
	case s.tag.Get("change") == "whole":
		d.one(operation, title, s.shown(v))
	default:
		d.come(operation, title, s.object, v)
	}
}

// shared is how many items at both ends of two lists are the same.
type shared struct{ first, last int }

// sameItems looks for items in the same memory, of which a change leaves most where they were.
func sameItems(a, b reflect.Value) (s shared) {
	least := min(a.Len(), b.Len())
	for s.first < least && sameMemory(a.Index(s.first), b.Index(s.first)) {
		s.first++
	}
	if a.Len() != b.Len() {
		return s // some are known by their place
	}
	for s.first+s.last < least &&
		sameMemory(a.Index(a.Len()-1-s.last), b.Index(b.Len()-1-s.last)) {
		s.last++
	}
	return s
}

// byIdentity finds the items of a list between those that are the same.
func (s *setting) byIdentity(list reflect.Value, same shared) map[string]reflect.Value {
	index := map[string]reflect.Value{}
	for i := same.first; i < list.Len()-same.last; i++ {
		index[s.identityOf(list.Index(i), i)] = list.Index(i)
	}
	return index
}

func (s *setting) identityOf(item reflect.Value, place int) string {
	if s.tag.Get("by") == "place" {
		return fmt.Sprint(place + 1)
	}
	if s.codec != nil {
		return s.codec.text(item.Interface())
	}
	if named, ok := reflect.TypeAssert[identified](item); ok {
		return named.identity()
	}
	first := s.object.settings[0]
	return first.textOf(first.value(item))
}

func (s *setting) itemTitle(owner, id string) string {
	pattern := s.tag.Get("item")
	if rest, ok := strings.CutPrefix(pattern, "+ "); ok {
		return owner + fmt.Sprintf(rest, id)
	}
	return fmt.Sprintf(pattern, id)
}

// equal compares by structure. A type with a method Equal is asked.
func equal(a, b reflect.Value) bool {
	if codecOf(a.Type(), "") != nil {
		return a.Equal(b)
	}
	if method := a.MethodByName("Equal"); method.IsValid() && method.Type().NumIn() == 1 &&
		method.Type().In(0) == a.Type() {
		return method.Call([]reflect.Value{b})[0].Bool()
	}
	return equalParts(a, b)
}

// equalParts compares what a value is made of.
func equalParts(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		if a.UnsafePointer() == b.UnsafePointer() {
			return true // nodes share what a change left alone
		}
		for i := range a.Len() {
			if !sameMemory(a.Index(i), b.Index(i)) && !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return a.UnsafePointer() == b.UnsafePointer() || equal(a.Elem(), b.Elem())
	case reflect.Struct:
		if codecOf(a.Type(), "") != nil || a.NumField() == 0 {
			break
		}
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() && !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}
