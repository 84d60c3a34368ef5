package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A role that does not exist is no role without services.
func TestServicesOfUnknownRole(t *testing.T) {
	for _, arguments := range [][]string{{"list"}, {"show", "web"}, {"show", "none"}} {
		w := newWorld(t, fakeNode)
		arguments = append(append([]string{"service"}, arguments...), "--role", "hots")
		if out := w.run(arguments...); !strings.Contains(out, `unknown role "hots"`) ||
			!strings.HasSuffix(out, "[exit 2]\n") {
			t.Errorf("%v:\n%s", arguments, out)
		}
	}
}

// With -w the choice is made anew for each picture, and nothing is written beside the pictures.
func TestServiceListWatched(t *testing.T) {
	w := newWorld(t, fakeNode)
	e := w.env("service", "list", "*s*", "--sort", "packets", "--limit", "1", "-w")
	ctx, cancel := context.WithCancel(t.Context())
	pictures := 0
	e.sleep = func(context.Context, time.Duration) {
		if pictures++; pictures == 2 {
			cancel()
		}
	}
	if code := run(ctx, e); code != exitOK || w.stderr.Len() > 0 {
		t.Errorf("exit code %d: %s", code, w.stderr.String())
	}
	out := w.stdout.String()
	if strings.Count(out, "\ndns ") != 2 || strings.Count(out, "\n") != 6 {
		t.Errorf("two pictures of a service:\n%s", out)
	}
}

// Of thousands of names the first few are told.
func TestAbsent(t *testing.T) {
	var names []string
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("s%04d", i))
	}
	for known, want := range map[int]string{0: "none is configured: add it first",
		2: "known: s0000, s0001", 10_000: "s0008, s0009 and 9990 more"} {
		if err := absent("service", "web", names[:known]); !strings.HasSuffix(err.Error(), want) {
			t.Errorf("of %d: %v", known, err)
		}
	}
}

// A policy that neither role has is one of the role that the node has, written wrongly.
func TestUnknownPolicyOnAnEdge(t *testing.T) {
	for _, command := range []string{
		"service add x --vip 192.0.2.81 --port 80 --policy esmp", "service set web --policy esmp",
	} {
		w := newWorld(t, fakeEdge)
		w.run(strings.Fields("service add web --vip 192.0.2.1 --port 80")...)
		got := w.run(strings.Fields(command)...)
		if !strings.Contains(got, `unknown policy "esmp"; write offer, shadow or ecmp`) {
			t.Error(got)
		}
	}
	w := newWorld(t, fakeEdge)
	got := w.run(strings.Fields("service add x --vip 192.0.2.81 --port 80 --policy static")...)
	if !strings.Contains(got, "an edge has no acceptance policy") {
		t.Error(got)
	}
}
