package controller

import (
	"encoding/json"
	flags "flag"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/api"
)

var update = flags.Bool("update", false, "rewrite testdata/openapi.json")

// The description of the API is the one that was looked at: what changes in it is meant.
func TestOpenAPI(t *testing.T) {
	got, err := json.MarshalIndent(api.Describe(title, (&Controller{}).operations(http.NotFound)),
		"", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	for _, match := range regexp.MustCompile(`"#/components/schemas/([^"]*)"`).
		FindAllStringSubmatch(string(got), -1) {
		if !strings.Contains(string(got), `"`+match[1]+`": {`) {
			t.Errorf("there is no schema %s", match[1])
		}
	}
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

// What is served is in the package's documentation, to which it sends whoever asks for something
// else.
func TestPathsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var documented, served []string
	for _, match := range regexp.MustCompile(`(?m)^//\t([A-Z]+) +(/\S+)`).
		FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, match[1]+" "+match[2])
	}
	for _, o := range (&Controller{}).operations(http.NotFound) {
		served = append(served, o.Method+" "+o.Path)
	}
	served = append(served, "GET /v1/openapi.json")
	slices.Sort(documented)
	if slices.Sort(served); !slices.Equal(documented, served) {
		t.Errorf("doc.go has\n%s\nwhat is served is\n%s", strings.Join(documented, "\n"),
			strings.Join(served, "\n"))
	}
}
