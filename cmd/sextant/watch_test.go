package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

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
