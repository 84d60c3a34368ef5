package webserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	lingerTimeout = 500 * time.Millisecond // for reading what a refused client still sends
	lingerBytes   = 64 << 10
)

// Status is what GET /status answers.
type Status struct {
	Busy   int    `json:"busy"`   // workers with a connection, but for the one that asks
	Queued int    `json:"queued"` // connections that wait to be accepted
	Served uint64 `json:"served"` // requests answered, but for those of the status
}

// work is a worker's time with one connection.
func (s *Server) work(connection *net.TCPConn) {
	s.register(connection)
	defer func() {
		s.unregister(connection)
		connection.Close()
		<-s.workers
	}()
	reader := newRequestReader(connection)
	for first := true; s.mayRead(connection, first); first = false {
		req, err := reader.next()
		if refused := (*refusal)(nil); errors.As(err, &refused) {
			s.refuse(connection, refused)
			return
		}
		if err != nil || !s.answer(connection, req) {
			return
		}
	}
}

// answer serves a request and reports whether the connection is kept.
func (s *Server) answer(connection net.Conn, req request) (keep bool) {
	keep = s.config.KeepAlive && !req.close
	r := response{code: http.StatusOK, server: s.config.Name, close: !keep, http10: req.http10}
	if req.status {
		text, err := s.status()
		if err != nil {
			r.code, text = http.StatusInternalServerError, []byte(err.Error()+"\n")
		}
		r.mime, r.size, r.body = "application/json", int64(len(text)), bytes.NewReader(text)
	} else {
		if !s.serve(req.demand) {
			return false
		}
		r.mime, r.size, r.body = "text/plain", req.bytes, Body(req.bytes)
	}
	if req.head {
		r.body = nil
	}
	return r.writeTo(connection) == nil && keep
}

// serve waits until the emulated machine has served the demand, and reports
// whether it did before the server gave up.
func (s *Server) serve(demand time.Duration) bool {
	done, err := s.processor.submit(demand)
	if err != nil {
		return false
	}
	select {
	case <-done:
		s.served.Add(1)
		return true
	case <-s.abandon:
		return false
	}
}

func (s *Server) status() ([]byte, error) {
	status := Status{Busy: len(s.workers) - 1, Served: s.served.Load()}
	for _, listener := range s.listeners {
		queued, err := listener.queued()
		if err != nil && !errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		status.Queued += queued
	}
	text, err := json.Marshal(status)
	return append(text, '\n'), err
}

// refuse answers with an error and waits for the client to stop sending: data
// that arrive after the close would have the kernel answer RST, which can
// overtake the answer.
func (s *Server) refuse(connection *net.TCPConn, refused *refusal) {
	text := refused.Error() + "\n"
	r := response{code: refused.code, server: s.config.Name, mime: "text/plain", close: true,
		size: int64(len(text)), body: strings.NewReader(text)}
	if r.writeTo(connection) != nil || connection.CloseWrite() != nil {
		return
	}
	connection.SetReadDeadline(time.Now().Add(lingerTimeout))
	io.CopyN(io.Discard, connection, lingerBytes)
}
