package config

import (
	"reflect"
)

// Setting describes a key of the node file.
type Setting struct {
	Path     string   // like "edge.services[].backends[].weight"
	Default  string   // as the file would have it; "": none, or one that depends on other keys
	Words    []string // that are valid; nil: no fixed set
	Bounded  bool     // Least and Most say what is valid
	Least    int64    // times in nanoseconds, shares in thousandths
	Most     int64
	Type     reflect.Type // of the value in this package
	Number   bool         // written in decimal digits
	Required bool
	Help     string // of a flag that repeats the setting; "": none does
	codec    *codec
}

// Parse reads a value of the setting as a node file has it. The error is a *[Problem].
func (s Setting) Parse(text string) (any, error) {
	value, err := s.codec.parse(text)
	if err != nil {
		return nil, problemOf(err)
	}
	return value, nil
}

// Settings lists all keys, in the order of the file.
func Settings() []Setting {
	return objectOf(reflect.TypeFor[Node](), "", "").describe("")
}

func (o *object) describe(where string) (list []Setting) {
	for _, s := range o.settings {
		if s.key == "" {
			continue
		}
		path := join(where, s.key)
		if s.list {
			path += "[]"
		}
		d := Setting{Path: path, Default: s.initial, Words: s.words, Type: s.typ,
			Number: s.codec != nil && s.codec.number, Required: s.hint != "",
			Help: s.tag.Get("help"), codec: s.codec}
		if usual := s.tag.Get("usual"); usual != "" && d.Default == "" {
			d.Default = usual
		}
		if s.bounds != nil {
			d.Bounded, d.Least, d.Most = true, s.bounds.low, s.bounds.high
		}
		list = append(list, d)
		if s.object != nil {
			list = append(list, s.object.describe(path)...)
		}
	}
	return list
}
