package linux_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"sextant/linux"
	"sextant/linux/linuxtest"
)

var serial atomic.Int32

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// uniqueName is a name that no other test, and no other run of this test, has.
func uniqueName(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make network namespaces and cgroups: run with sudo")
	}
	return fmt.Sprintf("sxk%d-%d", os.Getpid(), serial.Add(1))
}

// netns is an open namespace that knows its name.
type netns struct {
	*linux.Netns
	name string
}

func (n netns) Name() string { return n.name }

func newNetns(t *testing.T) netns {
	t.Helper()
	ns, name := linuxtest.Netns(t)
	return netns{ns, name}
}

func newCgroup(t *testing.T) *linux.Cgroup {
	t.Helper()
	name := uniqueName(t)
	root, _, err := linux.CgroupRoot()
	if err != nil {
		t.Fatal(err)
	}
	group, err := linux.CreateCgroup(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Kill(); err != nil {
			t.Error(err)
		}
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	})
	return group
}
