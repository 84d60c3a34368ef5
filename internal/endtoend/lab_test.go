package endtoend_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sextant/kernel"
	"sextant/lab"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// needsRoot skips where no lab can be.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces: run with sudo")
	}
}

// bringUp brings a lab up until the end of the test, and tells of events on the way.
func bringUp(t *testing.T, spec *lab.Spec, events func(lab.Event)) *lab.Lab {
	t.Helper()
	l, err := lab.Up(t.Context(), spec, lab.Options{Events: events})
	must(t, err)
	t.Cleanup(func() {
		if err := lab.Down(spec.Name, nil); err != nil {
			t.Error(err)
		}
	})
	return l
}

// inside calls f inside a node's network namespace. Sockets that f opens stay there.
func inside(t *testing.T, l *lab.Lab, node string, f func() error) {
	t.Helper()
	n, err := l.Node(node)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := kernel.OpenNetns(n.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.Do(f); err != nil {
		t.Fatalf("on node %s: %v", node, err)
	}
}

// on runs a command on a node and returns what it printed.
func on(t *testing.T, l *lab.Lab, node string, argv ...string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := l.Exec(node, cmd); err != nil {
		t.Fatalf("on %s: %s: %v\n%s", node, strings.Join(argv, " "), err, &stderr)
	}
	return stdout.Bytes()
}

// tcpCounter is one of a node's TCP.
func tcpCounter(t *testing.T, l *lab.Lab, node, name string) uint64 {
	t.Helper()
	n, err := l.Node(node)
	must(t, err)
	ns, err := kernel.OpenNetns(n.Namespace)
	must(t, err)
	defer ns.Close()
	counters, err := ns.TCPCounters()
	must(t, err)
	value, there := counters[name]
	if !there {
		t.Fatalf("there is no TCP counter %s", name)
	}
	return value
}
