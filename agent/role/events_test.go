package role_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sextant/agent/api"
	"sextant/agent/role"
)

// logged returns level and message of each line of a log of JSON, with some attributes.
func logged(t *testing.T, text string, keys ...string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		short := fmt.Sprint(entry["level"], " ", entry["msg"])
		for _, key := range keys {
			if value, ok := entry[key]; ok {
				short += fmt.Sprint(" ", key, "=", value)
			}
		}
		lines = append(lines, short)
	}
	return lines
}

// Of events in a second the log has 100, then how many others there were; the API has all.
func TestEventsAreLoggedWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		core := role.NewCore(t.Context(), "test", slog.New(slog.NewJSONHandler(&text, nil)))
		tell := func(n int) {
			for range n {
				core.Tell(api.Event{Service: "web", Backend: "b", Status: "failing"})
			}
		}
		tell(250)
		lines := logged(t, text.String(), "logged")
		if len(lines) != 101 || lines[100] !=
			"WARN backends: more events than are logged in a second logged=100" {
			t.Errorf("250 events are %d lines, the last %q", len(lines), lines[len(lines)-1])
		}
		for i, line := range lines[:100] {
			if line != "INFO backends" {
				t.Errorf("line %d is %q", i, line)
			}
		}
		if n := len(core.Latest); n != 250 {
			t.Errorf("%d of 250 events are remembered", n)
		}
		text.Reset()
		time.Sleep(time.Second)
		tell(2)
		want := []string{"WARN backends: events were not logged events=150", "INFO backends",
			"INFO backends"}
		if diff := cmp.Diff(want, logged(t, text.String(), "events")); diff != "" {
			t.Errorf("a second later (-want +got):\n%s", diff)
		}
	})
}

// A few parts of a change are lines with their names; of many there is one with how many and the
// first names, and each at level debug.
func TestManyPartsAreOneLine(t *testing.T) {
	write := func(parts int, level slog.Level) []string {
		var text strings.Builder
		list := make([]string, parts)
		for i := range list {
			list[i] = fmt.Sprint("b", i)
		}
		role.LogSeveral(slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: level})),
			"backend", list, func(name string) []any { return []any{"name", name} },
			func(name string) string { return name },
			func() []any { return []any{"came", parts} })
		return logged(t, text.String(), "name", "came", "first")
	}
	if got := write(0, slog.LevelDebug); len(got) != 0 {
		t.Errorf("nothing is logged as %q", got)
	}
	if diff := cmp.Diff([]string{"INFO backend name=b0"}, write(1, slog.LevelInfo)); diff != "" {
		t.Errorf("a single part (-want +got):\n%s", diff)
	}
	if got := write(10, slog.LevelInfo); len(got) != 10 || got[9] != "INFO backend name=b9" {
		t.Errorf("ten parts are %q", got)
	}
	const together = "INFO backend, together came=50000 first=b0, b1, b2"
	if diff := cmp.Diff([]string{together}, write(50000, slog.LevelInfo)); diff != "" {
		t.Errorf("many parts (-want +got):\n%s", diff)
	}
	all := write(50000, slog.LevelDebug)
	if len(all) != 50001 || all[0] != together || all[50000] != "DEBUG backend name=b49999" {
		t.Errorf("many parts at level debug are %d lines, the first %q", len(all), all[0])
	}
}
