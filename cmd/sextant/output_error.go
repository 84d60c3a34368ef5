package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
)

// noted is a writer whose first error is remembered: most of what prints looks at none, and a
// script must not take half a list for the whole one.
type noted struct {
	to io.Writer

	mu      sync.Mutex
	failure error
}

// Write is io.Writer.
func (n *noted) Write(p []byte) (int, error) {
	written, err := n.to.Write(p)
	if err != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.failure == nil {
			n.failure = err
		}
	}
	return written, err
}

// behind is the writer itself, for programs that have it for themselves: an end of theirs that
// stays open must not be waited for.
func behind(w io.Writer) io.Writer {
	if n, ok := w.(*noted); ok {
		return n.to
	}
	return w
}

// instead is the error of a command whose output could not be written: that, unless it failed
// otherwise.
func (n *noted) instead(err error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var silent silentExit
	if n.failure == nil || err != nil && !errors.As(err, &silent) &&
		!errors.Is(err, n.failure) {
		return err
	}
	return fmt.Errorf("the output could not be written: %w", withoutPath(n.failure))
}
