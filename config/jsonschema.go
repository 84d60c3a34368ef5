package config

import _ "embed"

// JSONSchema describes the node file for editors and other programs: JSON Schema 2020-12, made from
// the tags and comments of the settings by TestJSONSchema.
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
