package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// comments are those of this package's types, by "Type", and of their fields, by "Type.Field".
func comments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GenDecl); ok && g.Tok == token.TYPE && len(g.Specs) == 1 {
				name := g.Specs[0].(*ast.TypeSpec).Name.Name
				texts[name] = ofType(name, g.Doc.Text())
			}
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
					for _, name := range f.Names {
						texts[spec.Name.Name+"."+name.Name] = text
					}
				}
			}
			return true
		})
	}
	return texts
}

// ofType is what the first sentence of a type's comment says of a value.
func ofType(name, comment string) string {
	comment = strings.Join(strings.Fields(comment), " ")
	for _, verb := range []string{" is ", " are ", " says "} {
		if text, is := strings.CutPrefix(comment, name+verb); is {
			text, _, _ = strings.Cut(text, ". ")
			return strings.TrimSuffix(text, ".")
		}
	}
	return ""
}

// commentOf is the comment of a field, or of the type of its value, and "" if there is none.
func commentOf(texts map[string]string, owner reflect.Type, field string) string {
	text := texts[owner.Name()+"."+field]
	if without, is := strings.CutPrefix(text, "nil: "); is {
		return "left out: " + without
	}
	if f, ok := owner.FieldByName(field); ok && text == "" {
		value := f.Type
		for value.Kind() == reflect.Pointer || value.Kind() == reflect.Slice {
			value = value.Elem()
		}
		return texts[value.Name()]
	}
	return text
}

// The schema that is shipped is that of the settings, and says of each key what it is for.
func TestJSONSchema(t *testing.T) {
	texts := comments(t)
	s := makeSchema(objectOf(reflect.TypeFor[Node](), "", ""),
		func(owner reflect.Type, field string) string {
			text := commentOf(texts, owner, field)
			if text == "" {
				t.Errorf("%s.%s has no comment", owner.Name(), field)
			}
			return text
		})
	s.Schema, s.ID = "https://json-schema.org/draft/2020-12/schema", SchemaURI
	s.Title = "node file of a Sextant agent"
	want, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile("node.schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		JSONSchema = want // for the tests that follow
	} else if !bytes.Equal(JSONSchema, want) {
		t.Error("node.schema.json is not that of the settings; write it: " +
			"go test ./config -run TestJSONSchema -args -update")
	}
}

// fits is JSON Schema's judgement, as far as Schema has it: what is wrong, by place.
func (s *Schema) fits(where string, value any) (wrong []string) {
	fault := func(text string, args ...any) {
		wrong = append(wrong, where+": "+fmt.Sprintf(text, args...))
	}
	if len(s.AnyOf) > 0 {
		if !slices.ContainsFunc(s.AnyOf,
			func(one *Schema) bool { return len(one.fits(where, value)) == 0 }) {
			fault("%v is none of several", value)
		}
		return wrong
	}
	if s.Const != nil && fmt.Sprint(s.Const) != fmt.Sprint(value) {
		fault("%v is not %v", value, s.Const)
	}
	types := strings.Fields(strings.Trim(fmt.Sprint(s.Type), "[]"))
	kind := typeOf(value)
	if s.Type != nil && !slices.Contains(types, kind) &&
		(kind != "integer" || !slices.Contains(types, "number")) {
		fault("%v is no %v", value, s.Type)
		return wrong
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, fmt.Sprint(value)) {
		fault("%v is none of %v", value, s.Enum)
	}
	if n, ok := value.(float64); ok && (s.Minimum != nil && n < *s.Minimum ||
		s.Maximum != nil && n > *s.Maximum) {
		fault("%v is out of range", n)
	}
	if list, ok := value.([]any); ok {
		for i, one := range list {
			wrong = append(wrong, s.Items.fits(fmt.Sprintf("%s[%d]", where, i), one)...)
		}
	}
	if o, ok := value.(map[string]any); ok {
		for _, key := range s.Required {
			if o[key] == nil {
				fault("%s is missing", key)
			}
		}
		for key, one := range o {
			if p := s.Properties[key]; p != nil {
				wrong = append(wrong, p.fits(where+"."+key, one)...)
			} else {
				fault("unknown key %s", key)
			}
		}
	}
	return wrong
}

func typeOf(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case bool:
		return "boolean"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case string:
		return "string"
	}
	return "null"
}

func judgeBySchema(t *testing.T, text string) []string {
	t.Helper()
	var s Schema
	if err := json.Unmarshal(JSONSchema, &s); err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(asJSON, &value); err != nil {
		t.Fatal(err)
	}
	return s.fits("node", value)
}

// The schema permits the reference's examples, and finds what the reader of files finds in places
// that it knows.
func TestJSONSchemaJudges(t *testing.T) {
	var file strings.Builder
	for _, block := range strings.Split(readReference(t), "\n```yaml\n")[1:] {
		code, _, _ := strings.Cut(block, "\n```\n")
		file.WriteString(code + "\n")
	}
	good := file.String()
	if wrong := judgeBySchema(t, good); len(wrong) > 0 {
		t.Errorf("the reference's example is refused:\n%s", strings.Join(wrong, "\n"))
	}
	for _, change := range [][3]string{
		{"hopLimit: 64", "hopLimit: 0", "out of range"},
		{"hopLimit: 64", "hopLimti: 64", "unknown key hopLimti"},
		{"encapsulation: srh ", "encapsulation: sr6 ", "none of"},
		{"node: edge1", "# node", "node is missing"},
		{"hopLimit: 64", "hopLimit: [64]", "is no integer"},
	} {
		if !strings.Contains(good, change[0]) {
			t.Fatalf("the reference has no %q any more", change[0])
		}
		wrong := judgeBySchema(t, strings.Replace(good, change[0], change[1], 1))
		if !strings.Contains(strings.Join(wrong, "\n"), change[2]) {
			t.Errorf("%s: %q", change[1], wrong)
		}
	}
}

// Every setting has a place in the schema, and most say what they are for.
func TestJSONSchemaIsWhole(t *testing.T) {
	var s Schema
	if err := json.Unmarshal(JSONSchema, &s); err != nil {
		t.Fatal(err)
	}
	for _, one := range Settings() {
		at := &s
		for key := range strings.SplitSeq(one.Path, ".") {
			if at = at.Properties[strings.TrimSuffix(key, "[]")]; at == nil {
				t.Fatalf("the schema has no %s", one.Path)
			}
			if at.Items != nil && at.Items.Properties != nil {
				at = at.Items
			}
		}
	}
}
