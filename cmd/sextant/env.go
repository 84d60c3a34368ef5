package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/config"
	"sextant/linux"
	"sextant/linux/facts"
)

// env is the world as the commands see it. Tests give them another one.
type env struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	interactive    bool          // a person at a terminal can answer questions
	terminal       bool          // stdout is a terminal
	window         func() window // of that terminal, as it is now
	progress       bool          // stderr is one: a line may be replaced
	getenv         func(string) string
	connect        func(socket string) *api.Client
	sleep          func(context.Context, time.Duration)
	memory         func() (bytes uint64, err error) // of this machine

	// What runs the daemons and experiments.
	runAgent func(context.Context, agentOptions) error
	unload   func(node *config.Node, bpf string) error
	demo     func(context.Context, demoOptions) error
	examine  func(examination) (facts.Facts, error)
	machine  func(examination) []part
}

func processEnv() *env {
	return &env{
		args:        os.Args[1:],
		stdin:       os.Stdin,
		stdout:      guarded(os.Stdout),
		stderr:      guarded(os.Stderr),
		interactive: isTerminal(os.Stdin) && isTerminal(os.Stderr),
		terminal:    isTerminal(os.Stdout),
		window:      func() window { return windowOf(os.Stdout) },
		progress:    isTerminal(os.Stderr),
		getenv:      os.Getenv,
		connect:     api.NewClient,
		sleep:       sleep,
		memory:      linux.Memory,
	}
}

// guarded is a file that text of others can't drive if it is a terminal.
func guarded(f *os.File) io.Writer {
	if isTerminal(f) {
		return &terminalWriter{to: f}
	}
	return f
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

func windowOf(f *os.File) window {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return window{}
	}
	return window{columns: int(size.Col), rows: int(size.Row)}
}

// sleep waits, or ends with the context.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// say writes a line for people, who see it beside the data on stdout.
func (e *env) say(format string, args ...any) {
	fmt.Fprintf(e.stderr, format+"\n", args...)
}

// agrees asks a question at the terminal; only "y" and "yes" agree.
func (e *env) agrees(format string, args ...any) bool {
	fmt.Fprintf(e.stderr, format+" [y/N] ", args...)
	answer, _ := bufio.NewReader(e.stdin).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
