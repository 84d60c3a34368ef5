package state

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// What an agent that is ending adds to the history is there for the next one, which waits for it:
// it does not give the same number to another configuration.
func TestHistoryOfAnAgentThatEnds(t *testing.T) {
	dir := t.TempDir()
	lock, err := os.Create(filepath.Join(dir, "edge1.lock"))
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan *Store)
	go func() {
		s, err := Open(dir, "edge1", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Error(err)
		}
		opened <- s
	}()
	time.Sleep(200 * time.Millisecond) // it waits for the lock meanwhile
	former := &Store{path: filepath.Join(dir, "edge1.json"), Text: "node: edge1\n"}
	former.texts = &texts{dir: filepath.Join(dir, "edge1.texts")}
	former.History = openHistory(filepath.Join(dir, "edge1.history"), former.texts)
	if err := former.Remember("root", "apply", nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	s := <-opened
	defer s.Close()
	if n := len(s.History.List); n != 1 {
		t.Errorf("%d configurations are in the history, not 1", n)
	}
}
