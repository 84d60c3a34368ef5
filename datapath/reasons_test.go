package datapath

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sextant/datapath/model"
)

// TestReasonsAreDocumented: the page's table has each drop reason in order, with its meaning and a
// step, which is a section that names the reason.
func TestReasonsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/reference/dataplane.md")
	if err != nil {
		t.Fatal(err)
	}
	steps, table, found := strings.Cut(string(text), "\n## Drop reasons\n")
	if !found {
		t.Fatal("the page has no section of drop reasons")
	}
	sections := map[string]string{}
	for _, section := range regexp.MustCompile(`\n##+ `).Split(steps, -1)[1:] {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\| (.*) \\|$")
	link := regexp.MustCompile(`\[([^]]*)\]\(#`)
	var names []string
	for _, cells := range row.FindAllStringSubmatch(table, -1) {
		name := cells[1]
		names = append(names, name)
		if cells[2] != model.Meaning(name) {
			t.Errorf("%s: the page says %q, the program %q", name, cells[2], model.Meaning(name))
		}
		linked := link.FindAllStringSubmatch(cells[3], -1)
		if len(linked) == 0 {
			t.Errorf("no section of docs/reference/dataplane.md names `%s`: say in that of its "+
				"step when it is given, then make generate", name)
		}
		for _, step := range linked {
			if !strings.Contains(sections[step[1]], "`"+name+"`") {
				t.Errorf("the section %q does not name %s", step[1], name)
			}
		}
	}
	var want []string
	for _, name := range reasonNames() {
		if name != "" {
			want = append(want, name)
		}
	}
	if got := strings.Join(names, " "); got != strings.Join(want, " ") {
		t.Errorf("the page has %s\nthe program has %s", got, strings.Join(want, " "))
	}
}
