package linux

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start starts cmd inside a network namespace and a cgroup from its first
// instruction on; nil for either means that of the caller. Unlike "ip netns
// exec" it leaves the mounts alone, so that the process sees the bpf file
// system.
func Start(cmd *exec.Cmd, ns *Netns, group *Cgroup) error {
	if group != nil {
		dir, err := os.OpenFile(group.Dir(), unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return Failed(err, "open cgroup %s", group.Dir())
		}
		defer dir.Close()
		enterCgroup(cmd, dir)
	}
	start := func() error { return startMend(cmd, cmd.Start()) }
	if ns == nil {
		return start()
	}
	return ns.Do(start)
}

// enterCgroup lets the child be born in the cgroup (clone3 with
// CLONE_INTO_CGROUP, Linux 5.7).
func enterCgroup(cmd *exec.Cmd, dir *os.File) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.UseCgroupFD = true
	cmd.SysProcAttr.CgroupFD = int(dir.Fd())
}

func startMend(cmd *exec.Cmd, err error) error {
	mend := ""
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		mend = "install it or give its whole path"
	}
	if missing, ok := errors.AsType[*exec.Error](err); ok {
		err = missing.Err
	}
	return failedWith(err, mend, "start %s", cmd.Path)
}
