package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml/token"
)

// A setting is one key of the node file: a field with the tag key. The other tags of such a field:
//
//	as:"sid"            which of the codecs of its type reads and writes it
//	default:"64"        its value where the file does not have the key, as the file would have it
//	range:"1 255"       the least and the most value, of numbers and times
//	zero:"for none"     0 is valid beside the range, and what it means
//	words:"tlv sid"     the words that are valid, of a text without a type of its own
//	what:"family"       what a fault calls the value; the key by default
//	omit:"zero"         the canonical text leaves it out while it is zero; omit:"default": while it is the default
//	style:"flow"        a list on one line
//	present:"always"    an object that is there without its key, too
//	without:"side"      keys of the object's type that are not valid here
//	preset:"startup down"  another default of a key of the object
//	title:"edge hmac"   the object in a list of changes; by default its owner's title and its key
//	item:"service %s"   an item of the list there, %s being its identity; a leading "+ " puts the owner's title before it
//	by:"place"          items of the list are known by their places
//	change:"whole"      an object that changes as one value
//	help:"a share"        what the help of a flag says that repeats the setting
//	usual:"50"            the default that the help says, where it depends on other settings
//	role:"programs"     a role, by what carries it out: programs or the agent
//	packets:"explained" what the role's programs do to a packet can be explained
//	is:"place"          the name of a network interface at which the role works
//	change:"role"       an object that is added and removed with its items, not as one value
//
// A field with the tag secret:"NAME" has no key: another key names the file that holds it.
type setting struct {
	key     string
	index   []int
	typ     reflect.Type // of the value, behind pointer and list
	list    bool
	pointer bool
	codec   *codec // of a scalar
	object  *object
	secret  string

	initial    string
	hasInitial bool
	bounds     *bounds
	zero       bool // 0 is valid beside the bounds
	words      []string
	plain      []string // of the words, those that YAML needs no quotes for
	tag        reflect.StructTag
	// of the tag: asked for each value that is written
	omit string
	flow bool
	hint string // what an error says to add where the key has to be there; "": it need not be
}

// bounds are the least and the most value of a setting, as integers and as a fault writes them.
type bounds struct {
	low, high int64
	text      string
}

// object is a type whose fields are settings, in the order of the file.
type object struct {
	typ       reflect.Type
	settings  []*setting
	selective bool // see the interface of that name
}

// settler is an object in which values depend on others or on what the file says. Parse calls
// settle when the object was read; the problems are at paths below it. given reports whether the
// file has a key, or a path below the object.
type settler interface {
	settle(given func(path string) bool) []*Problem
}

// selective is an object in which some keys have a meaning only beside values of others.
type selective interface{ applies(key string) bool }

type objectKey struct {
	typ             reflect.Type
	without, preset string
}

var objects sync.Map // by objectKey

func objectOf(t reflect.Type, without, preset string) *object {
	key := objectKey{t, without, preset}
	if o, ok := objects.Load(key); ok {
		return o.(*object)
	}
	o := &object{typ: t, selective: t.Implements(reflect.TypeFor[selective]())}
	o.collect(t, nil, strings.Fields(without))
	if name, value, ok := strings.Cut(preset, " "); ok {
		o.find(name).initial, o.find(name).hasInitial = value, true
	}
	objects.Store(key, o)
	return o
}

// collect adds the settings of a struct, and those of structs embedded in it.
func (o *object) collect(t reflect.Type, index []int, without []string) {
	hints := required[o.typ]
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(append([]int(nil), index...), i)
		if f.Anonymous {
			o.collect(f.Type, at, without)
			continue
		}
		key, secret := f.Tag.Get("key"), f.Tag.Get("secret")
		if key == "" && secret == "" || slices.Contains(without, key) {
			continue
		}
		s := newSetting(key, secret, at, f)
		s.hint = hints[key]
		o.settings = append(o.settings, s)
	}
}

func newSetting(key, secret string, index []int, f reflect.StructField) *setting {
	s := &setting{key: key, secret: secret, index: index, typ: f.Type, tag: f.Tag,
		omit: f.Tag.Get("omit"), flow: f.Tag.Get("style") == "flow"}
	if secret != "" {
		return s
	}
	s.initial, s.hasInitial = f.Tag.Lookup("default")
	if s.codec = codecOf(f.Type, f.Tag.Get("as")); s.codec == nil {
		switch f.Type.Kind() {
		case reflect.Slice:
			s.list, s.typ = true, f.Type.Elem()
		case reflect.Pointer:
			s.pointer, s.typ = true, f.Type.Elem()
		}
		if s.codec = codecOf(s.typ, f.Tag.Get("as")); s.codec == nil {
			s.object = objectOf(s.typ, f.Tag.Get("without"), f.Tag.Get("preset"))
		}
	}
	if s.codec != nil {
		s.words = s.codec.words
		if words := f.Tag.Get("words"); words != "" {
			s.words = strings.Fields(words)
		}
		s.plain = slices.DeleteFunc(slices.Clone(s.words), token.IsNeedQuoted)
		s.bounds = parseBounds(f.Tag.Get("range"), s.codec)
		_, s.zero = f.Tag.Lookup("zero")
	}
	return s
}

// parseBounds reads a range tag. A codec can have bounds of its own. It panics if the tag is wrong,
// which any test would find.
func parseBounds(tag string, c *codec) *bounds {
	low, high, ok := strings.Cut(tag, " ")
	if !ok {
		return c.bounds
	}
	if c.typ == reflect.TypeFor[time.Duration]() {
		from, errFrom := time.ParseDuration(low)
		to, errTo := time.ParseDuration(high)
		if errFrom != nil || errTo != nil {
			panic("range of times " + tag)
		}
		return &bounds{int64(from), int64(to), fmt.Sprintf("%v to %v", from, to)}
	}
	from, errFrom := c.parse(low)
	to, errTo := c.parse(high)
	if errFrom != nil || errTo != nil {
		panic("range " + tag)
	}
	return &bounds{reflect.ValueOf(from).Int(), reflect.ValueOf(to).Int(), low + " to " + high}
}

func (o *object) find(key string) *setting {
	for _, s := range o.settings {
		if s.key == key {
			return s
		}
	}
	return nil
}

// value is the field of an object's value.
func (s *setting) value(of reflect.Value) reflect.Value { return of.FieldByIndex(s.index) }

// what a fault calls the value.
func (s *setting) what() string {
	if what := s.tag.Get("what"); what != "" {
		return what
	}
	return s.key
}

// fresh makes a value with the defaults of all settings of its type.
func fresh[T any]() T {
	var value T
	objectOf(reflect.TypeFor[T](), "", "").fill(reflect.ValueOf(&value).Elem())
	return value
}

// fill sets the defaults. It panics if a default tag is wrong, which any test would find.
func (o *object) fill(v reflect.Value) {
	for _, s := range o.settings {
		switch {
		case s.hasInitial:
			if err := s.codec.set(s.value(v), s.initial); err != nil {
				panic(fmt.Sprintf("default of %s.%s: %v", o.typ, s.key, err))
			}
		case s.object != nil && s.tag.Get("present") == "always":
			s.object.fill(s.value(v))
		}
	}
}
