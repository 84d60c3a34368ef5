package churn

import (
	"os"
	"strings"
	"testing"
)

// shown is the outcome that README.md shows.
func shown() *Demonstration {
	return &Demonstration{
		Servers: servers, Parallel: parallel, Bytes: large, IntervalSeconds: 1,
		Policies: []outcome{
			{Policy: "ecmp", Requests: 465, Failed: 210, Resets: 847},
			{Policy: "shadow", Requests: 401, Failed: 20, Resets: 57, Redirected: 0.167},
			{Policy: "offer", Requests: 389, Redirected: 0.052},
		},
	}
}

func TestReadmeShowsWhatIsPrinted(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	text := written(t, shown())
	for line := range strings.Lines(text) {
		if !strings.Contains(string(readme), strings.TrimSpace(line)) {
			t.Errorf("README.md lacks the line %q of\n%s", line, text)
		}
	}
}

func TestDemonstrationTellsOfBrokenPromise(t *testing.T) {
	d := shown()
	d.Policies[2].Failed, d.Policies[2].Example = 3,
		map[string]string{"reset": "connection reset by peer"}
	if text := written(t, d); !strings.Contains(text, "Warning: 3 downloads of offer failed, and "+
		"none should: map[reset:connection reset by peer].") {
		t.Errorf("no warning in\n%s", text)
	}
}

func written(t *testing.T, d *Demonstration) string {
	t.Helper()
	var text strings.Builder
	if err := d.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}
