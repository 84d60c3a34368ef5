package controller

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"sextant/te/reroute"
)

// A client that was away gets the decisions that were made meanwhile, of the kind that it wants.
func TestEventsOfDecisions(t *testing.T) {
	j, err := openJournal("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c := &Controller{journal: j, work: make(chan func()), begun: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for {
			select {
			case f := <-c.work:
				f()
			case <-ctx.Done():
				return
			}
		}
	}()
	add := func(verdict string) {
		if err := c.do(ctx, func() { j.add(&Decision{Verdict: verdict}) }); err != nil {
			t.Fatal(err)
		}
	}
	moved := reroute.Moved.String()
	server := httptest.NewServer(c.handler(http.NotFoundHandler()))
	t.Cleanup(server.Close) // after its streams
	read := func(query string) func() Decision {
		t.Helper()
		response, err := http.Get(server.URL + "/v1/events" + query)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatal(response, err)
		}
		t.Cleanup(func() { response.Body.Close() })
		lines := bufio.NewScanner(response.Body)
		return func() (d Decision) {
			t.Helper()
			if !lines.Scan() {
				t.Fatal("the stream ended")
			}
			if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
				t.Fatal(err)
			}
			return d
		}
	}
	for _, verdict := range []string{moved, "kept", moved} {
		add(verdict)
	}
	for _, path := range []string{"/v1/events", "/v1/reroutes"} {
		response, err := http.Get(server.URL + path + "?moved=some")
		if err != nil || response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s of what is neither on nor off: %v, %v", path, response, err)
		}
		response.Body.Close()
	}
	all, moves, fresh := read("?after=1&moved=0"), read("?after=0&moved=1"), read("")
	for want := uint64(2); want <= 3; want++ {
		if d := all(); d.Number != want {
			t.Errorf("decision %d, want %d", d.Number, want)
		}
	}
	for _, want := range []uint64{1, 3} {
		if d := moves(); d.Number != want || d.Verdict != moved {
			t.Errorf("move %d %s, want %d", d.Number, d.Verdict, want)
		}
	}
	add("kept")
	add(moved)
	if d := fresh(); d.Number != 4 {
		t.Errorf("the first one that is new: %d, want 4", d.Number)
	}
	if d := moves(); d.Number != 5 {
		t.Errorf("the next move: %d, want 5", d.Number)
	}
}

// What no memory holds any more is left out, and seen by the numbers.
func TestJournalSince(t *testing.T) {
	j, err := openJournal("", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := j.since(0); len(got) != 0 {
		t.Errorf("%d decisions of none", len(got))
	}
	const n = journalMemory + 10
	for range n {
		j.add(&Decision{Verdict: "kept"})
	}
	for after, want := range map[uint64]int{
		0: journalMemory, 10: journalMemory, 11: journalMemory - 1,
		n - 1: 1, n: 0, n + 1: 0, 1 << 63: 0,
	} {
		got := j.since(after)
		if len(got) != want || want > 0 && got[len(got)-1].Number != n {
			t.Errorf("%d decisions after %d, want %d", len(got), after, want)
		}
	}
}
