package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/te/topology"
	"sextant/te/topology/generate"
)

// start runs a controller of four spines and four leaves, and waits until it answers.
func start(t *testing.T, text string, changes ...func(*Config)) (*Client, func()) {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "c.sock")
	c, err := Parse([]byte("topology: fabric\nseed: 1\napi: {socket: " + socket + "}\n" +
		strings.ReplaceAll(text, "DIR", dir)))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Config: c, Version: "test", Log: slog.New(slog.DiscardHandler),
			Open: func(string) (*topology.Graph, error) { return generate.SpineLeaf(4, 4, 0) }})
	}()
	stop := func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	client := NewClient(socket)
	for {
		if _, err := client.Status(t.Context()); err == nil {
			return client, stop
		} else if !errors.Is(err, api.ErrUnreachable) {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
}

func testFlow(port uint16) api.Flow {
	return api.Flow{Protocol: "tcp",
		Source:      netip.AddrPortFrom(netip.MustParseAddr("2001:db8:1::1"), port),
		Destination: netip.MustParseAddrPort("[2001:db8:2::1]:443")}
}

func paused(port uint16, path ...string) Report {
	return Report{Flow: testFlow(port), Path: path, Pause: true, Queues: []QueueState{
		{From: path[0], To: path[1], Bytes: 900, Size: 1000}}}
}

// leaves are two leaves and a spine between, by the names that the fabric gives.
func leaves(t *testing.T, c *Client) (from, via, to string) {
	t.Helper()
	links, err := c.Links(t.Context())
	if err != nil || len(links) != 32 {
		t.Fatalf("%d links, %v", len(links), err)
	}
	for _, l := range links {
		if from == "" && strings.HasPrefix(l.From, "leaf") {
			from, via = l.From, l.To
		}
		if l.From == via && l.To != from {
			to = l.To
		}
	}
	if to == "" {
		t.Fatalf("no leaves in %+v", links)
	}
	return from, via, to
}

// From a report to the path, its place in the lists, the journal's file and the metrics.
func TestReportMovesAFlow(t *testing.T) {
	c, stop := start(t, "policy: {backoffLeast: 1h, backoffMost: 1h}\n"+
		"journal: DIR/journal\nqueueBytes: 1000\n")
	from, via, to := leaves(t, c)
	ctx := t.Context()
	r := paused(1, from, via, to)
	would, err := c.Simulate(ctx, r)
	if err != nil || would.Verdict != "not-lighter" {
		t.Fatalf("nothing is known, and the flow would be %q (%v)", would.Verdict, err)
	}
	decisions, err := c.Report(ctx, []Report{r, {Flow: testFlow(2), Path: r.Path}})
	if err != nil || len(decisions) != 1 || decisions[0].Verdict != "moved" {
		t.Fatalf("%+v, %v", decisions, err)
	}
	d := decisions[0]
	if d.Current == nil || *d.Current.Weight != 0.9 || len(d.Candidates) != 2 ||
		slices.Contains(d.Path, via) || d.Path[0] != from || d.Path[2] != to || d.Number != 1 {
		t.Errorf("%+v", d)
	}
	flow, err := c.Flow(ctx, r.Flow)
	if err != nil || !slices.Equal(flow.Path, d.Path) || flow.Moves != 1 {
		t.Errorf("the flow is %+v, %v", flow, err)
	}
	if _, err := c.Flow(ctx, testFlow(2)); codeOf(err) != api.NotFound {
		t.Errorf("a flow that no report asked for: %v", err)
	}
	again, err := c.Report(ctx, []Report{r})
	if err != nil || again[0].Verdict != "backing-off" {
		t.Errorf("a moment later: %+v, %v", again, err)
	}
	status, err := c.Status(ctx)
	if err != nil || status.Reports != 3 || status.Flows != 1 || counted(status, "moved") != 1 ||
		counted(status, "backing-off") != 1 {
		t.Errorf("%+v, %v", status, err)
	}
	reroutes, err := c.Reroutes(ctx, 10, true)
	if err != nil || len(reroutes) != 1 || !slices.Equal(reroutes[0].Path, d.Path) {
		t.Errorf("%+v, %v", reroutes, err)
	}
	text := scrape(t, c)
	for _, line := range []string{`sextant_controller_decisions_total{verdict="moved"} 1`,
		"sextant_controller_reports_total 3", "sextant_listener_connections{"} {
		if !strings.Contains(text, line) {
			t.Errorf("metrics lack %q:\n%s", line, text)
		}
	}
	stop()
	checkJournal(t, c, d)
}

func scrape(t *testing.T, c *Client) string {
	t.Helper()
	text, err := c.http.MetricsText(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func counted(s Status, verdict string) uint64 {
	for _, v := range s.Verdicts {
		if v.Verdict == verdict {
			return v.Count
		}
	}
	return 0
}

func checkJournal(t *testing.T, c *Client, want Decision) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(c.socket), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	var d Decision
	if err := json.Unmarshal(text, &d); err != nil || d.Verdict != "moved" ||
		!slices.Equal(d.Path, want.Path) {
		t.Errorf("the journal says %s (%v)", text, err)
	}
}

func codeOf(err error) api.Code {
	var e *api.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// What does not fit the topology is refused, changes nothing, and is counted.
func TestBadReportsAreRefused(t *testing.T) {
	c, stop := start(t, "")
	defer stop()
	from, via, to := leaves(t, c)
	good := paused(1, from, via, to)
	for what, spoil := range map[string]func(*Report){
		"router":   func(r *Report) { r.Path = []string{from, "nowhere", to} },
		"no path":  func(r *Report) { r.Path = nil },
		"no link":  func(r *Report) { r.Path = []string{from, to} },
		"queue":    func(r *Report) { r.Queues = []QueueState{{From: from, To: to}} },
		"negative": func(r *Report) { r.Queues = []QueueState{{From: from, To: via, Bytes: -1}} },
		"protocol": func(r *Report) { r.Flow.Protocol = "sctp" },
		"no flow":  func(r *Report) { r.Flow.Source = netip.AddrPort{} },
	} {
		bad := good
		spoil(&bad)
		if _, err := c.Report(t.Context(), []Report{good, bad}); codeOf(err) == "" ||
			!strings.Contains(err.Error(), "report 2: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := c.Report(t.Context(), nil); codeOf(err) != api.Invalid {
		t.Errorf("no reports at all: %v", err)
	}
	s, err := c.Status(t.Context())
	if err != nil || s.Reports != 0 || s.Flows != 0 || s.Refused != 14 {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestPinsAndLinks(t *testing.T) {
	c, stop := start(t, "policy: {name: sextant}")
	defer stop()
	from, via, to := leaves(t, c)
	ctx := t.Context()
	if err := c.Pin(ctx, Pin{Flow: testFlow(1), Path: []string{from, to}}); err == nil {
		t.Error("a path without a link was pinned")
	}
	if err := c.Pin(ctx, Pin{Flow: testFlow(1), Path: []string{from, via, to}}); err != nil {
		t.Fatal(err)
	}
	decisions, err := c.Report(ctx, []Report{paused(1, from, via, to)})
	if err != nil || decisions[0].Verdict != "pinned" {
		t.Errorf("%+v, %v", decisions, err)
	}
	if err := c.Unpin(ctx, testFlow(1)); err != nil {
		t.Error(err)
	}
	if err := c.Unpin(ctx, testFlow(1)); codeOf(err) != api.NotFound {
		t.Errorf("unpinned twice: %v", err)
	}
	decisions, err = c.SetLink(ctx, LinkState{From: via, To: to})
	if err != nil || len(decisions) != 1 || decisions[0].Verdict != "moved" ||
		decisions[0].Current.Weight != nil || slices.Contains(decisions[0].Path, via) ||
		decisions[0].Reason != "a link of its former path is down" {
		t.Errorf("%+v, %v", decisions, err)
	}
	s, err := c.Status(ctx)
	if err != nil || s.LinksDown != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if again, err := c.SetLink(ctx, LinkState{From: via, To: to}); err != nil || len(again) != 0 {
		t.Errorf("the same news again: %+v, %v", again, err)
	}
}

// Decisions that no memory holds any more are those that came first, and the file rotates.
func TestJournalIsARing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, err := openJournal(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const n = journalMemory + 77
	for range n {
		j.add(&Decision{Verdict: "moved"})
	}
	last := j.recent(journalMemory, func(*Decision) bool { return true })
	if len(last) != journalMemory || last[0].Number != 78 || last[len(last)-1].Number != n {
		t.Errorf("%d decisions, from %d to %d", len(last), last[0].Number,
			last[len(last)-1].Number)
	}
	for i := range len(last) - 1 {
		if last[i+1].Number != last[i].Number+1 {
			t.Fatalf("%d follows %d", last[i+1].Number, last[i].Number)
		}
	}
	j.close()
	text, err := os.ReadFile(path)
	if lines := uint64(bytes.Count(text, []byte("\n"))); err != nil || lines+j.lost.Load() != n {
		t.Errorf("%d lines, %d lost of %d (%v)", lines, j.lost.Load(), n, err)
	}
	if _, err := openJournal(t.TempDir(), slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a folder was taken for a journal")
	}
}

func TestParse(t *testing.T) {
	c, err := Parse([]byte("topology: x\npolicy: {name: smoothie, choices: 3}"))
	if err != nil || c.Policy.Choices != 3 || c.Policy.Margin != 0.001 ||
		c.Policy.BackoffMost != time.Second || c.API.Socket != DefaultSocket {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"policy: {name: smoothie}":                              "topology",
		"topology: x\npolicy: {name: hula}":                     "hula",
		"topology: x\npolicy: {choices: 17}":                    "choices",
		"topology: x\npolicy: {metric: delay}":                  "metric",
		"topology: x\ncolour: red":                              "colour",
		"topology: x\nqueueBytes: 0":                            "queueBytes",
		"topology: x\napi: {socket: ''}":                        "socket",
		"topology: x\nlinks: [{from: a, to: b, queueBytes: 0}]": "links[0]",
		"topology: [": "[",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("topology: x\npolicy: {name: sextant, expiry: 1s}\nlinks: [{from: a}]"))
	f.Add([]byte("topology: bgp\nbgp: {asn: 1, routerID: 192.0.2.9, neighbors: [{address: ::1, " +
		"asn: 1, families: [link-state]}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := Parse(text); err == nil {
			if _, err := c.Policy.settings(); err != nil {
				t.Errorf("%q was taken: %v", text, err)
			}
		}
	})
}

// A path that does not exist is refused as the agent's API refuses it.
func TestUnknownPath(t *testing.T) {
	c, stop := start(t, "")
	defer stop()
	if _, err := api.Ask[Status](t.Context(), c.http, http.MethodGet, "/v1/nothing", nil,
		nil); codeOf(err) != api.NotFound || !strings.Contains(err.Error(), "package controller") {
		t.Error(err)
	}
}
