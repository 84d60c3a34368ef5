package agent

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"
)

// checkMachine refuses a kernel or a user with which the programs can't run, before anything is touched, and says what is missing.
func checkMachine() error {
	if os.Geteuid() != 0 {
		return errors.New("run the agent: missing privilege: start it as root, for example with sudo")
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return errors.New("run the agent: the kernel has no type information (BTF); " +
			"use one built with CONFIG_DEBUG_INFO_BTF=y, as those of Debian 12 and newer are")
	}
	for _, need := range []struct {
		what   string
		since  string
		helper asm.BuiltinFunc
		in     ebpf.ProgramType
	}{
		{"bpf_xdp_load_bytes in XDP programs", "5.18", asm.FnXdpLoadBytes, ebpf.XDP},
		{"bpf_loop in XDP programs", "5.17", asm.FnLoop, ebpf.XDP},
		{"bpf_skc_lookup_tcp in XDP programs", "5.2", asm.FnSkcLookupTcp, ebpf.XDP},
		{"bpf_get_netns_cookie in sockops programs", "5.15", asm.FnGetNetnsCookie, ebpf.SockOps},
	} {
		err := features.HaveProgramHelper(need.in, need.helper)
		if errors.Is(err, ebpf.ErrNotSupported) {
			return fmt.Errorf("run the agent: this kernel (%s) has no %s, which is there since Linux %s; Sextant needs 6.1 or newer",
				kernelRelease(), need.what, need.since)
		}
	}
	return nil
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}
