package linux

import (
	"encoding/binary"
	"errors"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"sextant/linux/facts"
)

func interfaceFacts(name string) (i facts.Interface, exists bool) {
	device, err := netlink.LinkByName(name)
	if err != nil {
		return i, false
	}
	attrs := device.Attrs()
	i = facts.Interface{Up: attrs.Flags&unix.IFF_UP != 0, MTU: attrs.MTU, Driver: device.Type()}
	if xdp := attrs.Xdp; xdp != nil && xdp.Attached {
		i.XDP, i.XDPProgram, i.XDPName = "native", xdp.ProgId, programName(xdp.ProgId)
		if xdp.AttachMode == nl.XDP_ATTACHED_SKB {
			i.XDP = "generic"
		}
	}
	i.Features = xdpFeatures(attrs.Index)
	// A device that can't be asked has neither.
	i.TxChecksum, _ = hasOffload(name, TxChecksum)
	i.GRO, _ = hasOffload(name, GRO)
	below, _, _ := Below(name)
	for _, device := range below {
		if on, _ := hasOffload(device, GRO); on {
			i.GROBelow = append(i.GROBelow, device)
		}
	}
	i.Qdisc = rootQdisc(device)
	sysctls(name, &i)
	return i, true
}

// rootQdisc is the kind of an interface's queueing discipline, "" if it can't be asked.
func rootQdisc(device netlink.Link) string {
	list, err := netlink.QdiscList(device)
	if err != nil {
		return ""
	}
	for _, q := range list {
		if q.Attrs().Parent == netlink.HANDLE_ROOT {
			return q.Type()
		}
	}
	return ""
}

// programName is the name of a program, "" if it can't be asked for.
func programName(id uint32) string {
	program, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return ""
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil {
		return ""
	}
	return info.Name
}

// What the generic netlink family "netdev" (Linux 6.3) knows, linux/netdev.h.
const (
	netdevCmdDevGet    = 1
	netdevAttrIfindex  = 1
	netdevAttrFeatures = 3
	netdevXDPBasic     = 1 << 0 // programs with XDP_DROP, XDP_PASS, XDP_TX and XDP_ABORTED run
	netdevXDPRedirect  = 1 << 1
	netdevXDPNdoXmit   = 1 << 2 // frames that others redirect can be sent
)

// xdpFeatures asks a driver what it can do for XDP; an older kernel does not tell.
func xdpFeatures(index int) facts.Features {
	value, err := askXDPFeatures(index)
	if err != nil {
		return facts.Features{}
	}
	const native = netdevXDPBasic | netdevXDPRedirect
	return facts.Features{Known: true, Native: value&native == native,
		Send: value&netdevXDPNdoXmit != 0}
}

func askXDPFeatures(index int) (uint64, error) {
	value, err := askGeneric("netdev", netdevCmdDevGet, netdevAttrFeatures,
		nl.NewRtAttr(netdevAttrIfindex, nl.Uint32Attr(uint32(index))))
	if err == nil && len(value) < 8 {
		err = errors.New("the kernel tells the features in an unknown form")
	}
	if err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(value), nil
}
