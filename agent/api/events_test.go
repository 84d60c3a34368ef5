package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
)

// numberedEvents are events as an agent remembers them.
func numberedEvents(from, to uint64) (list []api.Event) {
	for n := from; n <= to; n++ {
		list = append(list, api.Event{Number: n, Time: time.Unix(int64(n), 0).UTC(),
			Service: "web", Status: "panic"})
	}
	return list
}

// lines reads a stream line by line; those that are empty are left out.
func lines(t *testing.T, plain *http.Client, path string, headers ...string) (next func() string,
	end func()) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://agent"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := plain.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, response.Status)
	}
	in := bufio.NewScanner(response.Body)
	return func() string {
		t.Helper()
		for in.Scan() {
			if in.Text() != "" {
				return in.Text()
			}
		}
		t.Fatalf("the stream ended: %v", in.Err())
		return ""
	}, func() { response.Body.Close() }
}

func eventNumber(t *testing.T, line string) uint64 {
	t.Helper()
	var e api.Event
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &e); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return e.Number
}

// A client that was away gets what happened meanwhile, each event once, and nothing twice.
func TestEventsResume(t *testing.T) {
	_, agent, plain := start(t, nodeFile)
	tell := func(to uint64) {
		agent.mu.Lock()
		defer agent.mu.Unlock()
		agent.events = append(agent.events, numberedEvents(uint64(len(agent.events))+1, to)...)
	}
	tell(3)
	next, end := lines(t, plain, "/v1/events?after=1")
	for _, want := range []uint64{2, 3} {
		if got := eventNumber(t, next()); got != want {
			t.Fatalf("event %d, want %d", got, want)
		}
	}
	tell(5)
	if got := eventNumber(t, next()); got != 4 {
		t.Errorf("event %d, want 4", got)
	}
	end()

	// without a number only what is new; the headers say that the stream has begun
	next, end = lines(t, plain, "/v1/events")
	tell(6)
	if got := eventNumber(t, next()); got != 6 {
		t.Errorf("event %d, want 6", got)
	}
	end()

	// as a browser resumes
	next, end = lines(t, plain, "/v1/events?after=5", "Accept", "text/event-stream")
	id, found := strings.CutPrefix(next(), "id: ")
	if got := eventNumber(t, next()); !found || got != 6 {
		t.Errorf("id %q, event %d", id, got)
	}
	end()
	tell(7)
	next, end = lines(t, plain, "/v1/events?after=0", "Accept", "text/event-stream",
		"Last-Event-ID", id)
	next()
	if got := eventNumber(t, next()); got != 7 {
		t.Errorf("after %s: event %d, want 7", id, got)
	}
	end()

	// an id of another start: all is new
	begun := id[:strings.LastIndexByte(id, 45)]
	next, end = lines(t, plain, "/v1/events", "Last-Event-ID", begun+"1-6")
	if got := eventNumber(t, next()); got != 1 {
		t.Errorf("after another start: event %d, want 1", got)
	}
	end()
}

// The monitor's samples carry what happened since the event that the client names.
func TestMonitorResumes(t *testing.T) {
	_, agent, plain := start(t, nodeFile)
	agent.events = numberedEvents(1, 5)
	for after, want := range map[string]int{"?after=2": 3, "": 0, "?after=0": 5} {
		next, end := lines(t, plain, "/v1/monitor"+after)
		var sample api.Sample
		if err := json.Unmarshal([]byte(next()), &sample); err != nil {
			t.Fatal(err)
		}
		if len(sample.Events) != want {
			t.Errorf("monitor%s: %d events, want %d", after, len(sample.Events), want)
		}
		end()
	}
}

func TestEventsThatAreNone(t *testing.T) {
	_, _, plain := start(t, nodeFile)
	for _, after := range []string{"x", "-1", "1-", "-", "x-1", "1-2-3", "99999999999999999999"} {
		for _, path := range []string{"events", "monitor"} {
			response, err := plain.Get(fmt.Sprintf("http://agent/v1/%s?after=%s", path, after))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusBadRequest {
				t.Errorf("%s after %q: %s", path, after, response.Status)
			}
		}
	}
}
