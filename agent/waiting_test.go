package agent_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"sextant/agent/api"
)

// stuckDisk has the disk take a part of a node's next state file, and the rest when it is told; it
// fails then, as a pipe can't be synchronized. Begun returns when it has the part.
func (m *machine) stuckDisk(node string) (begun, end func()) {
	m.t.Helper()
	path := filepath.Join(m.dir, "state", node+".json~")
	must(m.t, unix.Mkfifo(path, 0o600))
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // so that neither side waits for the other
	must(m.t, err)
	connection, err := pipe.SyscallConn()
	must(m.t, err)
	must(m.t, connection.Control(func(fd uintptr) {
		_, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, os.Getpagesize())
	}))
	must(m.t, err)
	return func() {
			_, err := pipe.Read(make([]byte, 1))
			must(m.t, err)
		}, func() {
			go io.Copy(io.Discard, pipe) // until it is closed
			m.t.Cleanup(func() { pipe.Close() })
		}
}

// While a change waits for the disk, the agent answers, with what ran before it; the next change
// begins when the first has ended, which was refused here, and brings nothing of it along.
func TestAnswersWhileAChangeWaits(t *testing.T) {
	m := newMachine(t)
	r := m.start(m.text(manyServices(50, 10))) // more state than a pipe takes
	defer r.stop()
	ctx := t.Context()
	before, err := r.Status(ctx)
	must(t, err)
	weight := func(backend string) int {
		t.Helper()
		list, err := r.Services(ctx, "s7", api.Edge)
		must(t, err)
		for _, b := range list[0].Edge.Backends {
			if b.Name == backend {
				return b.Weight
			}
		}
		t.Fatalf("there is no %s", backend)
		return 0
	}
	change := func(backend string, to int) chan error {
		ended := make(chan error, 1)
		go func() {
			_, err := r.PutBackend(ctx, api.Update, "s7", backend, api.BackendSpec{Weight: &to})
			ended <- err
		}()
		return ended
	}
	begun, end := m.stuckDisk("many1")
	first := change("b0", 5)
	begun()
	second := change("b1", 7)
	for range 20 {
		status, err := r.Status(ctx)
		must(t, err)
		if status.ConfigHash != before.ConfigHash || weight("b0") != 1 || weight("b1") != 1 {
			t.Fatalf("a change that is not on the disk is shown: %s, %d, %d", status.ConfigHash,
				weight("b0"), weight("b1"))
		}
		_, err = r.Counters(ctx)
		must(t, err)
		_, err = r.Config(ctx, false)
		must(t, err)
		select {
		case err := <-first:
			t.Fatalf("the first change ended before the disk had it: %v", err)
		case err := <-second:
			t.Fatalf("the second change ended before the first one: %v", err)
		default:
		}
	}
	end()
	if err := <-first; err == nil {
		t.Error("a change that the disk refused was answered with success")
	}
	must(t, <-second)
	if weight("b0") != 1 || weight("b1") != 7 {
		t.Errorf("weights are %d and %d, not 1 and 7", weight("b0"), weight("b1"))
	}
}
