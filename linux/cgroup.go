package linux

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cgroupDir is where a cgroup2 file system is mounted if there is none, on a
// machine that has only version 1.
const cgroupDir = "/run/sextant/cgroup2"

// killPatience is how long the processes of a killed cgroup may take to end.
// Only one that sleeps in the kernel takes longer than a moment.
const killPatience = 5 * time.Second

// CgroupRoot returns the root of the cgroup2 hierarchy: /sys/fs/cgroup, or
// /sys/fs/cgroup/unified where version 1 is used beside it. If it is mounted
// nowhere it is mounted on /run/sextant/cgroup2, and mounted is true so that
// the user can be told.
func CgroupRoot() (dir string, mounted bool, err error) {
	return mountOf("cgroup2", firstMount, cgroupDir)
}

// firstMount: all mounts show the same hierarchy, so any will do.
func firstMount(dirs []string) string {
	if len(dirs) == 0 {
		return ""
	}
	return dirs[0]
}

// Cgroup is a control group of version 2: processes that can be told apart and
// killed together.
type Cgroup struct{ dir string }

// CreateCgroup makes the cgroup of that directory, and those above it that are
// missing. One that exists is no error.
func CreateCgroup(dir string) (*Cgroup, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, Failed(err, "create cgroup %s", dir)
	}
	return OpenCgroup(dir), nil
}

// OpenCgroup returns the cgroup of that directory, which need not exist:
// without it, it has no processes and needs no removal.
func OpenCgroup(dir string) *Cgroup { return &Cgroup{dir: dir} }

// Dir returns the cgroup's directory.
func (c *Cgroup) Dir() string { return c.dir }

// Processes lists the processes of the cgroup, not of those below it.
func (c *Cgroup) Processes() ([]int, error) {
	text, err := os.ReadFile(c.file("cgroup.procs"))
	if gone(err) {
		return nil, nil
	}
	var pids []int
	for word := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("read the processes of cgroup %s: %w", c.dir, err)
		}
		pids = append(pids, pid)
	}
	return pids, Failed(err, "read the processes of cgroup %s", c.dir)
}

// Populated says whether any process lives in the cgroup or below it. Zombies
// do not count.
func (c *Cgroup) Populated() (bool, error) {
	text, err := os.ReadFile(c.file("cgroup.events"))
	if gone(err) {
		return false, nil
	}
	return strings.Contains(string(text), "populated 1"),
		Failed(err, "read the events of cgroup %s", c.dir)
}

// Kill ends all processes in the cgroup and below it with SIGKILL, those that
// they fork meanwhile too (cgroup.kill, Linux 5.14), and waits until they are
// gone.
func (c *Cgroup) Kill() error {
	err := os.WriteFile(c.file("cgroup.kill"), []byte("1"), 0)
	if gone(err) {
		if _, missing := os.Stat(c.dir); missing == nil {
			return failedWith(err, "needs Linux 5.14 for cgroup.kill", "kill cgroup %s", c.dir)
		}
		return nil
	}
	if err != nil {
		return Failed(err, "kill cgroup %s", c.dir)
	}
	for deadline := time.Now().Add(killPatience); ; time.Sleep(time.Millisecond) {
		populated, err := c.Populated()
		if err != nil || !populated {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("kill cgroup %s: processes are still there after %v; look at %s",
				c.dir, killPatience, c.file("cgroup.procs"))
		}
	}
}

// Remove removes the cgroup and those below it, which must be without
// processes. A cgroup that does not exist is no error.
func (c *Cgroup) Remove() error {
	var dirs []string
	err := filepath.WalkDir(c.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		if gone(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return Failed(err, "look into cgroup %s", c.dir)
	}
	for _, dir := range slices.Backward(dirs) {
		if err := unix.Rmdir(dir); err != nil && !gone(err) {
			return failedWith(err, "it still holds processes: kill them first", "remove cgroup %s",
				dir)
		}
	}
	return nil
}

func (c *Cgroup) file(name string) string { return filepath.Join(c.dir, name) }

// gone says that the cgroup was removed before or during the request.
func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENODEV)
}
