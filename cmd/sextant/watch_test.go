package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"sextant/agent/api"
	"sextant/config"
)

// samples are two moments, two seconds apart.
func samples() (before, after api.Sample) {
	start := time.Date(2026, 11, 5, 10, 30, 0, 0, time.UTC)
	backend := func(name string, packets uint64) api.Backend {
		return api.Backend{Service: "web", Name: name, State: config.Up, Packets: packets,
			Bytes: 1000 * packets}
	}
	sample := func(at time.Time, n uint64) api.Sample {
		return api.Sample{
			Time: at,
			Counters: []api.Counters{
				{Role: api.Edge, TransmittedPackets: 3_000_000 * n, PassedPackets: 10 * n,
					Drops: []api.Drop{
						{Reason: "no_service", Packets: 2 * n}, {Reason: "ecn", Packets: 5},
						{Reason: "fragment",
							Packets: 4 * n},
					}},
				{Role: api.Host, TakenPackets: 2468 * n},
			},
			Services: []api.Service{
				{Name: "web", Role: api.Edge, Packets: 100 * n, Bytes: 20_000_000 * n,
					Edge: &api.EdgeService{
						Backends: []api.Backend{backend("web1", 40*n), backend("web2", 60*n)},
					}},
				{Name: "web", Role: api.Host, Packets: 10 * n, Bytes: 100 * n,
					Host: &api.HostService{
						Accept: api.Accept{Policy: config.Static}, Threshold: 4, Busy: 3,
						Offered: 8 * n, Refused: 2 * n, PassedOnPackets: 6 * n,
					}},
			},
		}
	}
	before, after = sample(start, 1), sample(start.Add(2*time.Second), 2)
	after.Services = append(after.Services, api.Service{Name: "new", Role: api.Edge,
		Edge: &api.EdgeService{}})
	return before, after
}

func TestTop(t *testing.T) {
	w := newWorld(t, fakeNode)
	a := &app{env: w.env()}
	before, after := samples()
	frame := frameOf(before, after)
	for _, output := range []string{formatTable, formatWide} {
		a.output = output
		if err := a.draw(frame); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeJSON(a.stdout, frame); err != nil {
		t.Fatal(err)
	}
	golden(t, "top", w.stdout.String())
	w.stdout.Reset()
	a.terminal = true
	if err := a.draw(frame); err != nil {
		t.Fatal(err)
	}
	if got := w.stdout.String(); !strings.HasPrefix(got, "\x1b[H10:30:02\x1b[K\n") ||
		!strings.HasSuffix(got,
			"\x1b[K\n\x1b[J") {
		t.Errorf("a picture for a terminal: %q", got)
	}
}

func TestMonitorLines(t *testing.T) {
	before, after := samples()
	var got strings.Builder
	for i := range after.Counters {
		got.WriteString(monitorText(after.Time, before.Counters[i], after.Counters[i],
			2*time.Second))
	}
	golden(t, "monitor", got.String())
}

func TestMonitorStreams(t *testing.T) {
	w := newWorld(t, fakeNode)
	for _, command := range []string{"monitor", "top"} {
		out := w.run(command, "--interval", "100ms", "--count", "2", "-o", "json")
		lines := strings.Split(strings.TrimSpace(w.stdout.String()), "\n")
		if len(lines) != 2 || !strings.HasSuffix(out, "[exit 0]\n") {
			t.Fatalf("%s printed\n%s", command, out)
		}
		for _, line := range lines {
			var sample struct {
				Time     time.Time
				Services []struct{ Name string }
			}
			if err := json.Unmarshal([]byte(line),
				&sample); err != nil || sample.Time.IsZero() || len(sample.Services) != 4 {
				t.Errorf("%s: line %s: %v", command, line, err)
			}
		}
	}
	if out := w.run("monitor", "--interval", "1ms"); !strings.Contains(out,
		`intervalMs "1" is out of range; write 100 to 60000`) {
		t.Errorf("a short interval: %s", out)
	}
	if out := w.run("monitor", "--interval", "100ms", "--count", "1"); strings.Count(out,
		"\n") != 5 {
		t.Errorf("monitor of two roles: %s", out)
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0", 1: "1", 999: "999", 999.6: "1.00k", 1234: "1.23k", 12345: "12.3k", 123456: "123k",
		1.5e6: "1.50M", 2e9: "2.00G", 3e12: "3000G",
	} {
		if got := scaled(n); got != want {
			t.Errorf("scaled(%v) = %s, want %s", n, got, want)
		}
	}
	for seconds, want := range map[int64]string{0: "0s", 59: "59s", 61: "1m1s", 7384: "2h3m",
		90000: "1d1h"} {
		if got := age(seconds); got != want {
			t.Errorf("age(%d) = %s, want %s", seconds, got, want)
		}
	}
	if got := perSecond(10, 5, time.Second); got != 0 {
		t.Errorf("a counter that began anew counts %v per second, want 0", got)
	}
}

// With -w a list is shown again and again, on the terminal's other screen, until it is interrupted.
func TestWatch(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		w := newWorld(t, fakeNode)
		w.terminal = terminal
		e := w.env("backend", "list", "web", "-w")
		ctx, cancel := context.WithCancel(t.Context())
		pictures := 0
		e.sleep = func(context.Context, time.Duration) {
			if pictures++; pictures == 3 {
				cancel()
			}
		}
		if code := run(ctx, e); code != exitOK {
			t.Errorf("exit code %d: %s", code, w.stderr.String())
		}
		out := w.stdout.String()
		if got := strings.Count(out, "SERVICE  NAME"); got != 3 {
			t.Errorf("%d pictures:\n%s", got, out)
		}
		if other := strings.HasPrefix(out, alternateScreen) &&
			strings.HasSuffix(out, normalScreen); other != terminal {
			t.Errorf("terminal %v, other screen %v:\n%q", terminal, other, out)
		}
	}
}

// A picture fits its window, whichever that is, from its beginning; the last line says what is cut.
func TestPicturesFitTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := window{columns: rapid.IntRange(0, 12).Draw(t, "columns"),
			rows: rapid.IntRange(0, 6).Draw(t, "rows")}
		lines := rapid.SliceOfN(rapid.StringMatching(`[a-zé]{0,16}`), 0, 8).Draw(t, "lines")
		var plainText, coloured strings.Builder
		for _, line := range lines {
			plainText.WriteString(line + "\n")
			coloured.WriteString(red + line + plain + "\n")
		}
		shown := fit(plainText.String(), w)
		if got := strings.NewReplacer(red, "", plain, "").Replace(fit(coloured.String(),
			w)); got != shown {
			t.Errorf("coloured, %q is shown as %q", shown, got)
		}
		got := strings.Split(strings.TrimSuffix(shown, "\n"), "\n")
		if w.rows > 1 && strings.Count(shown, "\n") >= w.rows {
			t.Errorf("%d lines in a window of %d: %q", len(got), w.rows, shown)
		}
		cut := w.rows > 0 && len(lines) >= w.rows
		for i, line := range got {
			if w.columns > 0 && utf8.RuneCountInString(line) > w.columns {
				t.Errorf("wider than %d: %q", w.columns, line)
			}
			if cut && i == len(got)-1 {
				more := fmt.Sprintf("%d more line", len(lines)-i)
				if !strings.HasPrefix(line, more[:min(len(more), max(w.columns, 0))]) {
					t.Errorf("the last line of %q in %v is %q", lines, w, line)
				}
			} else if len(lines) > 0 && !strings.HasPrefix(lines[i], line) {
				t.Errorf("line %d of %q is %q", i, lines, line)
			}
		}
	})
}

// The window is asked for its size at each picture.
func TestPicturesFollowTheWindow(t *testing.T) {
	w := newWorld(t, fakeNode)
	w.terminal, w.window = true, window{columns: 7, rows: 3}
	a := &app{env: w.env()}
	const text = "SERVICE  NAME\nweb      web1\nweb      web2\n"
	for _, want := range []string{
		"SERVICE\x1b[K\n2 more \x1b[K\n",
		"SERVICE  NAME\x1b[K\nweb      web1\x1b[K\nweb      web2\x1b[K\n",
	} {
		w.stdout.Reset()
		if err := a.picture(text); err != nil {
			t.Fatal(err)
		}
		if got := w.stdout.String(); got != "\x1b[H"+want+"\x1b[J" {
			t.Errorf("in a window %v: %q", w.window, got)
		}
		w.window = window{columns: 80, rows: 24}
	}
}

// Lists of ordinary names fit a terminal of 80 columns.
func TestListsFit(t *testing.T) {
	for _, args := range []string{"service list", "backend list", "backend list web"} {
		w := newWorld(t, fakeNode)
		for line := range strings.Lines(w.run(strings.Fields(args)...)) {
			if len(line) > 81 {
				t.Errorf("%s has %d columns: %s", args, len(line)-1, line)
			}
		}
	}
}

func TestTopSorts(t *testing.T) {
	before, after := samples()
	for order, want := range map[string]string{"configuration": "web1", "name": "web1",
		"packets": "web2", "bytes": "web2"} {
		f := frameOf(before, after)
		if f.sort(order); f.Services[0].Backends[0].Name != want {
			t.Errorf("sorted by %s, the first is %s", order, f.Services[0].Backends[0].Name)
		}
	}
}
