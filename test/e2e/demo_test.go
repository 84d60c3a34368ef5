package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"sextant/experiment"
	"sextant/experiment/churn"
	"sextant/lab"
	"sextant/linux"
)

// The demonstration, cut short: all requests are answered, and hunting really hunts.
func TestDemo(t *testing.T) {
	needsRoot(t)
	h, err := experiment.RunHunting(t.Context(), experiment.HuntingOptions{Random: time.Second,
		Hunting: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	nothingLeft(t)
	for i, p := range h.Policies {
		if p.Candidates != i+1 || p.Load.Done == 0 || p.Load.Failed != 0 ||
			p.Load.Done != p.Load.Sent || len(p.Load.Servers) != 12 {
			t.Errorf("%s with %d candidates: %+v, want all requests answered, by all 12 servers",
				p.Policy, p.Candidates, p.Load)
		}
		if hunts := p.SecondChoice > 0 && p.SecondChoice < 1; hunts != (p.Candidates > 1) {
			t.Errorf("%s with %d candidates: the first passed on a share of %g", p.Policy,
				p.Candidates, p.SecondChoice)
		}
	}
	var text bytes.Buffer
	rows := regexp.MustCompile(`(?m)^ *hunting +[23] `) // a warning also begins with a policy
	err = h.Write(&text)
	if found := rows.FindAllString(text.String(), -1); err != nil || len(found) != 2 {
		t.Errorf("error %v, %d rows about hunting, want 2, in\n%s", err, len(found), &text)
	}
}

// Whenever the demonstration is stopped, nothing of it is left.
func TestDemoStopped(t *testing.T) {
	needsRoot(t)
	// By the number of things that have happened in the lab: the network is the first; at the
	// latest when the lab is up.
	for _, events := range []int{1, 2, 5, 13, 26, 40, 1000} {
		ctx, cancel := context.WithCancel(t.Context())
		seen := 0
		_, err := experiment.RunHunting(ctx, experiment.HuntingOptions{
			Random: time.Minute, Hunting: time.Minute,
			Events: func(e lab.Event) {
				_, up := e.(lab.LabUp)
				if seen++; seen == events || up {
					cancel()
				}
			},
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("stopped at event %d: error %v, want that it was stopped", events, err)
		}
		nothingLeft(t)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := experiment.RunHunting(ctx, experiment.HuntingOptions{
		Random: time.Minute, Hunting: time.Minute,
		Progress: func(string) { cancel() }, // the servers are loaded
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("stopped under load: error %v, want that it was stopped", err)
	}
	nothingLeft(t)
}

// The second act, cut short: servers leave and return, and offer loses nothing.
func TestChurn(t *testing.T) {
	needsRoot(t)
	d, err := churn.Demonstrate(t.Context(), churn.DemonstrationOptions{Duration: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	nothingLeft(t)
	for _, p := range d.Policies {
		if p.Requests == 0 || p.Changes != 2 {
			t.Errorf("%s: %+v, want downloads and two changes", p.Policy, p)
		}
		if p.Policy == "offer" && (p.Failed != 0 || p.Resets != 0 || p.Redirected == 0) {
			t.Errorf("offer: %+v, want no failure, no reset, and packets that are sent on", p)
		}
	}
}

// Whenever the second act is stopped, nothing of it is left.
func TestChurnStopped(t *testing.T) {
	needsRoot(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := churn.Demonstrate(ctx, churn.DemonstrationOptions{
		Duration: time.Minute,
		Progress: func(string) { cancel() }, // downloads are under way
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was stopped", err)
	}
	nothingLeft(t)
}

// nothingLeft looks for what a demonstration can leave behind.
func nothingLeft(t *testing.T) {
	t.Helper()
	cgroups, _, err := linux.CgroupRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{
		filepath.Join(linux.NetnsDir, "sx-demo-*"),
		filepath.Join(lab.StateDir, "demo"),
		filepath.Join(cgroups, "sextant-demo"),
		"/sys/fs/bpf/sextant/demo-*",
	} {
		left, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}
