package main

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Commands that wait for input end with their context, as Ctrl-C ends it: at a terminal that says
// nothing, and at a named pipe that nobody writes to.
func TestInterruptEndsCommandsThatRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "-f", "-"}, {"check", "-f", pipe}, {"apply", "-f", "-"}, {"diff", "-f", pipe},
		{"ipvsadm", "-R"}, {"controller", "-f", pipe}, {"explain", "-r", "-"},
		{"topology", "show", "-"}, {"path", "assign", "-"},
	} {
		w := newWorld(t, fakeNode)
		silent, writer := io.Pipe()
		e := w.env(args...)
		begun := make(chan struct{})
		e.stdin = beginning{silent, begun}
		ctx, cancel := context.WithCancel(t.Context())
		if args[len(args)-1] == pipe {
			cancel() // there is no telling when it has begun to wait
		} else {
			go func() { <-begun; cancel() }()
		}
		ended := make(chan int)
		go func() { ended <- run(ctx, e) }()
		if code := <-ended; code == exitOK {
			t.Errorf("sextant %v ended with 0", args)
		}
		cancel()
		writer.Close()
	}
}

// beginning tells when it is read.
type beginning struct {
	io.Reader
	begun chan struct{}
}

func (b beginning) Read(p []byte) (int, error) {
	close(b.begun)
	return b.Reader.Read(p)
}

// What is read in small pieces is all there is, with the error at its end.
func TestInterruptibleReadsAll(t *testing.T) {
	pieces, writer := io.Pipe()
	go func() {
		for range 3 {
			_, _ = writer.Write([]byte("some text"))
		}
		writer.CloseWithError(io.ErrUnexpectedEOF)
	}()
	in := newInterruptible(t.Context(), pieces)
	var text []byte
	for {
		one := make([]byte, 4)
		n, err := in.Read(one)
		text = append(text, one[:n]...)
		if err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if string(text) != "some textsome textsome text" {
		t.Errorf("read %q", text)
	}
}
