package kernel

import "slices"

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
