package api

import (
	"encoding/json"
	"io"
	"net/http"
)

const eventStream = "text/event-stream"

// stream is an answer without end: lines of JSON, or server-sent events (WHATWG HTML section 9.2)
// for those who accept them.
type stream struct {
	w      http.ResponseWriter
	flush  *http.ResponseController
	events bool
}

func newStream(w http.ResponseWriter, r *http.Request) *stream {
	s := &stream{w: w, flush: http.NewResponseController(w),
		events: accepts(r, eventStream)}
	w.Header().Set("Content-Type", "application/jsonl")
	if s.events {
		w.Header().Set("Content-Type", eventStream)
	}
	return s
}

// begin sends the headers, so that the client knows that the stream has begun.
func (s *stream) begin() error {
	s.w.WriteHeader(http.StatusOK)
	return s.flush.Flush()
}

// comment sends what clients of server-sent events ignore.
func (s *stream) comment() error {
	if _, err := io.WriteString(s.w, ":\n\n"); err != nil {
		return err
	}
	return s.flush.Flush()
}

// sendAs sends one value; server-sent events carry its id.
func (s *stream) sendAs(id string, value any) error {
	if s.events {
		if _, err := io.WriteString(s.w, "id: "+id+"\n"); err != nil {
			return err
		}
	}
	return s.send(value)
}

// send writes one value, and sends it at once.
func (s *stream) send(value any) error {
	if err := s.write(value); err != nil {
		return err
	}
	return s.flush.Flush()
}

// write writes one value, which may be sent later. JSON has no line ends, so that one line of data
// is enough.
func (s *stream) write(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	line := string(text) + "\n"
	if s.events {
		line = "data: " + line + "\n"
	}
	_, err = io.WriteString(s.w, line)
	return err
}
