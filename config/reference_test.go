package config

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

const reference = "../docs/reference/node-file.md"

// TestReferenceNamesAllKeys holds the page of examples to the schema: objects and lists are on it,
// so that tests which take its file as a whole see what they have. Of scalars the generated page
// docs/reference/node-keys.md has all.
func TestReferenceNamesAllKeys(t *testing.T) {
	page, settings := readReference(t), Settings()
	if len(settings) < 200 {
		t.Fatalf("the schema has %d keys; the test does not find them any more", len(settings))
	}
	for _, s := range settings {
		if s.codec != nil && !strings.HasSuffix(s.Path, "[]") {
			continue
		}
		key := strings.TrimSuffix(s.Path[strings.LastIndexByte(s.Path, '.')+1:], "[]")
		if !regexp.MustCompile(`(^|[^A-Za-z])` + key + `:`).MatchString(page) {
			t.Errorf("key %q (%s) is not on %s", key, s.Path, reference)
		}
	}
}

// TestReferenceIsValid reads the page's examples, its blocks of YAML, as one file.
func TestReferenceIsValid(t *testing.T) {
	var file strings.Builder
	for _, block := range strings.Split(readReference(t), "\n```yaml\n")[1:] {
		code, _, _ := strings.Cut(block, "\n```\n")
		file.WriteString(code + "\n")
	}
	if n := strings.Count(file.String(), "\n"); n < 150 {
		t.Fatalf("the page has %d lines of YAML; the test does not find them any more", n)
	}
	if _, err := Parse("node-file.md", []byte(file.String())); err != nil {
		t.Error(err)
	}
}

func readReference(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
