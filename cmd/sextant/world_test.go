package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sextant/agent/api"
	"sextant/config"
	"sextant/linux/facts"
)

// world is a machine with a fake agent, for the commands of one test.
type world struct {
	t           *testing.T
	agent       *fakeAgent
	socket      string
	stdin       string
	interactive bool
	terminal    bool
	facts       facts.Facts
	parts       []part
	window      window
	environ     map[string]string
	stdout      bytes.Buffer
	stderr      bytes.Buffer
}

func newWorld(t *testing.T, nodeFile string) *world {
	t.Helper()
	node, err := config.Parse("node.yaml", []byte(nodeFile))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, agent: &fakeAgent{node: node}, facts: fakeFacts(),
		socket:  filepath.Join(t.TempDir(), "s"),
		environ: map[string]string{}}
	listener, err := net.Listen("unix", w.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: api.NewHandler(w.agent)}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	w.environ["SEXTANT_SOCKET"] = w.socket
	return w
}

func (w *world) env(args ...string) *env {
	return &env{
		args:  args,
		stdin: strings.NewReader(w.stdin), stdout: &w.stdout, stderr: &w.stderr,
		interactive: w.interactive, terminal: w.terminal,
		window:   func() window { return w.window },
		getenv:   func(name string) string { return w.environ[name] },
		connect:  api.NewClient,
		sleep:    func(context.Context, time.Duration) {},
		memory:   func() (uint64, error) { return 8 << 30, nil },
		runAgent: w.runAgent,
		unload: func(node *config.Node, bpf string) error {
			fmt.Fprintf(&w.stdout, "unload node %v bpf %q\n", node != nil, bpf)
			return nil
		},
		demo: func(_ context.Context, o demoOptions) error {
			_, err := io.WriteString(o.Output, "demo\n")
			return err
		},
		examine: func(x examination) (facts.Facts, error) {
			fmt.Fprintf(&w.stderr, "examine node %s bpf %q quick %v\n", x.Node.Name, x.BPF, x.Quick)
			return w.facts, nil
		},
		machine: func(examination) []part { return w.parts },
	}
}

func (w *world) runAgent(_ context.Context, o agentOptions) error {
	fmt.Fprintf(&w.stdout, "agent of %s, bpf %q, debug %v\n", o.Node.Name, o.BPF,
		o.Log.Enabled(context.Background(),
			slog.LevelDebug))
	return nil
}

// run executes a command line and writes what it printed like a terminal session.
func (w *world) run(args ...string) string {
	w.stdout.Reset()
	w.stderr.Reset()
	code := run(w.t.Context(), w.env(args...))
	var text strings.Builder
	fmt.Fprintf(&text, "$ sextant %s\n%s", strings.Join(args, " "), w.stdout.String())
	if w.stderr.Len() > 0 {
		fmt.Fprintf(&text, "[stderr]\n%s", w.stderr.String())
		if !strings.HasSuffix(w.stderr.String(), "\n") {
			text.WriteString("\n")
		}
	}
	fmt.Fprintf(&text, "[exit %d]\n", code)
	return strings.ReplaceAll(text.String(), w.socket, "SOCKET")
}
