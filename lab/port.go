package lab

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux"
)

// nodeSysctls are set before a node has interfaces, so that these get the
// values of "default". The node's own come last and win.
func nodeSysctls(node *fabricNode) []Sysctl {
	sysctls := []Sysctl{
		{"net.ipv4.ip_forward", "1"},
		{"net.ipv6.conf.all.forwarding", "1"},
		// Packets come in where no route points: direct server return, ECMP.
		{"net.ipv4.conf.all.rp_filter", "0"},
		{"net.ipv4.conf.default.rp_filter", "0"},
		// An edge on one link sends back where it received.
		{"net.ipv4.conf.all.send_redirects", "0"},
		{"net.ipv4.conf.default.send_redirects", "0"},
		{"net.ipv6.conf.all.seg6_enabled", "1"},
		{"net.ipv6.conf.default.seg6_enabled", "1"},
		// Addresses are known to be unique and usable at once.
		{"net.ipv6.conf.all.accept_dad", "0"},
		{"net.ipv6.conf.default.accept_dad", "0"},
		{"net.ipv6.conf.default.addr_gen_mode", "1"}, // none: setUpPort adds the link-local address
		{"net.ipv6.conf.all.accept_ra", "0"},
		{"net.ipv6.conf.default.accept_ra", "0"},
	}
	if !node.isEdge {
		// By addresses and flow label: the only policy but 2 and 3 that spreads SRv6.
		sysctls = append(sysctls, Sysctl{"net.ipv6.fib_multipath_hash_policy", "0"})
	}
	if slices.ContainsFunc(node.Local, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		// IPv4 lets a socket bind to an address of a local route, IPv6 only with this.
		sysctls = append(sysctls, Sysctl{"net.ipv6.ip_nonlocal_bind", "1"})
	}
	for _, sysctl := range node.Sysctls {
		if portOfSysctl(node, sysctl.Name) == "" {
			sysctls = append(sysctls, sysctl)
		}
	}
	return sysctls
}

// portSysctls are set when the port is there.
func portSysctls(node *fabricNode, port string) []Sysctl {
	sysctls := []Sysctl{{"net/ipv6/conf/" + port + "/seg6_enabled", "1"}}
	for _, sysctl := range node.Sysctls {
		if portOfSysctl(node, sysctl.Name) == port {
			sysctls = append(sysctls, sysctl)
		}
	}
	return sysctls
}

// portOfSysctl returns the port of the node that a sysctl is about, "" for
// none.
func portOfSysctl(node *fabricNode, name string) string {
	path := linux.SysctlPath(name)
	for _, port := range node.ports {
		if strings.Contains(path, "/"+port.name+"/") {
			return port.name
		}
	}
	return ""
}

func writeSysctls(sysctls []Sysctl) error {
	for _, sysctl := range sysctls {
		if err := linux.WriteSysctl(sysctl.Name, sysctl.Value); err != nil {
			return err
		}
	}
	return nil
}

// setUpLoopback brings the loopback interface up with the node's addresses and
// VIPs on it.
func setUpLoopback(handle *netlink.Handle, node *fabricNode) error {
	lo, err := handle.LinkByName("lo")
	if err != nil {
		return linux.Failed(err, "find the loopback interface")
	}
	if err := handle.LinkSetUp(lo); err != nil {
		return linux.Failed(err, "bring the loopback interface up")
	}
	for _, list := range [][]netip.Addr{node.Addresses, node.VIPs} {
		for _, address := range list {
			if err := addAddress(handle, lo,
				netip.PrefixFrom(address, address.BitLen())); err != nil {
				return err
			}
		}
	}
	return nil
}

func addAddress(handle *netlink.Handle, link netlink.Link, prefix netip.Prefix) error {
	address := &netlink.Addr{IPNet: ipNet(prefix)}
	if prefix.Addr().Is6() {
		address.Flags = unix.IFA_F_NODAD
	}
	err := handle.AddrAdd(link, address)
	return linux.Failed(err, "give interface %s the address %s", link.Attrs().Name, prefix)
}

// setUpPort makes a port ready for packets and brings it up. The thread is
// inside the node.
func setUpPort(handle *netlink.Handle, node *fabricNode, p *port, pass *ebpf.Program) error {
	if err := writeSysctls(portSysctls(node, p.name)); err != nil {
		return err
	}
	// A packet that XDP redirects loses the mark that its checksum is still to be computed.
	if err := linux.SetOffload(p.name, linux.TxChecksum, false); err != nil {
		return err
	}
	if !p.claimed {
		if err := linux.AttachXDP(p.name, pass); err != nil {
			return err
		}
	}
	link, err := handle.LinkByName(p.name)
	if err != nil {
		return linux.Failed(err, "find it")
	}
	switch {
	case p.wire == WireKernel:
		err = linux.Failed(handle.QdiscAdd(netemQdisc(link.Attrs().Index, p.profile)),
			"impair what it sends")
	case p.wire == "" && p.link.RateBits > 0:
		err = linux.Failed(handle.QdiscAdd(tokenBucket(link, p.link)), "limit its rate")
	}
	if err != nil {
		return err
	}
	if err := addAddress(handle, link, netip.PrefixFrom(p.linkLocal, 64)); err != nil {
		return err
	}
	return linux.Failed(handle.LinkSetUp(link), "bring it up")
}

func ipNet(prefix netip.Prefix) *net.IPNet {
	address := prefix.Addr()
	return &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(prefix.Bits(), address.BitLen())}
}
