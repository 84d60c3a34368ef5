package serverload

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"sextant/config"
)

// page is what Apache 2.4 answers, shortened.
const page = `web1
ServerVersion: Apache/2.4.71 (Debian)
ServerMPM: prefork
ServerUptimeSeconds: 99
BusyWorkers: %d
IdleWorkers: 5
Scoreboard: W__K_W..........
`

func TestParseStatus(t *testing.T) {
	if n, err := parseStatus(strings.NewReader(fmt.Sprintf(page, 3))); err != nil || n != 3 {
		t.Errorf("%d busy workers, %v; want 3", n, err)
	}
	for text, want := range map[string]string{
		"":                            "?auto",
		"<html>BusyWorkers: 3":        "?auto",
		"BusyWorkers: many\n":         "no number",
		"BusyWorkers: -1\n":           "no number",
		"BusyWorkers: 99999999999999": "no number",
		strings.Repeat("x", 1<<17):    "too long",
	} {
		if _, err := parseStatus(strings.NewReader(text)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: error %v, want %q in it", text, err, want)
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add(fmt.Sprintf(page, 3))
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := parseStatus(strings.NewReader(text)); err == nil &&
			(n < 0 || !strings.Contains(text, "BusyWorkers: ")) {
			t.Errorf("%q: %d busy workers", text, n)
		}
	})
}

// The monitor tells of changes, of errors once, and asks whom it is told to.
func TestMonitor(t *testing.T) {
	var workers atomic.Int64
	workers.Store(4)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if workers.Load() == 0 {
			http.Error(w, "not now", http.StatusForbidden)
			return
		}
		fmt.Fprintf(w, page, workers.Load())
	}))
	defer server.Close()
	m := NewMonitor(t.Context())
	defer m.Stop()
	job := Job{Service: "web", Load: config.Load{Kind: config.LoadApache, Target: server.URL}}
	m.Set([]Job{job})
	if r := <-m.Results(); r.Err != nil || r.Service != "web" || r.Busy != 3 {
		t.Fatalf("four busy workers, one of which answers: %+v", r)
	}
	workers.Store(8)
	if r := <-m.Results(); r.Err != nil || r.Busy != 7 {
		t.Fatalf("eight busy workers, one of which answers: %+v", r)
	}
	workers.Store(0)
	if r := <-m.Results(); r.Err == nil || !strings.Contains(r.Err.Error(), "mod_status") {
		t.Fatalf("a page that is forbidden: %+v", r)
	}
	m.Set([]Job{{Service: "other", Load: config.Load{Kind: "steam"}}})
	for r := range m.Results() {
		if r.Service == "other" {
			if r.Err == nil {
				t.Errorf("a load of no kind: %+v", r)
			}
			break
		}
	}
}
