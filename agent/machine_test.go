package agent

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"sextant/config"
)

func TestWhatIsMissingIsNamed(t *testing.T) {
	btf := t.TempDir()
	all := uint64(1<<unix.CAP_BPF | 1<<unix.CAP_NET_ADMIN | 1<<unix.CAP_PERFMON |
		1<<unix.CAP_SYS_ADMIN)
	without := func(gone asm.BuiltinFunc) func(ebpf.ProgramType, asm.BuiltinFunc) error {
		return func(_ ebpf.ProgramType, helper asm.BuiltinFunc) error {
			if helper == gone {
				return ebpf.ErrNotSupported
			}
			return nil
		}
	}
	for _, c := range []struct {
		machine machine
		want    string
	}{
		{machine{btf: btf, capabilities: 1 << unix.CAP_NET_ADMIN, has: without(0)},
			"missing privilege: this process lacks CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN; start it " +
				"as root, for example with sudo"},
		{machine{btf: btf + "/none", release: "6.1", capabilities: all, has: without(0)},
			"this kernel (6.1) has no type information (BTF); use one built with " +
				"CONFIG_DEBUG_INFO_BTF=y, as those of Debian 12 and newer are"},
		{machine{btf: btf, release: "5.10", capabilities: all, has: without(asm.FnLoop)},
			"this kernel (5.10) has no bpf_loop in XDP programs, which is there since Linux " +
				"5.17; use Linux 6.1 or newer"},
		{machine{btf: btf, capabilities: all, has: without(0)}, ""},
	} {
		got := ""
		if err := c.machine.check(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("error %q, want %q", got, c.want)
		}
	}
}

// A node that only takes strays away needs the machine for it too.
func TestRolesThatNeedTheMachine(t *testing.T) {
	for name, c := range map[string]struct {
		node *config.Node
		want bool
	}{
		"edge":         {&config.Node{Edge: &config.Edge{}}, true},
		"host":         {&config.Node{Host: &config.Host{}}, true},
		"headend":      {&config.Node{Headend: &config.Headend{}}, true},
		"merge":        {&config.Node{Merge: &config.Merge{}}, true},
		"strays":       {&config.Node{Strays: &config.Strays{}}, true},
		"routes alone": {&config.Node{Routing: &config.Routing{}}, false},
	} {
		if got := needsMachine(c.node); got != c.want {
			t.Errorf("%s: needs the machine: %v, want %v", name, got, c.want)
		}
	}
}

// TestLackingFeature hides the kernel's type information from a thread.
func TestLackingFeature(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for a mount namespace: run with sudo")
	}
	features, capabilities, err := Lacking()
	if err != nil || len(features)+len(capabilities) > 0 {
		t.Errorf("this machine lacks %v, %v, %v", features, capabilities, err)
	}
	// never unlocked: the thread, and with it the namespace, ends with the test
	runtime.LockOSThread()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS))
	must(unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""))
	must(unix.Mount(t.TempDir(), "/sys/kernel/btf", "", unix.MS_BIND, ""))
	features, _, err = Lacking()
	if err != nil || !slices.Equal(features, []string{"type information (BTF)"}) {
		t.Errorf("without BTF it lacks %v, %v", features, err)
	}
}

func TestThisMachineWillDo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to ask the kernel for its helpers: run with sudo")
	}
	m, err := thisMachine()
	if err == nil {
		err = m.check()
	}
	if err != nil {
		t.Error(err)
	}
}
