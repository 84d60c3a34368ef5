package agent

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"sextant/config"
)

// machine is what the agent asks about the kernel and about itself.
type machine struct {
	btf          string // file of the kernel's type information
	release      string // of the kernel
	capabilities uint64 // effective ones of this process, a bit each
	has          func(in ebpf.ProgramType, helper asm.BuiltinFunc) error
}

func thisMachine() (machine, error) {
	m := machine{btf: "/sys/kernel/btf/vmlinux", has: features.HaveProgramHelper}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return m, fmt.Errorf("ask for the kernel's release: %w", err)
	}
	m.release = unix.ByteSliceToString(name.Release[:])
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var words [2]unix.CapUserData // 32 capabilities each
	if err := unix.Capget(&header, &words[0]); err != nil {
		return m, fmt.Errorf("ask for the capabilities of this process: %w", err)
	}
	m.capabilities = uint64(words[1].Effective)<<32 | uint64(words[0].Effective)
	return m, nil
}

// capabilities are what loading and attaching the programs takes, and taking over from an agent
// before: the kernel wants CAP_SYS_ADMIN of who opens a program or a map by its number.
var capabilities = []struct {
	bit  uint
	name string
}{
	{unix.CAP_BPF, "CAP_BPF"}, {unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"},
	{unix.CAP_PERFMON, "CAP_PERFMON"},
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
}

// helpers are those functions of the kernel, called by the programs, that came last.
var helpers = []struct {
	what   string
	since  string
	helper asm.BuiltinFunc
	in     ebpf.ProgramType
}{
	{"bpf_xdp_load_bytes in XDP programs", "5.18", asm.FnXdpLoadBytes, ebpf.XDP},
	{"bpf_loop in XDP programs", "5.17", asm.FnLoop, ebpf.XDP},
	{"bpf_skc_lookup_tcp in XDP programs", "5.2", asm.FnSkcLookupTcp, ebpf.XDP},
	{"bpf_get_netns_cookie in sockops programs", "5.15", asm.FnGetNetnsCookie, ebpf.SockOps},
}

// checkMachine refuses a machine on which the roles of a node can't run.
func checkMachine(n *config.Node) error {
	if !needsMachine(n) {
		return nil
	}
	m, err := thisMachine()
	if err != nil {
		return err
	}
	return m.check()
}

// needsMachine reports whether a node has a role that eBPF programs carry out, or that needs the
// same of the machine.
func needsMachine(n *config.Node) bool { return len(n.AgentRoles()) > 0 }

// Lacking lists what an agent needs and does not find: features of the kernel, and capabilities of
// this process.
func Lacking() (features, capabilities []string, err error) {
	m, err := thisMachine()
	if err != nil {
		return nil, nil, err
	}
	return m.lacksFeatures(), m.lacksCapabilities(), nil
}

func (m machine) lacksCapabilities() []string {
	var missing []string
	for _, c := range capabilities {
		if m.capabilities&(1<<c.bit) == 0 {
			missing = append(missing, c.name)
		}
	}
	return missing
}

func (m machine) lacksFeatures() []string {
	var missing []string
	if _, err := os.Stat(m.btf); err != nil {
		missing = append(missing, "type information (BTF)")
	}
	for _, need := range helpers {
		if err := m.has(need.in, need.helper); errors.Is(err, ebpf.ErrNotSupported) {
			missing = append(missing, need.what+", which is there since Linux "+need.since)
		}
	}
	return missing
}

// check refuses a kernel or a user with which the programs can't run, and says what is missing.
func (m machine) check() error {
	if missing := m.lacksCapabilities(); len(missing) > 0 {
		return fmt.Errorf("missing privilege: this process lacks %s; start it as root, for "+
			"example with sudo",
			strings.Join(missing, ", "))
	}
	if _, err := os.Stat(m.btf); err != nil {
		return fmt.Errorf("this kernel (%s) has no type information (BTF); "+
			"use one built with CONFIG_DEBUG_INFO_BTF=y, as those of Debian 12 and newer are",
			m.release)
	}
	if missing := m.lacksFeatures(); len(missing) > 0 {
		return fmt.Errorf("this kernel (%s) has no %s; use Linux 6.1 or newer", m.release,
			missing[0])
	}
	return nil
}

// lackInterfaces refuses a node that names interfaces which are not here and that the node before
// did not name: programs can't be attached there.
func lackInterfaces(before, next *config.Node) error {
	known := before.InterfaceNames()
	var faults []error
	for _, name := range next.InterfaceNames() {
		if slices.Contains(known, name) {
			continue
		}
		if _, err := net.InterfaceByName(name); err != nil {
			faults = append(faults, fmt.Errorf(
				"interface %s: no such interface here; ip link lists them", name))
		}
	}
	return errors.Join(faults...)
}
