package datapath

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// attachSockets puts a program on a cgroup: it sees the sockets of all processes below it.
func attachSockets(dir, name string, program *ebpf.Program, cgroup string) (Attachment, error) {
	a := attachment(name, cgroup, 0, program, linkPrefix+name)
	path := filepath.Join(dir, a.link)
	if _, err := cgroupID(cgroup); err != nil {
		return a, fmt.Errorf("attach %s to cgroup %s: %w; name a directory of a "+
			"cgroup2 file system", name, cgroup, err)
	}
	if l, err := link.LoadPinnedLink(path, nil); err == nil {
		defer l.Close()
		if isOnCgroup(l, cgroup) && l.Update(program) == nil {
			return a, nil
		}
		_ = detach(path) // if it fails, pinning anew says what is in the way
	}
	l, err := link.AttachCgroup(link.CgroupOptions{Path: cgroup, Attach: socketHook(name),
		Program: program})
	if err != nil {
		return a, fmt.Errorf("attach %s to cgroup %s: %w", name, cgroup, err)
	}
	defer l.Close()
	if err := l.Pin(path); err != nil {
		return a, fmt.Errorf("pin link at %s: %w", path, err)
	}
	return a, nil
}

// isOnCgroup reports whether a link puts its program on a cgroup.
func isOnCgroup(l link.Link, cgroup string) bool {
	id, err := cgroupID(cgroup)
	if err != nil {
		return false
	}
	info, err := l.Info()
	return err == nil && info.Cgroup() != nil && info.Cgroup().CgroupId == id
}

// seesSockets reports whether a program that an earlier agent attached sees the sockets of a
// cgroup.
func seesSockets(dir, name, cgroup string) bool {
	l, err := link.LoadPinnedLink(filepath.Join(dir, linkPrefix+name), nil)
	if err != nil {
		return false
	}
	defer l.Close()
	return isOnCgroup(l, cgroup)
}

// socketHook is where a program about the sockets of a cgroup runs.
func socketHook(program string) ebpf.AttachType {
	if hook, ok := pathSourceHooks[program]; ok {
		return hook
	}
	return ebpf.AttachCGroupSockOps
}

// cgroupID is the number by which the kernel knows a cgroup2 directory: its inode.
func cgroupID(dir string) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return 0, err
	}
	return stat.Ino, nil
}

// netnsCookie is the number of the network namespace that this thread is in.
func netnsCookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
	if err != nil {
		return 0, fmt.Errorf("read the network namespace's cookie: %w; Linux 5.14 or newer is "+
			"needed", err)
	}
	return cookie, nil
}

// jiffiesPerSecond reads the kernel's tick from the resolution of its coarse clock.
func jiffiesPerSecond() uint32 {
	var resolution unix.Timespec
	if err := unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &resolution); err != nil ||
		resolution.Nano() == 0 {
		return 250
	}
	return uint32(1e9 / resolution.Nano())
}

// nextHopLifetimeMS is for how long programs remember a next hop.
const nextHopLifetimeMS = 100

// setJiffies tells a program how long the kernel's tick is.
func setJiffies(spec *ebpf.CollectionSpec) error {
	perSecond := jiffiesPerSecond()
	return errors.Join(spec.Variables["jiffies_per_second"].Set(perSecond),
		spec.Variables["next_hop_lifetime"].Set(nextHopLifetimeMS*perSecond/1000))
}
