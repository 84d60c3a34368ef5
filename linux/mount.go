package linux

import (
	"bufio"
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// mountOf returns the directory that choose picks from where file systems of
// that type are mounted. If it picks none, one is mounted on fallback, and
// mounted is true.
func mountOf(fsType string, choose func(dirs []string) string,
	fallback string) (dir string, mounted bool, err error) {
	if dir, err = findMount(fsType, choose); dir != "" || err != nil {
		return dir, false, err
	}
	if err := os.MkdirAll(fallback, 0o755); err != nil {
		return "", false, Failed(err, "create %s to mount a %s file system on", fallback, fsType)
	}
	unlock, err := lockDir(fallback)
	if err != nil {
		return "", false, err
	}
	defer unlock()
	// Another process may have been first: a second mount would hide its content.
	if dir, err = findMount(fsType, choose); dir != "" || err != nil {
		return dir, false, err
	}
	err = unix.Mount(fsType, fallback, fsType, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	return fallback, err == nil, failedWith(err, "the kernel may be built without it",
		"mount a %s file system on %s", fsType, fallback)
}

// lockDir waits until no other process holds the directory.
func lockDir(dir string) (unlock func(), err error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, Failed(err, "open %s", dir)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		file.Close()
		return nil, Failed(err, "lock %s", dir)
	}
	return func() { file.Close() }, nil
}

func findMount(fsType string, choose func(dirs []string) string) (string, error) {
	const path = "/proc/thread-self/mountinfo"
	text, err := os.ReadFile(path)
	if err != nil {
		return "", Failed(err, "read %s", path)
	}
	return choose(mountPoints(text, fsType)), nil
}

// mountPoints lists where file systems of that type are mounted with their
// root, from the text of /proc/PID/mountinfo (proc_pid_mountinfo(5)):
//
//	41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
//
// Between the sixth field and the dash there are any number of optional ones.
func mountPoints(mountinfo []byte, fsType string) []string {
	var dirs []string
	lines := bufio.NewScanner(bytes.NewReader(mountinfo))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		dash := slices.Index(fields, "-")
		if dash < 6 || dash+1 >= len(fields) || fields[dash+1] != fsType || fields[3] != "/" {
			continue
		}
		dirs = append(dirs, unescape(fields[4]))
	}
	return dirs
}

// unescape undoes the octal escapes of blanks and backslashes in mountinfo.
func unescape(path string) string {
	var text strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] == '\\' && i+3 < len(path) {
			if code, err := strconv.ParseUint(path[i+1:i+4], 8, 8); err == nil {
				text.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		text.WriteByte(path[i])
	}
	return text.String()
}
