package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSimHunting(t *testing.T) {
	w := newWorld(t, fakeNode)
	arguments := []string{"sim", "hunting", "--load", "0.88", "--policy", "random,average/3,jsq",
		"--requests", "40000"}
	out := w.run(append(arguments, "-o", "json")...)
	var report huntingReport
	if err := json.Unmarshal(w.stdout.Bytes(), &report); err != nil || len(report.Items) != 3 ||
		!strings.HasSuffix(out, "[exit 0]\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	random, average, ideal := report.Items[0], report.Items[1], report.Items[2]
	if random.Faster != 1 || average.Faster < 2 || ideal.Faster < average.Faster ||
		random.Requests < 39_000 {
		t.Errorf("random %+v, average %+v, least loaded %+v", random, average, ideal)
	}
	if len(random.Places) != 1 || len(average.Places) != 3 || len(ideal.Places) != 0 {
		t.Errorf("places of random %v, average %v, least loaded %v", random.Places, average.Places,
			ideal.Places)
	}
	for _, part := range []string{"LOAD  POLICY ", "0.88  average/3 ", " times "} {
		if out := w.run(append(arguments, "-o", "wide")...); !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
}

func TestSimHuntingRefuses(t *testing.T) {
	for _, wrong := range [][]string{{"--policy", "best"}, {"--load", "0"}, {"--servers", "0"},
		{"--service", "-1s"}} {
		w := newWorld(t, fakeNode)
		if out := w.run(append([]string{"sim", "hunting"}, wrong...)...); !strings.Contains(out,
			"[exit 2]") {
			t.Errorf("%v:\n%s", wrong, out)
		}
	}
}
