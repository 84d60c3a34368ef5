package api

import (
	"cmp"
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"sextant/config"
)

// object is one of JSON.
type object map[string]any

const (
	title      = "Sextant agent"
	apiVersion = "1"
)

// Describe describes an API (OpenAPI 3.1) by the table from which it is served.
func Describe(title string, operations []Operation) map[string]any {
	d := describing{schemas: object{}, types: map[string]reflect.Type{},
		settings: config.Settings()}
	paths := object{}
	for _, e := range operations {
		item, ok := paths[e.Path].(object)
		if !ok {
			item = object{}
			paths[e.Path] = item
		}
		item[strings.ToLower(e.Method)] = d.operation(e)
	}
	d.schema(of[Error]())
	return object{
		"openapi":  "3.1.0",
		"info":     object{"title": title, "version": apiVersion},
		"paths":    paths,
		"security": []object{{"bearer": []string{}}},
		"components": object{"schemas": d.schemas, "securitySchemes": object{
			"bearer": object{"type": "http", "scheme": "bearer",
				"description": "not needed on the Unix socket"}}},
	}
}

// describing collects the schemas of the types that are met, by their names.
type describing struct {
	schemas  object
	types    map[string]reflect.Type // of the schemas
	settings []config.Setting
}

var pathParameter = regexp.MustCompile(`\{([a-z]+)\}`)

func (d describing) operation(e Operation) object {
	parameters := []object{}
	for _, match := range pathParameter.FindAllStringSubmatch(e.Path, -1) {
		parameters = append(parameters, object{"name": match[1], "in": "path", "required": true,
			"schema": object{"type": "string"}})
	}
	for _, p := range e.Query {
		parameters = append(parameters, object{"name": p.Name, "in": "query",
			"description": p.What, "schema": p.Kind.schema()})
	}
	content := object{e.mediaType(): object{}}
	if e.Answer != nil {
		content = object{e.mediaType(): object{"schema": d.schema(e.Answer)}}
	}
	fault := object{"application/json": object{"schema": object{"type": "object",
		"properties": object{"error": d.schema(of[Error]())}, "required": []string{"error"}}}}
	o := object{
		"operationId": operationID(e), "summary": e.Summary, "parameters": parameters,
		"x-permission": e.Needs,
		"responses": object{
			"200":     object{"description": "done", "content": content},
			"default": object{"description": "refused", "content": fault},
		},
	}
	if e.Body != nil {
		o["requestBody"] = d.body(e.Body)
	}
	return o
}

func (d describing) body(t reflect.Type) object {
	if t != of[config.Node]() {
		return content("application/json", d.schema(t))
	}
	// A node file has a schema of its own. It is named and not referred to: clients are made where
	// nothing else is reachable.
	return content("application/yaml", object{"type": "object", "title": "node file",
		"externalDocs": object{"url": config.SchemaURI}})
}

func content(media string, schema object) object {
	return object{"required": true, "content": object{media: object{"schema": schema}}}
}

func (e Operation) mediaType() string {
	if e.Media != "" {
		return e.Media
	}
	return "application/json"
}

// operationID is the method and the words of the path: putServicesBackends.
func operationID(e Operation) string {
	id := strings.ToLower(e.Method)
	for word := range strings.FieldsFuncSeq(e.Path, func(r rune) bool {
		return r == '/' || r == '-' || r == '{' || r == '}'
	}) {
		if word != "v1" {
			id += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return id
}

// schema describes a type: a named struct by reference.
func (d describing) schema(t reflect.Type) object {
	switch {
	case t.Kind() == reflect.Pointer:
		return d.schema(t.Elem())
	case t == of[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == of[json.RawMessage](), t.Kind() == reflect.Interface:
		return object{}
	case t.Implements(of[encoding.TextMarshaler]()),
		reflect.PointerTo(t).Implements(of[encoding.TextMarshaler]()):
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return object{"type": "string", "contentEncoding": "base64"}
		}
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.Struct:
		return d.structure(t)
	}
	return object{"type": "integer"}
}

func (d describing) structure(t reflect.Type) object {
	name := typeName(t)
	if name == "" {
		return d.properties(t)
	}
	if other, known := d.types[name]; known && other != t { // of another package
		_, inside, _ := strings.Cut(t.PkgPath(), "/")
		for word := range strings.SplitSeq(inside, "/") {
			name = strings.ToUpper(word[:1]) + word[1:] + name
		}
	}
	if _, known := d.types[name]; !known {
		d.types[name] = t // before its fields: a type may have itself below
		d.schemas[name] = d.properties(t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// typeName is that of a type, and that of what a list has: ListService; "" if it has none.
func typeName(t reflect.Type) string {
	name, parameters, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return name
	}
	parameters = strings.TrimSuffix(parameters, "]")
	return name + parameters[strings.LastIndexByte(parameters, '.')+1:]
}

func (d describing) properties(t reflect.Type) object {
	all, required := object{}, map[string]bool{}
	d.fields(t, all, required)
	o := object{"type": "object", "properties": all}
	if len(required) > 0 {
		o["required"] = slices.Sorted(maps.Keys(required))
	}
	return o
}

// fields adds what encoding/json writes of a struct.
func (d describing) fields(t reflect.Type, all object, required map[string]bool) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-", !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			d.fields(inner, all, required)
		default:
			name = cmp.Or(name, f.Name)
			all[name] = d.oneOf(d.schema(f.Type), f.Tag.Get("setting"))
			if !strings.Contains(options, "omit") {
				required[name] = true
				if f.Type.Kind() == reflect.Pointer {
					all[name] = orNull(all[name].(object))
				}
			}
		}
	}
}

// orNull is a schema with null, which is what is written of a pointer to nothing.
func orNull(schema object) object {
	kind, plain := schema["type"].(string)
	if !plain {
		return object{"anyOf": []object{schema, {"type": "null"}}}
	}
	nullable := maps.Clone(schema)
	nullable["type"] = []string{kind, "null"}
	return nullable
}

// oneOf adds the words that a setting of the node file may have.
func (d describing) oneOf(schema object, path string) object {
	i := slices.IndexFunc(d.settings, func(s config.Setting) bool { return s.Path == path })
	if path == "" || i < 0 || len(d.settings[i].Words) == 0 {
		return schema
	}
	into := schema
	if items, list := schema["items"].(object); list {
		into = items
	}
	if into["type"] == "string" {
		into["enum"] = d.settings[i].Words
	}
	return schema
}
