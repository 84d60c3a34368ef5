package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sextant/config"
)

// The page of all keys is that of the schema, which has them from the settings' types.
func TestKeysPage(t *testing.T) {
	root, err := nodeSchema()
	if internals := regexp.MustCompile(`.*(\bnil\b|\\\[[A-Z]|Permille|Any[A-Z]).*`).FindString(
		keysPage(root)); internals != "" {
		t.Errorf("an operator does not know the names of Go: %s", internals)
	}
	made(t, "../../docs/reference/node-keys.md", []byte(keysPage(root)), err)
}

const keysIntroduction = `# Keys of the node file

All keys, made from the types of the settings by ` + "`go test ./cmd/sextant -run TestKeysPage -args\n" +
	"-update`: `sextant config explain KEY` prints the same, and [node-file.md](node-file.md) " + `shows them
in examples. Durations are strings like ` + "`500ms`, `2m`." + `
`

func keysPage(root *config.Schema) string {
	var page strings.Builder
	page.WriteString(keysIntroduction)
	writeKeys(&page, "", root)
	return page.String()
}

// writeKeys writes the section of an object, and those of the objects below it.
func writeKeys(page *strings.Builder, key string, s *config.Schema) {
	object := objectIn(s)
	title := "Every node"
	if key != "" {
		title = key
	}
	fmt.Fprintf(page, "\n## %s\n\n| key | type | default | values | meaning |\n"+
		"| --- | --- | --- | --- | --- |\n", title)
	var below []string
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		one := explainOne(strings.TrimPrefix(key+"."+name, "."), object.Properties[name],
			slices.Contains(object.Required, name))
		if objectIn(object.Properties[name]).Properties != nil {
			below = append(below, name)
		}
		fmt.Fprintf(page, "| `%s` | %s | %s | %s | %s |\n", name, one.Type, defaultText(one),
			one.values(), inCell(one.Description))
	}
	for _, name := range below {
		writeKeys(page, strings.TrimPrefix(key+"."+name, "."), object.Properties[name])
	}
}

// inCell is a text in a table of Markdown.
func inCell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", `\<`, "[", `\[`).Replace(text)
}
