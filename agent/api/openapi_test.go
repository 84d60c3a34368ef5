package api

import (
	"encoding/json"
	flags "flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flags.Bool("update", false, "rewrite testdata/openapi.json")

// The description of the API is the one that was looked at: what changes in it is meant.
func TestOpenAPI(t *testing.T) {
	got, err := json.MarshalIndent(Describe(title, endpoints(handler{})), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const file = "testdata/openapi.json"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got, go test -args -update rewrites it):\n%s", file, diff)
	}
}

// Each reference leads somewhere, each operation has its own id, a permission and parameters for
// what its path leaves open.
func TestOpenAPIIsWhole(t *testing.T) {
	text, err := json.Marshal(Describe(title, endpoints(handler{})))
	if err != nil {
		t.Fatal(err)
	}
	var o struct {
		Paths map[string]map[string]struct {
			OperationID string     `json:"operationId"`
			Permission  Permission `json:"x-permission"`
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`"#/components/schemas/([^"]*)"`).
		FindAllStringSubmatch(string(text), -1) {
		if o.Components.Schemas[match[1]] == nil {
			t.Errorf("there is no schema %s", match[1])
		}
	}
	ids := map[string]bool{}
	for path, methods := range o.Paths {
		for method, operation := range methods {
			if ids[operation.OperationID] || !slices.Contains([]Permission{Read, Operate, Admin},
				operation.Permission) {
				t.Errorf("%s %s has the id %q and the permission %q", method, path,
					operation.OperationID, operation.Permission)
			}
			ids[operation.OperationID] = true
		}
	}
	if len(ids) < 35 {
		t.Errorf("%d operations are described", len(ids))
	}
}

// What is served is in the package's documentation, to which it sends whoever asks for something
// else.
func TestPathsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, match := range regexp.MustCompile(`(?m)^//\t([A-Z]+) +(/\S+)`).
		FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, match[1]+" "+match[2])
	}
	served := []string{"GET /v1/openapi.json"}
	for _, e := range endpoints(handler{}) {
		served = append(served, e.Method+" "+e.Path)
	}
	slices.Sort(documented)
	if slices.Sort(served); !slices.Equal(documented, served) {
		t.Errorf("doc.go has\n%s\nwhat is served is\n%s", strings.Join(documented, "\n"),
			strings.Join(served, "\n"))
	}
}
