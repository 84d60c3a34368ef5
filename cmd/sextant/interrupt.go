package main

import (
	"context"
	"io"
	"os"
)

// interruptible is standard input that ends with a context: a terminal or a pipe that says nothing
// more does not keep a command from ending.
type interruptible struct {
	ctx  context.Context
	from io.Reader
	rest []byte // of a chunk that was read
	news chan chunk
}

type chunk struct {
	text []byte
	err  error
}

func newInterruptible(ctx context.Context, from io.Reader) *interruptible {
	return &interruptible{ctx: ctx, from: from}
}

// Read is io.Reader. What is read when the context ends is lost.
func (i *interruptible) Read(p []byte) (int, error) {
	if len(i.rest) > 0 || len(p) == 0 {
		n := copy(p, i.rest)
		i.rest = i.rest[n:]
		return n, nil
	}
	if i.news == nil {
		i.news = make(chan chunk, 1)
		go func() {
			text := make([]byte, max(len(p), 4096))
			n, err := i.from.Read(text)
			i.news <- chunk{text[:n], err}
		}()
	}
	select {
	case c := <-i.news:
		i.news = nil
		n := copy(p, c.text)
		if i.rest = c.text[n:]; len(i.rest) > 0 {
			return n, nil // an error comes again
		}
		return n, c.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}

// rawInput is the reader behind one that a context ends, for commands that have it for themselves.
func rawInput(r io.Reader) io.Reader {
	if i, ok := r.(*interruptible); ok {
		return i.from
	}
	return r
}

// readAll reads a file, or standard input for "-", until the context ends: opening a named pipe
// may take for ever, too.
func (a *app) readAll(ctx context.Context, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(a.stdin)
	}
	done := make(chan chunk, 1)
	go func() {
		text, err := os.ReadFile(file)
		done <- chunk{text, err}
	}()
	select {
	case c := <-done:
		return c.text, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
