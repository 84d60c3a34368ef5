package e2e_test

import (
	"os"
	"strings"
	"testing"

	"sextant/experiment"
	"sextant/experiment/soak"
)

// TestSoak is the soak cut short, with chains in carriers and in signed segment routing headers:
// agents end and return, pools change, and each packet is accounted for. An error of it says what
// was not.
func TestSoak(t *testing.T) {
	needsRoot(t)
	for _, e := range soak.All() {
		t.Run(e.Name, func(t *testing.T) {
			file, err := experiment.Conduct(t.Context(), e, experiment.Options{Folder: t.TempDir(),
				Quick: true})
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			wants := []string{"| real connections that failed | 0 | 0 |",
				"5 agents ended and started again", "| flow cache: stored |"}
			if e.Name == "soak-signed" {
				wants = append(wants, "| dropped: hmac_missing |")
			}
			for _, want := range wants {
				if !strings.Contains(string(text), want) {
					t.Errorf("the report does not say %q:\n%s", want, text)
				}
			}
		})
	}
}
