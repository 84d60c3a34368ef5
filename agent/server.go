package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"sextant/agent/api"
	"sextant/config"
)

// servers are where the agent listens.
type servers struct {
	socket, metrics *boundedListener // metrics is nil if there is no address for it
	running         []*http.Server
	failed          chan error // a server that ended by itself
}

// listen opens the API socket and, if there is an address for it, the metrics port. Connections
// wait for serve.
func listen(at config.API, log *slog.Logger) (*servers, error) {
	s := &servers{failed: make(chan error, 2)}
	socket, err := listenSocket(at.Socket)
	if err != nil {
		return nil, err
	}
	s.socket = newListener(socket, bounds{name: "socket", total: maxSocketConnections,
		stall: stallTimeout}, log)
	if at.Metrics.IsValid() {
		port, err := net.Listen("tcp", at.Metrics.String())
		if err != nil {
			s.stop()
			return nil, fmt.Errorf("listen for metrics on %s: %w; choose another api.metrics",
				at.Metrics, cause(err))
		}
		s.metrics = newListener(port, bounds{
			name: "metrics", total: maxMetricsConnections, perSource: maxSourceConnections,
		}, log)
	}
	return s, nil
}

// cause leaves out of a network or file error what the message names itself.
func cause(err error) error {
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
func listenSocket(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another api.socket", path, cause(err))
	}
	if peer, err := net.Dial("unix", path); err == nil {
		peer.Close()
		return nil, fmt.Errorf("listen on %s: another agent answers there; stop it, or choose "+
			"another api.socket", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replace socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another api.socket", path, cause(err))
	}
	if err := os.Chmod(path, 0o660); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// serve answers.
func (s *servers) serve(requests, metrics, connections, merge, chains http.Handler) {
	// some answers are streams without end; each write of theirs is bounded
	s.start(s.socket, requests, 0)
	if s.metrics != nil {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", metrics)
		mux.Handle("GET /v1/connections", connections)
		mux.Handle("GET /v1/merge", merge)
		mux.Handle("GET "+chainsPath, chains)
		s.start(s.metrics, mux, answerTimeout)
	}
}

func (s *servers) start(l *boundedListener, h http.Handler, answer time.Duration) {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		WriteTimeout: answer,
		IdleTimeout:  idleTimeout, MaxHeaderBytes: maxHeaderBytes,
	}
	s.running = append(s.running, server)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serve %s: %w", l.Addr(), err)
		}
	}()
}

// stop gives requests under way a moment to end.
func (s *servers) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, server := range s.running {
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
	}
	s.socket.Close()
	if s.metrics != nil {
		s.metrics.Close()
	}
}

// Status is what api.Agent says.
func (a *Agent) Status(ctx context.Context) (status api.Status, err error) {
	if doErr := a.do(ctx, func() { status, err = a.status() }); doErr != nil {
		return status, doErr
	}
	return status, err
}

func (a *Agent) status() (api.Status, error) {
	fingerprint, err := a.store.fingerprintOf(a.node)
	s := api.Status{
		Node: a.node.Name, Version: a.options.Version, Roles: a.node.Roles(), StartedAt: a.started,
		UptimeSeconds: int64(time.Since(a.started).Seconds()), ConfigHash: fingerprint,
		Warnings: append([]string{}, a.warnings...),
		Programs: []api.Program{}, PinDirectory: a.dir,
	}
	s.Warnings = append(s.Warnings, a.store.warnings()...)
	for _, warning := range []string{a.journal.warning(), a.etcd.warning(), a.lateWarning()} {
		if warning != "" {
			s.Warnings = append(s.Warnings, warning)
		}
	}
	for _, r := range a.running() {
		s.Warnings = append(s.Warnings, r.warnings(a)...)
		for _, at := range r.attached() {
			p := r.shown(at)
			p.Fault = a.faultAt(r.name, at)
			s.Programs = append(s.Programs, p)
		}
	}
	return s, err
}
