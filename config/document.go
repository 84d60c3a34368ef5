package config

import (
	"fmt"
	"reflect"
	"sync"
)

// The canonical text is written from values of types that are made here: a struct with a field per
// key, in the order of the settings, so that the libraries for YAML and JSON write what a struct
// with tags would give.

var documents sync.Map // by *object: its reflect.Type

func (o *object) document() reflect.Type {
	if t, ok := documents.Load(o); ok {
		return t.(reflect.Type)
	}
	var fields []reflect.StructField
	for i, s := range o.settings {
		if s.key == "" {
			continue
		}
		style := ""
		if s.flow {
			style = ",flow"
		}
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprintf("Key%d", i), Type: reflect.TypeFor[any](),
			Tag: reflect.StructTag(fmt.Sprintf(`yaml:"%s%s,omitempty" json:"%s,omitempty"`, s.key,
				style, s.key)),
		})
	}
	t := reflect.StructOf(fields)
	documents.Store(o, t)
	return t
}

// documentOf is what is written of an object.
func (o *object) documentOf(v reflect.Value) any {
	d := reflect.New(o.document())
	applies := o.applying(v)
	field := 0
	for _, s := range o.settings {
		if s.key == "" {
			continue
		}
		if applies == nil || applies(s.key) {
			if written := s.documentOf(s.value(v)); written != nil {
				d.Elem().Field(field).Set(reflect.ValueOf(written))
			}
		}
		field++
	}
	return d.Interface()
}

// documentOf is what is written of a setting; nil if it is left out.
func (s *setting) documentOf(v reflect.Value) any {
	switch {
	case s.left(v):
		return nil
	case s.list:
		items := make([]any, v.Len())
		for i := range items {
			items[i] = s.one(v.Index(i))
		}
		return items
	case s.pointer:
		return s.one(v.Elem())
	}
	return s.one(v)
}

// left reports whether the canonical text leaves the value out.
func (s *setting) left(v reflect.Value) bool {
	switch {
	case s.pointer:
		return v.IsNil()
	case s.omit == "default":
		return s.codec.text(v.Interface()) == s.initial
	case s.list:
		return s.omit == "zero" && v.Len() == 0
	}
	return s.omit == "zero" && v.IsZero()
}

func (s *setting) one(v reflect.Value) any {
	if s.object != nil {
		return s.object.documentOf(v)
	}
	if s.codec.document != nil {
		return s.codec.document(v.Interface())
	}
	return s.codec.text(v.Interface())
}
