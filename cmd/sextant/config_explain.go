package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sextant/config"
)

func (a *app) configSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the node file",
		Long: `Print the JSON Schema of the node file, for editors and other programs. The package has it as
/usr/share/sextant/node.schema.json. An editor with a YAML language server checks and completes a file that begins with
  # yaml-language-server: $schema=/usr/share/sextant/node.schema.json`,
		Example:     "  sextant config schema",
		Annotations: seeAlso("sextant config explain", "sextant check"),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.stdout.Write(config.JSONSchema)
			return err
		},
	}
}

// explained is a key of the node file.
type explained struct {
	Key         string   `json:"key"`
	Type        string   `json:"type"`
	Description string   `json:"description,omitempty"`
	Default     any      `json:"default,omitempty"`
	Values      []string `json:"values,omitempty"`
	Minimum     *float64 `json:"minimum,omitempty"`
	Maximum     *float64 `json:"maximum,omitempty"`
	OrZero      bool     `json:"orZero,omitempty"` // 0 is valid, too
	Required    bool     `json:"required"`
}

func (a *app) configExplain() *cobra.Command {
	return &cobra.Command{
		Use: "explain [KEY]", Short: "Describe a key of the node file",
		Long: `Describe a key of the node file: its purpose, its range and its default, and list the keys below
it. A key is written with those above it: edge.services.check.`,
		Example:           "  sextant config explain edge.services.maxBackends",
		Annotations:       seeAlso("sextant config schema", "sextant check"),
		Args:              takes("[KEY]"),
		ValidArgsFunction: completeKeys,
		RunE: func(_ *cobra.Command, args []string) error {
			root, err := nodeSchema()
			if err != nil {
				return err
			}
			key := strings.Join(args, "")
			at, required, err := schemaAt(root, key)
			if err != nil {
				return err
			}
			return a.show(explainView(key, at, required))
		},
	}
}

func nodeSchema() (*config.Schema, error) {
	var root config.Schema
	err := json.Unmarshal(config.JSONSchema, &root)
	return &root, err
}

// schemaAt finds a key below an object; items of lists have no name of their own.
func schemaAt(s *config.Schema, key string) (at *config.Schema, required bool, err error) {
	if key == "" {
		return s, true, nil
	}
	path := ""
	for name := range strings.SplitSeq(key, ".") {
		object := objectIn(s)
		next := object.Properties[strings.TrimSuffix(name, "[]")]
		if next == nil {
			known := slices.Sorted(maps.Keys(object.Properties))
			return nil, false, notFoundf("%s has no key %q; known: %s",
				cmp.Or(path, "the node file"), name, strings.Join(known, ", "))
		}
		required = slices.Contains(object.Required, name)
		s, path = next, strings.TrimPrefix(path+"."+name, ".")
	}
	return s, required, nil
}

// objectIn is the object that a schema describes, or the one in a list.
func objectIn(s *config.Schema) *config.Schema {
	if s.Items != nil {
		return s.Items
	}
	return s
}

func explainOne(key string, s *config.Schema, required bool) explained {
	one := objectIn(s)
	e := explained{Key: key, Type: typeText(one), Description: s.Description, Default: s.Default,
		Values: one.Enum, Minimum: one.Minimum, Maximum: one.Maximum, Required: required}
	for _, other := range one.AnyOf { // 0, or within bounds
		if other.Minimum != nil {
			e.Type, e.Minimum, e.Maximum = typeText(other), other.Minimum, other.Maximum
			e.OrZero = true
		}
	}
	if s.Items != nil {
		e.Type = "list of " + e.Type
	}
	return e
}

func typeText(s *config.Schema) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(s.Type), "[]"), " ", " or ")
}

// values says what a key may have, as far as that is fixed.
func (e explained) values() string {
	switch {
	case len(e.Values) > 0:
		return strings.Join(e.Values, ", ")
	case e.OrZero:
		return fmt.Sprintf("%s to %s, or 0", number(*e.Minimum), number(*e.Maximum))
	case e.Minimum != nil && e.Maximum != nil:
		return fmt.Sprintf("%s to %s", number(*e.Minimum), number(*e.Maximum))
	}
	return "-"
}

func explainView(key string, s *config.Schema, required bool) view {
	e := explainOne(key, s, required)
	v := view{names: []string{key}}
	answer := struct {
		explained
		Keys []explained `json:"keys,omitempty"`
	}{explained: e}
	t := table{columns: []string{"KEY", "TYPE", "DEFAULT", "VALUES"}, wide: []string{"MEANING"}}
	object := objectIn(s)
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		below := explainOne(strings.TrimPrefix(key+"."+name, "."), object.Properties[name],
			slices.Contains(object.Required, name))
		answer.Keys = append(answer.Keys, below)
		t.add(name, below.Type, defaultText(below), below.values(), orDash(below.Description))
		v.names = append(v.names, below.Key)
	}
	var text strings.Builder
	if key != "" {
		fmt.Fprintf(&text, "%s (%s)\n", key, e.Type)
		for _, line := range [][2]string{{"", e.Description}, {"default: ", defaultText(e)},
			{"values: ", e.values()}} {
			if line[1] != "" && line[1] != "-" {
				fmt.Fprintf(&text, "  %s%s\n", line[0], line[1])
			}
		}
	}
	if v.value, v.prose = answer, text.String(); len(t.rows) > 0 {
		if v.prose != "" {
			v.prose += "\n"
		}
		v.tables = tables{t}
	}
	return v
}

// defaultText is what a key is by default.
func defaultText(e explained) string {
	switch {
	case e.Default != nil:
		return fmt.Sprint(e.Default)
	case e.Required:
		return "required"
	}
	return "-"
}

// completeKeys offers the keys below what was typed.
func completeKeys(_ *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	root, err := nodeSchema()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	above := word[:strings.LastIndexByte(word, '.')+1]
	at, _, err := schemaAt(root, strings.TrimSuffix(above, "."))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var keys []string
	for _, name := range slices.Sorted(maps.Keys(objectIn(at).Properties)) {
		keys = append(keys, above+name)
	}
	return keys, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// number is without an exponent, as people type it.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
