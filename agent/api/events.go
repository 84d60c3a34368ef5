package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Numbered is something that happened, with a number that counts from 1 since the daemon's start.
type Numbered struct {
	Number uint64
	Value  any
}

// EventSource tells what has happened to a daemon.
type EventSource struct {
	Started time.Time // numbers count since then
	// Since returns what is wanted of what happened after a number, in order, as far as it is
	// remembered, and the number of the last event that it looked at.
	Since func(ctx context.Context, after uint64) (events []Numbered, last uint64, err error)
}

const (
	// eventInterval is how often a source is asked for what is new.
	eventInterval = 200 * time.Millisecond
	// keepAlive is after how much silence a comment of server-sent events says that the daemon
	// is there.
	keepAlive = 15 * time.Second
)

// Stream sends what happens until the client leaves: after the event that the parameter after or
// the header Last-Event-ID (WHATWG HTML section 9.2) names, or from now on. An id that server-sent
// events carry names the daemon's start, too: after another start all that is remembered is new.
func (s EventSource) Stream(w http.ResponseWriter, r *http.Request) {
	after, given, err := s.resumed(r)
	if err != nil {
		writeError(w, err)
		return
	}
	events, last, err := s.Since(r.Context(), after)
	if err != nil {
		writeError(w, err)
		return
	}
	if !given {
		events = nil
	}
	out := newStream(w, r)
	if out.begin() != nil {
		return
	}
	ticker := time.NewTicker(eventInterval)
	defer ticker.Stop()
	for spoken := time.Now(); ; {
		for _, e := range events {
			if out.sendAs(s.id(e.Number), e.Value) != nil {
				return
			}
			spoken = time.Now()
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
		if out.events && time.Since(spoken) >= keepAlive {
			if out.comment() != nil {
				return
			}
			spoken = time.Now()
		}
		if events, last, err = s.Since(r.Context(), last); err != nil {
			// The stream has begun; the error is its last line.
			_ = out.send(errorBody{errorOf(err)})
			return
		}
	}
}

// id is that of an event in server-sent events: START-NUMBER, START in milliseconds since 1970.
func (s EventSource) id(number uint64) string {
	return fmt.Sprintf("%d-%d", s.Started.UnixMilli(), number)
}

// resumed is after which event a client wants the stream to go on; given is false if it does not
// say so.
func (s EventSource) resumed(r *http.Request) (after uint64, given bool, err error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.FormValue("after")
	}
	if text == "" {
		return 0, false, nil
	}
	dash := strings.LastIndexByte(text, '-')
	after, err = strconv.ParseUint(text[dash+1:], 10, 64)
	if err == nil && dash >= 0 {
		var at int64
		if at, err = strconv.ParseInt(text[:dash], 10, 64); at != s.Started.UnixMilli() {
			after = 0
		}
	}
	if err != nil {
		return 0, false, invalid(fmt.Sprintf("after %q is no event; write the number of one, 0 "+
			"for all that are remembered, or the id that a stream sent", text))
	}
	return after, true, nil
}

// eventSource is what has happened to the agent.
func (h handler) eventSource(ctx context.Context) (EventSource, error) {
	status, err := h.agent.Status(ctx)
	return EventSource{status.StartedAt, h.eventsSince}, err
}

func (h handler) eventsSince(ctx context.Context, after uint64) ([]Numbered, uint64, error) {
	events, err := h.agent.Events(ctx, after)
	list := make([]Numbered, len(events))
	for i, e := range events {
		list[i], after = Numbered{e.Number, e}, e.Number
	}
	return list, after, err
}

// events streams what happens to services, backends, policies and paths.
func (h handler) events(w http.ResponseWriter, r *http.Request) {
	source, err := h.eventSource(r.Context())
	if err != nil {
		writeError(w, err)
		return
	}
	source.Stream(w, r)
}
