package linux

import (
	"slices"
	"strings"
)

// bpfDir is where systemd and bpftool mount the bpf file system.
const bpfDir = "/sys/fs/bpf"

// BPFFS returns the directory of the bpf file system, /sys/fs/bpf, on which
// programs and maps can be pinned. If it is not mounted it is now, and mounted
// is true so that the user can be told. A bpf file system mounted elsewhere is
// another one, with other pins: it is never taken instead.
func BPFFS() (dir string, mounted bool, err error) {
	return mountOf("bpf", standardBPFFS, bpfDir)
}

func standardBPFFS(dirs []string) string {
	if slices.Contains(dirs, bpfDir) {
		return bpfDir
	}
	return ""
}

// BPFFSOf returns where the bpf file system is mounted that a path is on, ""
// if it is on none.
func BPFFSOf(path string) (string, error) {
	return findMount("bpf", func(dirs []string) string { return mountHolding(dirs, path) })
}

// mountHolding picks the longest mount point that a path is at or below.
func mountHolding(dirs []string, path string) string {
	longest := ""
	for _, dir := range dirs {
		if (path == dir || strings.HasPrefix(path, dir+"/")) && len(dir) > len(longest) {
			longest = dir
		}
	}
	return longest
}

// MountBPFFS mounts a bpf file system on a directory, unless one is there.
func MountBPFFS(dir string) (mounted bool, err error) {
	_, mounted, err = mountOf("bpf", func(dirs []string) string {
		if slices.Contains(dirs, dir) {
			return dir
		}
		return ""
	}, dir)
	return mounted, err
}
