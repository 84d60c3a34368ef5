package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
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

// What is wrong is refused before the first run: of the runs before it nothing would be left.
func TestSimHuntingRefuses(t *testing.T) {
	for _, wrong := range [][]string{{"--policy", "best"}, {"--load", "0"}, {"--servers", "0"},
		{"--service", "-1s"}, {"--policy", ""}, {"--policy", "random,best"},
		{"--policy", "random,random"}, {"--policy", "random,average/3", "--servers", "2"},
		{"--load", "0.5,-1"}, {"--load", "0.5,0.5"}, {"--load", "Inf"}, {"--load", "NaN"},
		{"--load", "1e-300"}, {"--load", "1e300"}, {"--speeds", "Inf"}, {"--speeds", "1,NaN"},
		{"--speeds", "1e-300"}, {"--servers", "2", "--speeds", "1,1,0.5"},
		{"--servers", "1000000000"}, {"--cores", "4294967296"}, {"--workers", "-1"},
		{"--workers", "4294967296"}, {"--backlog", "-40"}, {"--backlog", "4294967264"},
		{"--buckets", "-1"}, {"--buckets", "2000000000"}, {"--handshake", "2562000h"},
		{"--buckets", "100", "--policy", "jsq,prequal"},
		{"--policy", "charon", "--news", "2562047h"}, {"--news", "1s"}, {"--balancers", "9"},
		{"--policy", "charon", "--balancers", "0"},
		{"--policy", "charon", "--balancers", "10000", "--servers", "60000"},
		{"--service", "1ns"}, {"--service", "3000h"}, {"--requests", "18446744073709551615"},
		{"--stall-speed", "0.5"}, {"--stall-every", "1s"}, {"--stall", "-1s"},
		{"--stall", "1s", "--stall-speed", "Inf"}, {"--stall", "1s", "--stall-speed", "NaN"},
		{"--stall", "1s", "--stall-every", "2562047h"}, {"--stall", "1ns", "--stall-every", "1ns"},
		{"--service-times", "normal"}, {"--arrivals", "weekly"}} {
		w := newWorld(t, fakeNode)
		if out := w.run(append([]string{"sim", "hunting"}, wrong...)...); !strings.HasSuffix(out,
			"[exit 2]\n") {
			t.Errorf("%v:\n%s", wrong, out)
		}
	}
}

// Means of which too few requests tell say so, and times beyond an hour are as long as they are.
func TestSimHuntingHonest(t *testing.T) {
	w := newWorld(t, fakeNode)
	few := []string{"sim", "hunting", "--load", "0.5", "--policy", "random", "--requests", "50"}
	if out := w.run(few...); !strings.Contains(out, " ms  -  ") {
		t.Errorf("no half width is known:\n%s", out)
	}
	none := append(few, "--servers", "1", "--stall", "100h", "--stall-every", "1ns", "--workers",
		"1", "--backlog", "0")
	if out := w.run(append(none, "-o", "json")...); strings.Contains(out, "NaN") ||
		!strings.HasSuffix(out, "[exit 0]\n") {
		t.Errorf("nothing is served:\n%s", out)
	}
	if out := w.run(none...); !strings.Contains(
		strings.Join(strings.Fields(out), " "), " - - - - - - ") {
		t.Errorf("nothing is served:\n%s", out)
	}
	out := w.run("sim", "hunting", "--load", "0.5", "--policy", "random", "--requests", "1000",
		"--service", "3h", "-o", "json")
	var report huntingReport
	if err := json.Unmarshal(w.stdout.Bytes(), &report); err != nil || len(report.Items) != 1 ||
		report.Items[0].P99Ms < 10*time.Hour.Seconds()*1000 {
		t.Errorf("%v: a 99th percentile below 10 h\n%s", err, out)
	}
}

// Servers begin idle: a run that is over before queues have grown has means that are too low.
func TestSimHuntingTooShort(t *testing.T) {
	for requests, warned := range map[string]bool{"19000": true, "20000": false} {
		w := newWorld(t, fakeNode)
		out := w.run("sim", "hunting", "--load", "0.5", "--policy", "random", "--servers", "50",
			"--requests", requests)
		if strings.Contains(out, "begin idle") != warned {
			t.Errorf("%s requests:\n%s", requests, out)
		}
	}
}

// endingContext is interrupted after it has been asked so often.
type endingContext struct {
	context.Context
	asked, end int
}

func (c *endingContext) Err() error {
	if c.asked++; c.end > 0 && c.asked > c.end {
		return context.Canceled
	}
	return nil
}

// An interrupt leaves the runs that had ended.
func TestSimHuntingInterrupted(t *testing.T) {
	hunt := func(ctx context.Context, policies string) (report huntingReport, code int) {
		w := newWorld(t, fakeNode)
		code = run(ctx, w.env("sim", "hunting", "--load", "0.88", "--policy", policies,
			"--requests", "40000", "-o", "json"))
		if text := w.stdout.Bytes(); len(text) > 0 {
			if err := json.Unmarshal(text, &report); err != nil {
				t.Fatal(err)
			}
		}
		return report, code
	}
	one := &endingContext{Context: t.Context()}
	if alone, code := hunt(one, "random"); len(alone.Items) != 1 || code != 0 {
		t.Fatalf("%d runs, exit %d", len(alone.Items), code)
	}
	some, code := hunt(&endingContext{Context: t.Context(), end: one.asked + 1}, "random,average/3")
	if len(some.Items) != 1 || some.Items[0].Policy != "random" || code == 0 {
		t.Errorf("interrupted in the second run: exit %d, %+v", code, some.Items)
	}
	none, code := hunt(&endingContext{Context: t.Context(), end: 1}, "random,average/3")
	if len(none.Items) != 0 || code == 0 {
		t.Errorf("interrupted in the first run: exit %d, %+v", code, none.Items)
	}
}
