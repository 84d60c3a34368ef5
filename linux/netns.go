package linux

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// NetnsDir is where named network namespaces are mounted. It is the directory
// of iproute2, so that "ip netns exec NAME" finds them.
const NetnsDir = "/run/netns"

// Netns is an open network namespace. It may be used by several goroutines.
type Netns struct {
	name string
	file *os.File
}

// CreateNetns makes a network namespace that lives under its name until
// [DeleteNetns]. Its loopback interface is down. A name in use is an error
// that wraps [os.ErrExist].
func CreateNetns(name string) (*Netns, error) {
	if err := shareNetnsDir(); err != nil {
		return nil, err
	}
	path := NetnsPath(name)
	mountPoint, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return nil, failedWith(err, "delete it with \"ip netns del "+name+"\" if nothing needs it",
			"create network namespace %s", name)
	}
	mountPoint.Close()
	if err := mountNewNetns(path); err != nil {
		os.Remove(path)
		return nil, Failed(err, "create network namespace %s", name)
	}
	return OpenNetns(name)
}

// shareNetnsDir makes NetnsDir a shared mount as iproute2 does: a namespace
// that is unmounted here then goes away in every mount namespace.
func shareNetnsDir() error {
	if err := os.MkdirAll(NetnsDir, 0o755); err != nil {
		return Failed(err, "create %s", NetnsDir)
	}
	err := unix.Mount("", NetnsDir, "none", unix.MS_SHARED|unix.MS_REC, "")
	if err == nil {
		return nil
	}
	if !errors.Is(err, unix.EINVAL) { // EINVAL: not a mount point yet
		return Failed(err, "share mount %s", NetnsDir)
	}
	if err := unix.Mount(NetnsDir, NetnsDir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return Failed(err, "bind mount %s", NetnsDir)
	}
	return Failed(unix.Mount("", NetnsDir, "none", unix.MS_SHARED|unix.MS_REC, ""),
		"share mount %s", NetnsDir)
}

// mountNewNetns makes a network namespace and mounts it on path. Only a thread
// can make one, by entering it.
func mountNewNetns(path string) error {
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return unix.Mount(threadNetns(), path, "none", unix.MS_BIND, "")
	})
}

// OpenNetns opens a named network namespace.
func OpenNetns(name string) (*Netns, error) {
	file, err := os.Open(NetnsPath(name))
	if err != nil {
		return nil, failedWith(err, "\"ip netns\" lists those that exist",
			"open network namespace %s", name)
	}
	return &Netns{name: name, file: file}, nil
}

// NetnsPath returns the file of a named network namespace.
func NetnsPath(name string) string { return filepath.Join(NetnsDir, name) }

// NetnsExists says whether a network namespace of that name is mounted.
func NetnsExists(name string) bool {
	_, err := os.Lstat(NetnsPath(name))
	return err == nil
}

// DeleteNetns removes the name. The namespace itself ends when its last
// process and its last open file do. A name that does not exist is no error.
func DeleteNetns(name string) error {
	path := NetnsPath(name)
	err := unix.Unmount(path, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) &&
		!errors.Is(err, unix.ENOENT) { // EINVAL: the file is there, the mount is not
		return Failed(err, "unmount network namespace %s", name)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Failed(err, "delete network namespace %s", name)
	}
	return nil
}

// FD returns the file descriptor of the namespace, valid until Close.
func (n *Netns) FD() int { return int(n.file.Fd()) }

// Close gives the descriptor back; the namespace stays. Closing twice is safe.
func (n *Netns) Close() error {
	if err := n.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// Do calls f on a thread that is inside the namespace and returns its error.
// Goroutines that f starts are not inside. Sockets and child processes made by
// f stay inside for their whole life.
func (n *Netns) Do(f func() error) error {
	return onThread(func() error {
		if err := enter(n.file); err != nil {
			return Failed(err, "enter network namespace %s", n.name)
		}
		return f()
	})
}

// enter brings the calling thread, which must be locked, into a network namespace. One that is
// there stays, and asks the kernel for nothing: a service manager may forbid setns(2) altogether
// (RestrictNamespaces= of systemd).
func enter(to *os.File) error {
	here, err := os.Stat(threadNetns())
	if err == nil {
		if there, err := to.Stat(); err == nil && os.SameFile(here, there) {
			return nil
		}
	}
	return unix.Setns(int(to.Fd()), unix.CLONE_NEWNET)
}

// Netlink opens a route netlink handle inside the namespace. The caller closes
// it.
func (n *Netns) Netlink() (*netlink.Handle, error) {
	handle, err := netlink.NewHandleAt(netns.NsHandle(n.FD()), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, Failed(err, "open netlink in network namespace %s", n.name)
	}
	return handle, nil
}

// onThread calls f, which may change the network namespace of its thread, and
// brings the thread back. A thread that does not come back stays locked to the
// calling goroutine, so that no other goroutine ever runs on it.
func onThread(f func() error) (err error) {
	runtime.LockOSThread()
	home, err := os.Open(threadNetns())
	if err != nil {
		runtime.UnlockOSThread()
		return Failed(err, "open the current network namespace")
	}
	defer func() {
		defer home.Close()
		back := enter(home)
		if back == nil {
			runtime.UnlockOSThread()
			return
		}
		err = errors.Join(err, Failed(back, "return to the first network namespace"))
	}()
	return f()
}

// threadNetns is the network namespace of the calling thread. The thread must
// be locked. "/proc/self" would be that of the main thread.
func threadNetns() string { return fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()) }

// ThisNetns opens the network namespace that the caller is in.
func ThisNetns() (*Netns, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	file, err := os.Open(threadNetns())
	if err != nil {
		return nil, Failed(err, "open the current network namespace")
	}
	return &Netns{name: "of this process", file: file}, nil
}
