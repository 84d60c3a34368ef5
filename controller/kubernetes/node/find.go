package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sextant/linux"
)

// A place is where a pod's processes are.
type place struct {
	netns  string // path of its network namespace
	cgroup string // directory of all its processes
}

// errNotFound says that no process of a pod runs here, maybe not yet.
var errNotFound = errors.New("no process of the pod runs on this node")

// find looks for a process in a cgroup that has a pod's UID in its name, as kubelets write it: with
// dashes, or with underscores under systemd.
func find(proc, uid string) (place, error) {
	root, _, err := linux.CgroupRoot()
	if err != nil {
		return place{}, err
	}
	entries, err := os.ReadDir(proc)
	if err != nil {
		return place{}, err
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(proc, e.Name(), "cgroup"))
		if err != nil {
			continue // it has ended
		}
		if dir := cgroupOf(string(text), uid); dir != "" {
			p := place{filepath.Join(proc, e.Name(), "ns/net"), filepath.Join(root, dir)}
			if same(p.netns, filepath.Join(proc, "self/ns/net")) {
				return p, fmt.Errorf("it is in the node's own network namespace: pods with " +
					"hostNetwork are not served")
			}
			return p, nil
		}
	}
	return place{}, errNotFound
}

// cgroupOf is the directory of a pod in the lines of /proc/PID/cgroup; "": it is not of the pod.
func cgroupOf(text, uid string) string {
	for line := range strings.Lines(text) {
		dir, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for _, form := range []string{uid, strings.ReplaceAll(uid, "-", "_")} {
			if at := strings.Index(dir, "pod"+form); at >= 0 {
				end := strings.IndexByte(dir[at:], '/')
				if end < 0 {
					return dir
				}
				return dir[:at+end]
			}
		}
	}
	return ""
}

func same(a, b string) bool {
	one, errA := os.Stat(a)
	other, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(one, other)
}

// openNetns opens the namespace of a process.
func openNetns(path string) (*linux.Netns, error) {
	relative, err := filepath.Rel(linux.NetnsDir, path)
	if err != nil {
		return nil, err
	}
	return linux.OpenNetns(relative)
}
