package linux

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

const xdpPass = 2 // enum xdp_action, linux/bpf.h

// LoadXDPPass loads the XDP program that passes every packet on. A veth
// receives frames that its peer sends by XDP_TX or redirect only if it runs an
// XDP program itself; this one makes it do so and changes nothing else. It
// takes multi-buffer packets, so any MTU will do. The caller closes it.
func LoadXDPPass() (*ebpf.Program, error) {
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name:    "sextant_pass",
		Type:    ebpf.XDP,
		License: "Dual BSD/GPL",
		Flags:   unix.BPF_F_XDP_HAS_FRAGS,
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R0, xdpPass),
			asm.Return(),
		},
	})
	return program, Failed(err, "load the XDP pass program")
}

// AttachXDP attaches a program in native mode to an interface in the current
// network namespace. It stays as long as the interface; no process or
// pin holds it. An interface that has a program already is an
// error that wraps unix.EBUSY.
func AttachXDP(iface string, program *ebpf.Program) error {
	link, err := netlink.LinkByName(iface)
	if err == nil {
		err = netlink.LinkSetXdpFdWithFlags(link, program.FD(),
			nl.XDP_FLAGS_DRV_MODE|nl.XDP_FLAGS_UPDATE_IF_NOEXIST)
	}
	mend := "\"ip link show dev " + iface + "\" tells whether another XDP program is attached"
	return failedWith(err, mend, "attach an XDP program to interface %s", iface)
}
