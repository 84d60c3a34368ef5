//go:build packaging

package deb_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sextant/linux"
)

// machine is a Debian of its own: this machine's disk with changes that are forgotten, a systemd,
// no network but a loopback.
type machine struct {
	t    *testing.T
	name string
	init *os.Process
	// others are all that were booted with it.
	others map[string]*machine
}

// patience is how long a machine may take for one command.
const patience = 3 * time.Minute

// boot starts machines, which end with the test.
func boot(t *testing.T, names ...string) map[string]*machine {
	t.Helper()
	require(t)
	machines := map[string]*machine{}
	for _, name := range names {
		machines[name] = start(t, name)
		machines[name].others = machines
	}
	for _, m := range machines {
		m.wait("systemctl is-system-running --wait | grep -qE 'running|degraded'")
	}
	return machines
}

// require tells what is missing for machines.
func require(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to make namespaces: run with sudo")
	}
	for _, file := range []string{"/lib/systemd/systemd", "/usr/bin/dpkg",
		"/usr/bin/deb-systemd-helper"} {
		if _, err := os.Stat(file); err != nil {
			t.Fatal("a Debian with systemd is needed; scripts/deps.sh test fetches what is "+
				"missing: ", err)
		}
	}
}

func start(t *testing.T, name string) *machine {
	t.Helper()
	group := filepath.Join(groups(t), fmt.Sprintf("sextant-%s-%d", name, os.Getpid()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("testdata/machine.sh", group, t.TempDir(), name)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig: syscall.SIGKILL,
	}
	log := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, name: name, init: cmd.Process}
	t.Cleanup(func() {
		if t.Failed() {
			said, _ := m.command(context.Background(),
				"journalctl --no-pager -n 20 -u sextant -u frr").CombinedOutput()
			t.Logf("%s: %s%s", name, log, said)
		}
		cmd.Process.Kill() // and with the first process of a namespace all others
		cmd.Wait()
		removeGroup(group)
	})
	return m
}

// groups is where control groups of version 2 are.
func groups(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); fields[2] == "cgroup2" {
			return fields[1]
		}
	}
	t.Skip("needs the kernel's control groups of version 2, mounted anywhere")
	return ""
}

// removeGroup removes a control group and those below, as soon as their processes are gone.
func removeGroup(group string) {
	for range 100 {
		var below []string
		filepath.WalkDir(group, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				below = append(below, path)
			}
			return nil
		})
		for i := len(below) - 1; i >= 0; i-- {
			syscall.Rmdir(below[i])
		}
		if _, err := os.Stat(group); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// command is a shell's on the machine, with nothing of this process's environment.
func (m *machine) command(ctx context.Context, script string) *exec.Cmd {
	pid := strconv.Itoa(m.init.Pid)
	cmd := exec.CommandContext(ctx, "nsenter", "-t", pid, "-m", "-p", "-n", "-u", "-i", "-C", "--",
		"env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root", "LC_ALL=C", "TERM=dumb",
		"HOSTNAME="+m.name, "bash", "-c", "cd /root\n"+script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second // what a command leaves running may hold its output open
	return cmd
}

// try runs a script and returns all that it printed.
func (m *machine) try(script string) (string, error) {
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	output, err := m.command(ctx, script).CombinedOutput()
	return string(output), err
}

// run does so for a script that must succeed.
func (m *machine) run(script string) string {
	m.t.Helper()
	output, err := m.try(script)
	if err != nil {
		m.t.Fatalf("%s: %s: %v\n%s", m.name, script, err, output)
	}
	return output
}

// wait repeats a script until it succeeds.
func (m *machine) wait(script string) {
	m.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		output, err := m.try(script)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("%s: %s never succeeded: %v\n%s", m.name, script, err, output)
		}
	}
}

// give puts a file of this machine onto that one.
func (m *machine) give(from, to string) {
	m.t.Helper()
	file, err := os.Open(from)
	if err != nil {
		m.t.Fatal(err)
	}
	defer file.Close()
	cmd := m.command(m.t.Context(), "cat > "+to)
	cmd.Stdin = file
	if output, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("%s: write %s: %v\n%s", m.name, to, err, output)
	}
}

// connect makes a cable between two interfaces. Checksums are written, as on a cable.
func connect(t *testing.T, a *machine, nameA string, b *machine, nameB string) {
	t.Helper()
	cmd := exec.Command("ip", "link", "add", nameA, "netns", strconv.Itoa(a.init.Pid), "type",
		"veth",
		"peer", "name", nameB, "netns", strconv.Itoa(b.init.Pid))
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, output)
	}
	a.run(fmt.Sprintf("ip link set %[1]s up && ethtool -K %[1]s tx off >/dev/null", nameA))
	b.run(fmt.Sprintf("ip link set %[1]s up && ethtool -K %[1]s tx off >/dev/null", nameB))
}

// receive makes an interface of a machine without Sextant receive as a network card does. Of what a
// program at the other end of a veth sends back (XDP_TX), Linux tells an end with a program of its
// own alone; with GRO, frames lie there until another kind of frame comes.
func (m *machine) receive(name string) {
	m.t.Helper()
	program, err := linux.LoadXDPPass()
	if err != nil {
		m.t.Fatal(err)
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil {
		m.t.Fatal(err)
	}
	id, _ := info.ID()
	m.run(fmt.Sprintf("bpftool net attach xdpdrv id %d dev %s", id, name))
}
