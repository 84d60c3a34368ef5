package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// A command whose answer never comes says that it is at work, and ends when its context does.
func TestComputingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	said := &notified{is: make(chan struct{}, 100)}
	a := &app{env: &env{stderr: said}}
	cmd := &cobra.Command{Use: "disjoint"}
	cmd.SetContext(ctx)
	never, ended := make(chan struct{}), make(chan error, 1)
	defer close(never)
	go func() { ended <- a.compute(cmd, 1, func() error { <-never; return nil }) }()
	<-said.is
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "interrupted after") {
		t.Errorf("it ends with %v", err)
	}
	if !strings.HasPrefix(said.text.String(), "disjoint: at work since 0s; Ctrl-C ends it\n") {
		t.Errorf("it says %q", said.text.String())
	}
}

// notified tells of each write; one goroutine writes.
type notified struct {
	text bytes.Buffer
	is   chan struct{}
}

func (n *notified) Write(p []byte) (int, error) {
	defer func() {
		select {
		case n.is <- struct{}{}:
		default:
		}
	}()
	return n.text.Write(p)
}

// Ctrl-C ends the search for disjoint paths among 100,000 parallel links.
func TestDisjointPathsAreInterrupted(t *testing.T) {
	file := t.TempDir() + "/parallel.edges"
	var text bytes.Buffer
	for range 100_000 {
		fmt.Fprintln(&text, "a -> b 1 1")
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var out, said bytes.Buffer
	e := &env{
		args: []string{"path", "disjoint", file, "a", "b"}, stdout: &out, stderr: &said,
		getenv: func(string) string { cancel(); return "" }, // while the command line is read
	}
	if code := run(ctx, e); code == exitOK || !strings.Contains(said.String(),
		"interrupted after") {
		t.Errorf("code %d, said %q", code, said.String())
	}
}
