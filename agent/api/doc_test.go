package api_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

var (
	documentedPath = regexp.MustCompile(`(?m)^//\t([A-Z]+) +(/\S+)`)
	servedPath     = regexp.MustCompile(`"(GET|PUT|POST|DELETE) (/[^"]+)"`)
)

// What the handler serves is in the package's documentation, to which it sends whoever asks for
// something else.
func TestPathsAreDocumented(t *testing.T) {
	documented, served := requests(t, "doc.go", documentedPath),
		requests(t, "handler.go", servedPath)
	if len(served) < 30 || !slices.Equal(documented, served) {
		t.Errorf("doc.go has %q\nhandler.go %q", documented, served)
	}
}

// requests are the methods and paths that a file names, in order.
func requests(t *testing.T, file string, form *regexp.Regexp) (list []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range form.FindAllStringSubmatch(string(text), -1) {
		list = append(list, match[1]+" "+match[2])
	}
	slices.Sort(list)
	return list
}
