package linux_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sextant/linux"
)

func TestMountPoints(t *testing.T) {
	const mountinfo = `22 27 0:21 / /proc rw,relatime - proc proc rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 master:2 - cgroup2 cgroup2 rw
42 31 0:38 /some/group /mnt/part rw,relatime shared:9 - cgroup2 cgroup2 rw
43 31 0:38 / /mnt/with\040blank\134slash rw,relatime - cgroup2 none rw
44 31 0:39 / /sys/fs/bpf rw,relatime shared:10 - bpf bpf rw,mode=700
45 31 0:39 / /short rw
46 31 0:39 / /cut rw,relatime -
`
	for fsType, want := range map[string][]string{
		"cgroup2": {"/sys/fs/cgroup/unified", `/mnt/with blank\slash`},
		"bpf":     {"/sys/fs/bpf"},
		"none":    nil,
	} {
		if diff := cmp.Diff(want, linux.MountPoints([]byte(mountinfo), fsType)); diff != "" {
			t.Errorf("mount points of %s (-want +got):\n%s", fsType, diff)
		}
	}
}

func TestFileSystemsAreMounted(t *testing.T) {
	uniqueName(t) // needs root
	for _, test := range []struct {
		find func() (string, bool, error)
		file string
	}{
		{linux.BPFFS, "."},
		{linux.CgroupRoot, "cgroup.procs"},
	} {
		dir, _, err := test.find()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, test.file)); err != nil {
			t.Error(err)
		}
		again, mounted, err := test.find()
		if again != dir || mounted || err != nil {
			t.Errorf("second look: %s, mounted %v, %v; want %s, not mounted again", again, mounted,
				err, dir)
		}
	}
}

func TestCgroupKillsTheWholeTree(t *testing.T) {
	group := newCgroup(t)
	below, err := linux.CreateCgroup(filepath.Join(group.Dir(), "below"))
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command("/bin/sh", "-c", "sleep 1000 & sleep 1000 & wait")
	if err := linux.Start(parent, nil, below); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("/bin/sleep", "1000")
	if err := linux.Start(other, nil, group); err != nil {
		t.Fatal(err)
	}
	if pids, err := group.Processes(); err != nil || !slices.Equal(pids, []int{other.Process.Pid}) {
		t.Errorf("Processes() = %v, %v; want %d alone", pids, err, other.Process.Pid)
	}
	if err := group.Remove(); err == nil {
		t.Error("Remove of a cgroup with processes succeeded")
	}
	if err := group.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{parent, other} {
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Success() {
			t.Errorf("%v ended with %v, want it killed", cmd.Args, err)
		}
	}
	if populated, err := group.Populated(); populated || err != nil {
		t.Errorf("Populated() after Kill = %v, %v", populated, err)
	}
}

func TestCgroupThatIsNotThere(t *testing.T) {
	group := newCgroup(t)
	for range 2 {
		if err := group.Kill(); err != nil {
			t.Error(err)
		}
		if err := group.Remove(); err != nil {
			t.Error(err)
		}
	}
	if pids, err := group.Processes(); len(pids) != 0 || err != nil {
		t.Errorf("Processes() = %v, %v; want none", pids, err)
	}
}
