// Package archivetest runs a real etcd on the loopback interface, for tests.
package archivetest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"sextant/agent/archive"
	"sextant/config"
)

// Server is an etcd with a data directory of its own. It ends with the test.
type Server struct {
	t         *testing.T
	etcd      config.Etcd // how to reach it
	arguments []string
	cmd       *exec.Cmd
	output    bytes.Buffer
}

// Start runs an etcd with more flags, like those of TLS, and waits until it answers. How to reach
// it is in etcd, except for the endpoint. The test fails if Debian's etcd-server is not there.
func Start(t *testing.T, etcd config.Etcd, flags ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Fatal("etcd is missing; scripts/deps.sh test installs it")
	}
	scheme, listen := "http", freeAddress(t)
	if etcd.TLS.CA != "" {
		scheme = "https"
	}
	etcd.Endpoints = []string{scheme + "://" + listen}
	etcd.Prefix = "/sextant"
	const peer = "http://127.0.0.1:0" // a cluster of one has nobody to talk to
	s := &Server{t: t, etcd: etcd, arguments: append([]string{
		"--data-dir", t.TempDir(), "--listen-client-urls", etcd.Endpoints[0],
		"--advertise-client-urls", etcd.Endpoints[0],
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster",
		"default=" + peer,
		"--log-level", "error", "--logger", "zap",
	}, flags...)}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Loopback is the address of this process's servers. No other process has it, so that a port stays
// free while a server is away.
func Loopback() net.IP {
	id := os.Getpid() // of 22 bits at most
	return net.IPv4(127, 64|byte(id>>16), byte(id>>8), byte(id))
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(Loopback().String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Etcd is how to reach it.
func (s *Server) Etcd() *config.Etcd {
	etcd := s.etcd
	return &etcd
}

// Text is the same as a value of edge.etcd in a node file, for servers without TLS and users.
func (s *Server) Text() string { return fmt.Sprintf("{endpoints: [%q]}", s.etcd.Endpoints[0]) }

// Kill ends it at once, as a power failure would. What it confirmed is on disk.
func (s *Server) Kill() {
	if s.cmd != nil {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.cmd = nil
	}
}

// Restart runs it, again if it was killed, with the data that it had.
func (s *Server) Restart() {
	s.t.Helper()
	s.cmd = exec.Command("etcd", s.arguments...)
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	a := archive.New(s.Etcd())
	defer a.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := a.Ping(ctx); err != nil {
		s.Kill()
		s.t.Fatalf("etcd does not answer: %v\n%s", err, &s.output)
	}
}
