package config

import (
	"reflect"
	"sync"
)

// Clone returns a deep copy.
func (n *Node) Clone() *Node {
	c := *n
	clone(reflect.ValueOf(&c).Elem())
	return &c
}

// clone makes the pointers and slices in a value its own. A type of which codecs know, like an
// address, is never changed in place, and can be shared.
func clone(v reflect.Value) {
	if !isDeep(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				clone(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fresh := reflect.New(v.Type().Elem())
			fresh.Elem().Set(v.Elem())
			clone(fresh.Elem())
			v.Set(fresh)
		}
	case reflect.Slice:
		if v.IsNil() {
			return
		}
		fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(fresh, v)
		v.Set(fresh)
		if isDeep(v.Type().Elem()) {
			for i := range v.Len() {
				clone(v.Index(i))
			}
		}
	}
}

var deepTypes sync.Map // by reflect.Type: whether values share memory when they are copied

func isDeep(t reflect.Type) bool {
	if known, ok := deepTypes.Load(t); ok {
		return known.(bool)
	}
	deep := false
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		deep = true
	case reflect.Struct:
		if codecOf(t, "") == nil {
			for field := range t.Fields() {
				deep = deep || field.IsExported() && isDeep(field.Type)
			}
		}
	}
	deepTypes.Store(t, deep)
	return deep
}
