package e2e_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/lab"
	"sextant/linux"
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

var serial atomic.Int32

// newName is a lab's name that no other test has, also not one that runs at the same time.
func newName() string { return fmt.Sprintf("t%d-%d", os.Getpid(), serial.Add(1)) }

var readyWithin = flag.Duration("lab.ready", 0,
	"how long a process of a lab may take to be ready, for slow machines (default 10s)")

// bringUp brings a lab up until the end of the test, and tells of events on the way.
func bringUp(t *testing.T, spec *lab.Spec, events func(lab.Event)) *lab.Lab {
	t.Helper()
	l, err := lab.Up(t.Context(), spec, lab.Options{Events: events,
		ReadyTimeout: *readyWithin})
	must(t, err)
	t.Cleanup(func() {
		if err := lab.Down(spec.Name, nil); err != nil {
			t.Error(err)
		}
	})
	return l
}

func nodeOf(t *testing.T, l *lab.Lab, name string) *lab.Node {
	t.Helper()
	n, err := l.Node(name)
	must(t, err)
	return n
}

// namespaceOf opens a node's network namespace. Close it.
func namespaceOf(t *testing.T, l *lab.Lab, node string) *linux.Netns {
	t.Helper()
	ns, err := linux.OpenNetns(nodeOf(t, l, node).Namespace)
	must(t, err)
	return ns
}

// lostBy is how many packets the interfaces of nodes have lost: a veth interface whose peer has an
// XDP program holds 256, and drops what comes while something else has the processor.
func lostBy(t *testing.T, l *lab.Lab, nodes ...string) (packets uint64) {
	t.Helper()
	for _, node := range nodes {
		inside(t, l, node, func() error {
			links, err := netlink.LinkList()
			for _, link := range links {
				s := link.Attrs().Statistics
				packets += s.RxDropped + s.TxDropped + s.RxErrors + s.TxErrors
			}
			return err
		})
	}
	return packets
}

// inside calls f inside a node's network namespace. Sockets that f opens stay there.
func inside(t *testing.T, l *lab.Lab, node string, f func() error) {
	t.Helper()
	ns := namespaceOf(t, l, node)
	defer ns.Close()
	if err := ns.Do(f); err != nil {
		t.Fatalf("on node %s: %v", node, err)
	}
}

// roomy makes sockets with memory for what comes while their reader does not run.
var roomy = net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
	failure := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
	})
	return errors.Join(failure, err)
}}

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
	ns := namespaceOf(t, l, node)
	defer ns.Close()
	counters, err := ns.TCPCounters()
	must(t, err)
	value, there := counters[name]
	if !there {
		t.Fatalf("there is no TCP counter %s", name)
	}
	return value
}
