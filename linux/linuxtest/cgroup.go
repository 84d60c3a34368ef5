package linuxtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sextant/linux"
)

// OwnCgroup is the directory of this process on the cgroup2 file system.
func OwnCgroup(t testing.TB) string {
	t.Helper()
	root, _, err := linux.CgroupRoot()
	text, readErr := os.ReadFile("/proc/self/cgroup")
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if own, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return filepath.Join(root, own)
		}
	}
	return root
}

// MoveTo puts this process into a cgroup.
func MoveTo(dir string) error {
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0)
}
