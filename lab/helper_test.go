package lab_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sextant/lab"
	"sextant/linux"
)

var serial atomic.Int32

// newName is a lab name that no other test, and no other run of this test,
// has. At the end of the test nothing of that lab is left.
func newName(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces: run with sudo")
	}
	name := fmt.Sprintf("t%d-%d", os.Getpid(), serial.Add(1))
	t.Cleanup(func() {
		if err := lab.Down(name, nil); err != nil {
			t.Error(err)
		}
		nothingLeft(t, name)
	})
	return name
}

// nothingLeft looks for anything that a lab of that name can leave behind.
func nothingLeft(t *testing.T, name string) {
	t.Helper()
	cgroups, _, err := linux.CgroupRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{
		filepath.Join(linux.NetnsDir, "sx-"+name+"-*"),
		filepath.Join(lab.StateDir, name),
		filepath.Join(cgroups, "sextant-"+name),
		"/sys/fs/bpf/sextant/" + name + "-*",
	} {
		left, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// parse reads a lab whose name stands in the text as NAME.
func parse(t *testing.T, name, text string) *lab.Spec {
	t.Helper()
	spec, err := lab.Parse("test.yaml", []byte(strings.ReplaceAll(text, "NAME", name)))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// up brings a lab of that text up until the end of the test.
func up(t *testing.T, text string) *lab.Lab {
	t.Helper()
	name := newName(t)
	l, err := lab.Up(t.Context(), parse(t, name, text), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// nodeOf returns a node of a lab.
func nodeOf(t *testing.T, l *lab.Lab, name string) *lab.Node {
	t.Helper()
	node, err := l.Node(name)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// inside calls f inside a node.
func inside(t *testing.T, l *lab.Lab, node string, f func() error) {
	t.Helper()
	ns, err := linux.OpenNetns(nodeOf(t, l, node).Namespace)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if err := ns.Do(f); err != nil {
		t.Fatalf("on node %s: %v", node, err)
	}
}

const patience = 30 * time.Second // on a machine that others use too

// ask connects from a node and returns what the server there says.
func ask(l *lab.Lab, node string, from netip.Addr, to string) (answer string, err error) {
	n, err := l.Node(node)
	if err != nil {
		return "", err
	}
	ns, err := linux.OpenNetns(n.Namespace)
	if err != nil {
		return "", err
	}
	defer ns.Close()
	dialer := net.Dialer{Timeout: patience}
	if from.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	var conn net.Conn
	err = ns.Do(func() (err error) {
		conn, err = dialer.Dial("tcp", to)
		return err
	})
	if err != nil {
		return "", err
	}
	defer conn.Close()
	text, err := io.ReadAll(conn)
	return string(text), err
}

// recorder keeps the types of the events it is told.
type recorder struct{ events []string }

func (r *recorder) add(e lab.Event) { r.events = append(r.events, fmt.Sprintf("%T", e)) }

// eventually waits until a condition holds, for what the kernel does in its
// own time.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not after %v", what, patience)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func wantError(t *testing.T, err, is error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	if is != nil && !errors.Is(err, is) {
		t.Errorf("%v does not wrap %v", err, is)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q lacks %q", err, part)
		}
	}
}
