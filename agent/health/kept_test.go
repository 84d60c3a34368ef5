package health_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sextant/agent/health"
	"sextant/config"
)

// counted is a server that answers checks of a kind, and counts what it meets with.
type counted struct {
	*httptest.Server
	opened, open, asked atomic.Int32
	pace                atomic.Int64 // how long an answer takes
	ill                 atomic.Bool
}

func countedServer(t *testing.T, kind config.CheckKind) *counted {
	t.Helper()
	handler := pages()
	if kind == config.CheckGRPC {
		handler = grpcAnswers(1)
	}
	s := &counted{}
	s.pace.Store(int64(time.Millisecond)) // so that no check finds its answer there already
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		r *http.Request) {
		s.asked.Add(1)
		time.Sleep(time.Duration(s.pace.Load()))
		if s.ill.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, now http.ConnState) {
		switch now {
		case http.StateNew:
			s.opened.Add(1)
			s.open.Add(1)
		case http.StateClosed:
			s.open.Add(-1)
		}
	}
	switch kind {
	case config.CheckHTTPS:
		s.StartTLS()
	case config.CheckGRPC:
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		fallthrough
	default:
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *counted) address() string { return s.Listener.Addr().String() }

// await waits until so many connections are open.
func (s *counted) await(t *testing.T, what string, open int32) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); s.open.Load() != open; {
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d connections are open, want %d", what, s.open.Load(), open)
		}
		time.Sleep(time.Millisecond)
	}
}

// keptCheck is one whose connections can be kept.
func keptCheck(kind config.CheckKind) *config.Check {
	c := check(kind)
	if c.Insecure = kind == config.CheckHTTPS; kind == config.CheckGRPC {
		c.Service = "api"
	}
	return c
}

var keptKinds = []config.CheckKind{config.CheckHTTP, config.CheckHTTPS, config.CheckGRPC}

// A kept connection takes the questions of many checks, until it is closed; without it each check
// has its own.
func TestKeptConnection(t *testing.T) {
	const checks = 20
	for _, kind := range keptKinds {
		server, c, keep := countedServer(t, kind), keptCheck(kind), &health.Kept{}
		all := func(keep *health.Kept) int32 {
			opened := server.opened.Load()
			for range checks {
				if got := probeKept(t.Context(), c, server.address(), keep); got != "ok" {
					t.Fatalf("%s: %s", kind, got)
				}
			}
			return server.opened.Load() - opened
		}
		if opened := all(keep); opened > checks/4 {
			t.Errorf("%s: %d checks of one connection opened %d", kind, checks, opened)
		}
		server.await(t, string(kind)+", kept", 1)
		keep.Close()
		server.await(t, string(kind)+", closed", 0)
		if opened := all(nil); opened != checks {
			t.Errorf("%s: %d checks that keep nothing opened %d connections", kind, checks, opened)
		}
		server.await(t, string(kind)+", not kept", 0)
	}
}

// A check whose time is over, or that fails otherwise, keeps no connection; the next one works.
func TestFailureKeepsNothing(t *testing.T) {
	for _, kind := range keptKinds {
		server, keep := countedServer(t, kind), &health.Kept{}
		ask := func(what, want string, timeout time.Duration) {
			c := keptCheck(kind)
			c.Timeout = timeout
			if got := probeKept(t.Context(), c, server.address(), keep); !strings.Contains(got,
				want) {
				t.Errorf("%s, %s: %s, want %s", kind, what, got, want)
			}
		}
		const enough = 30 * time.Second
		ask("first", "ok", enough)
		server.await(t, string(kind)+", before", 1)
		server.pace.Store(int64(time.Second))
		ask("too slow", "no answer in time", 100*time.Millisecond)
		server.pace.Store(int64(time.Millisecond))
		server.await(t, string(kind)+", after a timeout", 0)
		ask("after a timeout", "ok", enough)
		server.await(t, string(kind)+", kept again", 1)
		server.ill.Store(true)
		ask("it is ill", "503", enough)
		server.await(t, string(kind)+", after a failure", 0)
		keep.Close()
	}
}

// A server that begins again, or closes what is idle, is no failure.
func TestServerBeginsAgain(t *testing.T) {
	for _, kind := range keptKinds {
		server, c, keep := countedServer(t, kind), keptCheck(kind), &health.Kept{}
		for i := range int32(5) {
			if got := probeKept(t.Context(), c, server.address(), keep); got != "ok" {
				t.Fatalf("%s, check %d: %s", kind, i, got)
			}
			server.await(t, string(kind), 1)
			if server.opened.Load() <= i {
				t.Errorf("%s: check %d had a connection that the server had closed", kind, i)
			}
			if i%2 == 0 || kind == config.CheckGRPC {
				server.CloseClientConnections()
			} else {
				server.Config.SetKeepAlivesEnabled(false) // which closes those that are idle
			}
			server.await(t, string(kind)+", closed", 0)
			server.Config.SetKeepAlivesEnabled(true)
		}
		keep.Close()
	}
}
