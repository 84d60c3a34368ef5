package endtoend_test

import (
	"os"
	"strings"
	"testing"

	"sextant/experiment"
	"sextant/experiment/soak"
)

// TestSoak is the soak cut short: agents end and return, pools change, and each packet is accounted for. An error of it says what was not.
func TestSoak(t *testing.T) {
	needsRoot(t)
	file, err := experiment.Conduct(t.Context(), soak.All()[0], experiment.Options{Folder: t.TempDir(), Quick: true})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| real connections that failed | 0 | 0 |", "5 agents ended and started again"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
}
