package linux_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux"
)

func TestNetnsIsNamedAndSeparate(t *testing.T) {
	ns := newNetns(t)
	if !linux.NetnsExists(ns.Name()) {
		t.Errorf("NetnsExists(%q) = false after CreateNetns", ns.Name())
	}
	var inside []net.Interface
	err := ns.Do(func() (err error) {
		inside, err = net.Interfaces()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(inside) != 1 || inside[0].Name != "lo" {
		t.Errorf("interfaces of a new namespace = %v, want lo alone", inside)
	}
}

func TestDoReturnsToTheFirstNamespace(t *testing.T) {
	ns := newNetns(t)
	before := linkOf(t, "/proc/thread-self/ns/net")
	failure := errors.New("from inside")
	var inside string
	err := ns.Do(func() error {
		inside = linkOf(t, "/proc/thread-self/ns/net")
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("Do returned %v, want the error of its function", err)
	}
	if after := linkOf(t, "/proc/thread-self/ns/net"); after != before {
		t.Errorf("namespace after Do is %s, before it was %s", after, before)
	}
	if inside == before {
		t.Error("Do called its function in the namespace of the caller")
	}
}

// forbidSetns has the kernel refuse setns(2) to the calling thread, as systemd does to services
// with RestrictNamespaces=yes. The goroutine must be locked to it, and ends with it.
func forbidSetns() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SETNS, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}

// Where nothing may change its namespaces, as in the packaged unit, a thread works in the one that
// it is in.
func TestDoWhereItIs(t *testing.T) {
	other := newNetns(t)
	here, err := linux.ThisNetns()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	called := false
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // it is never unlocked: the thread ends with its filter
		if err := forbidSetns(); err != nil {
			t.Errorf("forbid setns: %v", err)
			return
		}
		if err := other.Do(func() error { return nil }); !errors.Is(err, unix.EPERM) {
			t.Errorf("another namespace was entered although that is forbidden: %v", err)
		}
		if err := here.Do(func() error { called = true; return nil }); err != nil || !called {
			t.Errorf("in the own namespace: called %v, error %v", called, err)
		}
	}()
	<-done
}

func linkOf(t *testing.T, path string) string {
	t.Helper()
	target, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestCreateNetnsRefusesANameInUse(t *testing.T) {
	ns := newNetns(t)
	_, err := linux.CreateNetns(ns.Name())
	if !errors.Is(err, os.ErrExist) {
		t.Fatalf("second CreateNetns: %v, want os.ErrExist", err)
	}
	want := "create network namespace " + ns.Name() +
		": file exists; delete it with \"ip netns del " + ns.Name() + "\" if nothing needs it"
	if err.Error() != want {
		t.Errorf("error = %q\nwant    %q", err, want)
	}
}

func TestDeleteNetnsTwice(t *testing.T) {
	ns := newNetns(t)
	for range 2 {
		if err := linux.DeleteNetns(ns.Name()); err != nil {
			t.Error(err)
		}
	}
	if linux.NetnsExists(ns.Name()) {
		t.Error("the namespace still has its name")
	}
	if _, err := linux.OpenNetns(ns.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("OpenNetns of a deleted namespace: %v, want os.ErrNotExist", err)
	}
}

func TestDeleteNetnsThatWasNeverMounted(t *testing.T) {
	ns := newNetns(t) // makes NetnsDir
	name := ns.Name() + "-file"
	if err := os.WriteFile(linux.NetnsPath(name), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := linux.DeleteNetns(name); err != nil || linux.NetnsExists(name) {
		t.Errorf("DeleteNetns of the remains of a crash: %v", err)
	}
}

func TestNetlinkHandleIsInside(t *testing.T) {
	ns := newNetns(t)
	handle, err := ns.Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	if err := handle.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "a"},
		PeerName: "b"}); err != nil {
		t.Fatal(err)
	}
	links, err := handle.LinkList()
	if err != nil || len(links) != 3 {
		t.Errorf("links inside = %d (%v), want lo, a, b", len(links), err)
	}
}

func TestStartInNetnsAndCgroup(t *testing.T) {
	ns, group := newNetns(t), newCgroup(t)
	cmd := exec.Command("/bin/sh", "-c", "readlink /proc/self/ns/net; cat /proc/self/cgroup")
	var output strings.Builder
	cmd.Stdout = &output
	if err := linux.Start(cmd, ns.Netns, group); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var inside string
	if err := ns.Do(func() error {
		inside = linkOf(t, "/proc/thread-self/ns/net")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	name := group.Dir()[strings.LastIndex(group.Dir(), "/"):]
	if !strings.HasPrefix(output.String(), inside+"\n") || !strings.Contains(output.String(),
		"0::"+name+"\n") {
		t.Errorf("the process was in\n%swant %s and %s", output.String(), inside, name)
	}
}

func TestStartOfAMissingProgram(t *testing.T) {
	err := linux.Start(exec.Command("/no/such/program"), nil, nil)
	want := "start /no/such/program: no such file or directory; install it or give its whole path"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v\nwant    %s", err, want)
	}
	err = linux.Start(exec.Command("no-such-program-here"), nil, nil)
	want = "start no-such-program-here: executable file not found in $PATH; install it or give " +
		"its whole path"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v\nwant    %s", err, want)
	}
}
