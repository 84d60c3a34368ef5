package config

import (
	_ "embed"
	"reflect"
	"time"
)

// JSONSchema describes the node file for editors and other programs: JSON Schema 2020-12, made from
// the tags and comments of the settings.
//
//go:embed node.schema.json
var JSONSchema []byte

// SchemaURI names JSONSchema.
const SchemaURI = "https://sextant.example.org/node.schema.json"

// Schema is what one place of a file may have, as JSON Schema writes it.
type Schema struct {
	Schema      string             `json:"$schema,omitempty"`
	ID          string             `json:"$id,omitempty"`
	Title       string             `json:"title,omitempty"`
	Description string             `json:"description,omitempty"`
	Type        any                `json:"type,omitempty"` // a word, or a list of words
	Default     any                `json:"default,omitempty"`
	Enum        []string           `json:"enum,omitempty"`
	AnyOf       []*Schema          `json:"anyOf,omitempty"`
	Const       any                `json:"const,omitempty"`
	Minimum     *float64           `json:"minimum,omitempty"`
	Maximum     *float64           `json:"maximum,omitempty"`
	Items       *Schema            `json:"items,omitempty"`
	Properties  map[string]*Schema `json:"properties,omitempty"`
	Required    []string           `json:"required,omitempty"`
	// Additional is false in objects: no other keys than Properties.
	Additional *bool `json:"additionalProperties,omitempty"`
}

// makeSchema describes a type of object. Describe has the comment of a field.
func makeSchema(o *object, describe func(owner reflect.Type, field string) string) *Schema {
	none := false
	s := &Schema{Type: "object", Properties: map[string]*Schema{}, Additional: &none}
	needed := map[string]string{}
	if h, ok := reflect.New(o.typ).Interface().(hinted); ok {
		needed = h.required()
	}
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
		if _, must := needed[one.key]; must && !one.hasInitial {
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
	case s.codec.typ == reflect.TypeFor[PortRange](), s.codec.typ == reflect.TypeFor[StatusRange]():
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
