package srlb

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sextant/experiment"
	"sextant/lab"
	"sextant/sim/hunting"
)

// Every second server is slow, in the lab and in the simulator.
func TestSlowDown(t *testing.T) {
	spec, err := lab.Parse("hunting.yaml", unlike.text)
	if err != nil {
		t.Fatal(err)
	}
	if err := slowDown(spec); err != nil {
		t.Fatal(err)
	}
	capacity, paces := trial{servers: twelve(), slow: true}.capacity()
	if capacity != 18 || len(paces) != 6 {
		t.Errorf("12 servers of 2 cores can do as much as %g cores; %d are slow", capacity,
			len(paces))
	}
	for i, server := range serversOf(spec) {
		words := strings.Join(server.Processes[0].Command.Args, " ")
		name := " --name web" + strconv.Itoa(i+1) + " "
		if want := i%2 == 1; !strings.Contains(words, name) ||
			strings.HasSuffix(words, " --speed 0.5") != want ||
			slices.ContainsFunc(paces, func(p hunting.Pace) bool { return p.Server == i }) != want {
			t.Errorf("server %d of %v: %s", i, paces, words)
		}
	}
}

// The report says how far delay is from the others, in the lab and in the simulator.
func TestSpeedsReport(t *testing.T) {
	f := speedFindings{overheadMs: 0.5}
	for i, p := range slices.Concat(speedPolicies, baselines) {
		found := point{Policy: p.name, Load: 0.8, MeanMs: float64(20 - i), Requests: 1000,
			Quantiles: make([]float64, quantileSteps)}
		if i < len(speedPolicies) {
			f.lab, f.twins = append(f.lab, found), append(f.twins, found)
		} else {
			f.baselines = append(f.baselines, found)
		}
	}
	text, err := conduct(t, false,
		func(_ context.Context, r *experiment.Recorder) error { return f.report(r) })
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| lab: delay against all others | - | -5.9 % at worst, at 0.8 | goal +0 %: reached |",
		"| simulator: delay against Charon, Prequal and JSQ(2) | - | +33.3 % at worst, at 0.8 " +
			"| goal +0 %: not reached |",
		"| 0.8 | delay, 6 candidates | 1000 | 0 | 16.00 | 0.00 | 0.00 | 0.00 | 0.00 | - | 16.00 " +
			"| +0.0 | 0.0 | - |",
		"| 0.8 | 15.00 | 14.00 | 13.00 | 12.00 | 11.00 |",
		"![speeds](speeds.svg)",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("the report lacks %q:\n%s", line, text)
		}
	}
}
