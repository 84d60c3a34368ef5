package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// schemas are those of the API's description, by name.
type schemas map[string]map[string]any

// faults says what of a value is not as a schema says.
func (s schemas) faults(at string, schema map[string]any, value any) (list []string) {
	if name, ok := schema["$ref"].(string); ok {
		schema = s[name[strings.LastIndexByte(name, '/')+1:]]
	}
	wrong := func(format string, args ...any) {
		list = append(list, at+": "+fmt.Sprintf(format, args...))
	}
	if words, ok := schema["enum"].([]any); ok && !slices.Contains(words, value) {
		wrong("%v is none of %v", value, words)
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		for _, one := range choices {
			if list = s.faults(at, one.(map[string]any), value); len(list) == 0 {
				break
			}
		}
		return list
	}
	kind := schema["type"]
	if kinds, ok := kind.([]any); ok {
		if value == nil && slices.Contains(kinds, any("null")) {
			return nil
		}
		kind = kinds[0]
	}
	switch kind {
	case "null":
		if value != nil {
			wrong("%v is not null", value)
		}
	case "object":
		object, ok := value.(map[string]any)
		if !ok {
			wrong("%v is no object", value)
			return list
		}
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, there := object[name.(string)]; !there {
				wrong("%v is missing", name)
			}
		}
		more, open := schema["additionalProperties"].(map[string]any)
		for key, inner := range object {
			of, known := properties[key].(map[string]any)
			if !known {
				if of = more; !open {
					wrong("%s is not described", key)
					continue
				}
			}
			list = append(list, s.faults(at+"."+key, of, inner)...)
		}
	case "array":
		items, ok := value.([]any)
		if !ok {
			wrong("%v is no list", value)
		}
		of, _ := schema["items"].(map[string]any)
		for _, item := range items {
			list = append(list, s.faults(at+"[]", of, item)...)
		}
	case "string":
		text, ok := value.(string)
		if !ok {
			wrong("%v is no text", value)
		}
		if schema["format"] == "date-time" && ok {
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				wrong("%q is no time", text)
			}
		}
	case "integer", "number":
		n, ok := value.(float64)
		if !ok || kind == "integer" && n != math.Trunc(n) {
			wrong("%v is no %s", value, kind)
		}
	case "boolean":
		if _, ok := value.(bool); !ok {
			wrong("%v is not true or false", value)
		}
	}
	return list
}

// What agents of each role answer is as the API's description says.
func TestAnswersAreAsDescribed(t *testing.T) {
	for name, text := range map[string]string{"edge and host": nodeText, "cflb": cflbText,
		"head-end and egress": routerText, "telemetry": nodeText +
			"telemetry: {node: 7, transit: [host0]}\n",
		"path source": strings.Replace(pathSourceText, "NEAR", "1", 1)} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			must(t, os.WriteFile(m.dir+"/cflb.key", []byte(strings.Repeat("05", 16)), 0o600))
			must(t, m.ns.Do(upLoopback))
			a := m.start(text)
			defer a.stop()
			client := m.client()
			get := func(path string) any {
				response, err := client.Get("http://agent" + path)
				must(t, err)
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				must(t, err)
				var value any
				if err := json.Unmarshal(text, &value); err != nil {
					t.Errorf("%s: %v\n%s", path, err, text)
				}
				return value
			}
			var described struct {
				Paths map[string]map[string]struct {
					Responses map[string]struct {
						Content map[string]struct{ Schema map[string]any }
					}
				}
				Components struct{ Schemas schemas }
			}
			text, err := json.Marshal(get("/v1/openapi.json"))
			must(t, err)
			must(t, json.Unmarshal(text, &described))
			looked := 0
			for path, operations := range described.Paths {
				schema := operations["get"].Responses["200"].Content["application/json"].Schema
				if schema == nil || strings.Contains(path, "{") || path == "/v1/trace" {
					continue
				}
				looked++
				for _, fault := range described.Components.Schemas.faults(path, schema, get(path)) {
					t.Error(fault)
				}
			}
			if looked < 15 {
				t.Errorf("%d paths were asked", looked)
			}
		})
	}
}
