package datapath

import (
	"reflect"
	"strings"
)

// setByName sets fields of *to, a structure made from C, to the integers in those of from that have
// their names. It panics if one is not there, which any test would find.
func setByName(to, from any) {
	out, in := reflect.ValueOf(to).Elem(), reflect.ValueOf(from)
	for i := range in.NumField() {
		name := in.Type().Field(i).Name
		field := out.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
		field.Set(in.Field(i).Convert(field.Type()))
	}
}
