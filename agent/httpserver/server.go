// Package httpserver serves a daemon's API by HTTP on a Unix socket and, if configured, its metrics
// on a TCP port and, over TLS, its API on another. Connections, sizes and times of requests are
// bounded.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"sextant/agent/access"
	"sextant/agent/tracing"
	"sextant/agent/web"
	"sextant/config"
)

// Servers are where a daemon listens.
type Servers struct {
	// HTTP2 lets clients of the API speak HTTP/2, which gRPC needs. Set it before Serve.
	HTTP2           bool
	socket, metrics *boundedListener // metrics is nil if there is no address for it
	remote          *boundedListener // the API over TLS; nil: there is none
	kept            *keptSocket      // below socket
	stopped         context.Context  // ends with Stop
	stop            func()
	gate            *access.Gate
	log             *slog.Logger
	running         []*http.Server
	failed          chan error // a server that ended by itself
}

// Listen opens the API socket and, if its address is valid, the metrics port. Connections wait for
// Serve. The daemon's name, and that of the setting that has the path, are for errors.
func Listen(daemon, setting, path string, port netip.AddrPort, log *slog.Logger) (*Servers, error) {
	s := &Servers{failed: make(chan error, 3), log: log}
	s.stopped, s.stop = context.WithCancel(context.Background())
	s.kept = &keptSocket{path: path, listen: func() (*net.UnixListener, error) {
		return listenSocket(daemon, setting, path)
	}}
	var err error
	if s.kept.now, err = s.kept.listen(); err != nil {
		s.stop()
		return nil, err
	}
	s.socket = newListener(s.kept, bounds{name: "socket", total: maxSocketConnections,
		stall: stallTimeout}, log)
	if port.IsValid() {
		l, err := net.Listen("tcp", port.String())
		if err != nil {
			s.Stop()
			return nil, fmt.Errorf("listen for metrics on %s: %w; choose another api.metrics",
				port, Cause(err))
		}
		s.metrics = newListener(l, bounds{
			name: "metrics", total: maxMetricsConnections, perSource: maxSourceConnections,
		}, log)
	}
	return s, nil
}

// ListenTLS opens the port on which the API is served over TLS 1.3, if there is to be one. The
// error says which of its files can't be used, and why.
func (s *Servers) ListenTLS(l *config.Listen) error {
	if l == nil {
		return nil
	}
	gate, err := access.Open(*l, s.log)
	if err != nil {
		return err
	}
	port, err := net.Listen("tcp", l.Address.String())
	if err != nil {
		return fmt.Errorf("listen for the API on %s: %w; choose another api.listen.address",
			l.Address, Cause(err))
	}
	s.gate = gate
	s.remote = newListener(port, bounds{name: "tls", total: maxRemoteConnections,
		perSource: maxSourceConnections, stall: stallTimeout}, s.log)
	return nil
}

// Cause leaves out of a network or file error what the message names itself.
func Cause(err error) error {
	var call *os.SyscallError
	var operation *net.OpError
	var path *os.PathError
	switch {
	case errors.As(err, &call):
		return call.Err
	case errors.As(err, &operation):
		return operation.Err
	case errors.As(err, &path):
		return path.Err
	}
	return err
}

// listenSocket replaces a socket that a dead agent left. Only root and its group may connect.
func listenSocket(daemon, setting, path string) (*net.UnixListener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another %s", path, Cause(err), setting)
	}
	if peer, err := net.Dial("unix", path); err == nil {
		peer.Close()
		return nil, fmt.Errorf("listen on %s: another %s answers there; stop it, or choose "+
			"another %s", path, daemon, setting)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replace socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another %s", path, Cause(err), setting)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Serve answers on the socket, and on the port if there is one.
func (s *Servers) Serve(requests, port http.Handler) {
	requests = tracing.Handler(requests)
	// some answers are streams without end; each write of theirs is bounded
	s.start(s.socket, s.socket.bounds, requests, 0)
	go s.keepSocket()
	if s.remote != nil {
		s.start(tls.NewListener(s.remote, s.tls()), s.remote.bounds,
			web.Beside(s.gate.Handler(requests)), 0)
	}
	if s.metrics != nil {
		s.start(s.metrics, s.metrics.bounds, port, answerTimeout)
	}
}

// tls offers HTTP/2 if it is spoken.
func (s *Servers) tls() *tls.Config {
	c := s.gate.TLS()
	if !s.HTTP2 {
		return c
	}
	choose := c.GetConfigForClient
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		chosen, err := choose(hello)
		if err == nil {
			chosen = chosen.Clone()
			chosen.NextProtos = []string{"h2", "http/1.1"}
		}
		return chosen, err
	}
	return c
}

// Failed yields the error of a server that ended by itself.
func (s *Servers) Failed() <-chan error { return s.failed }

func (s *Servers) start(l net.Listener, b bounds, h http.Handler, answer time.Duration) {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: answer,
		IdleTimeout:  idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		ConnContext: withPeer,
		ErrorLog:    slog.NewLogLogger(s.log.With("listener", b.name).Handler(), slog.LevelDebug),
	}
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	if s.HTTP2 && l != net.Listener(s.metrics) {
		server.Protocols.SetHTTP2(true)
		server.Protocols.SetUnencryptedHTTP2(true) // of the Unix socket
		server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: maxStreams}
	}
	s.running = append(s.running, server)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve %s: %w", l.Addr(), err)
		}
	}()
}

// Stop gives requests under way a moment to end.
func (s *Servers) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.stop()
	for _, server := range s.running {
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}
	s.socket.Close()
	for _, l := range []*boundedListener{s.metrics, s.remote} {
		if l != nil {
			l.Close()
		}
	}
}
