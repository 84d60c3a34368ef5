package main

import (
	"strings"
	"syscall"
	"testing"
)

// full is a file on a disk that takes some bytes more.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	n := min(f.room, len(p))
	if f.room -= n; n < len(p) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// Whatever prints: what could not be written whole is an error.
func TestUnwrittenOutputIsAnError(t *testing.T) {
	for _, line := range []string{"service list", "service list -o name", "service list -o json",
		"service list -o yaml", "backend list -o name", "status", "status --brief",
		"status -o name", "service show web", "config show", "config explain edge", "version",
		"--help", "service --help", "completion bash", "monitor --count 1", "top --count 1",
		"topology list", "map dump services", "check -f testdata/good.yaml -o name", "sid list"} {
		w := newWorld(t, fakeNode)
		whole := w.run(strings.Fields(line)...)
		if !strings.HasSuffix(whole, "[exit 0]\n") || w.stdout.Len() == 0 {
			t.Errorf("%s prints nothing, or fails:\n%s", line, whole)
			continue
		}
		for _, room := range []int{0, w.stdout.Len() - 1} {
			e := w.env(strings.Fields(line)...)
			e.stdout = &full{room}
			w.stderr.Reset()
			if code := run(t.Context(), e); code != exitFailed ||
				!strings.Contains(w.stderr.String(), "the output could not be written: no space") {
				t.Errorf("%s with room for %d bytes: exit %d\n%s", line, room, code, &w.stderr)
			}
		}
	}
}
