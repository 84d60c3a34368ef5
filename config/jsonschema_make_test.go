package config

import (
	"reflect"
	"time"
)

// makeSchema describes a type of object. Describe has the comment of a field.
func makeSchema(o *object, describe func(owner reflect.Type, field string) string) *Schema {
	none := false
	s := &Schema{Type: "object", Properties: map[string]*Schema{}, Additional: &none}
	for _, one := range o.settings {
		if one.key == "" {
			continue
		}
		p := one.schema(describe)
		owner, field := owning(o.typ, one.index)
		if p.Description = one.tag.Get("help"); p.Description == "" {
			p.Description = describe(owner, field)
		}
		s.Properties[one.key] = p
		if _, must := required[o.typ][one.key]; must && !one.hasInitial {
			s.Required = append(s.Required, one.key)
		}
	}
	return s
}

// owning is the type that has a field itself, and the field's name.
func owning(t reflect.Type, index []int) (reflect.Type, string) {
	for _, i := range index[:len(index)-1] {
		t = t.Field(i).Type
	}
	return t, t.Field(index[len(index)-1]).Name
}

func (s *setting) schema(describe func(reflect.Type, string) string) *Schema {
	if s.object != nil {
		one := makeSchema(s.object, describe)
		if s.list {
			return &Schema{Type: "array", Items: one}
		}
		return one
	}
	one := s.scalar()
	if s.list {
		return &Schema{Type: "array", Items: one}
	}
	if s.hasInitial {
		initial, err := s.codec.parse(s.initial)
		if one.Default = any(s.initial); err == nil && s.codec.document != nil {
			one.Default = s.codec.document(initial)
		}
	}
	return one
}

// scalar describes one value that is neither list nor object.
func (s *setting) scalar() *Schema {
	kind := s.codec.typ.Kind()
	switch {
	case len(s.words) > 0:
		return &Schema{Type: "string", Enum: s.words}
	case kind == reflect.Bool:
		return &Schema{Type: "boolean"}
	case s.codec.number:
		return s.bounded(&Schema{Type: "integer"}, 1)
	case s.tag.Get("as") == "share":
		return s.bounded(&Schema{Type: "number"}, 1000)
	case s.codec.typ == reflect.TypeFor[PortRange](),
		s.codec.typ == reflect.TypeFor[StatusRange]():
		return &Schema{Type: []string{"integer", "string"}} // one number, or a range
	case s.codec.typ == reflect.TypeFor[time.Duration](), kind == reflect.String,
		kind == reflect.Struct, kind == reflect.Array:
		return &Schema{Type: "string"}
	}
	return &Schema{Type: []string{"integer", "string"}} // a number, or a name for it
}

func (s *setting) bounded(one *Schema, unit float64) *Schema {
	if s.bounds == nil {
		return one
	}
	low, high := float64(s.bounds.low)/unit, float64(s.bounds.high)/unit
	one.Minimum, one.Maximum = &low, &high
	if s.zero && low > 0 {
		one.Minimum, one.Maximum = nil, nil
		return &Schema{AnyOf: []*Schema{{Const: 0}, {Type: one.Type, Minimum: &low,
			Maximum: &high}}}
	}
	return one
}
