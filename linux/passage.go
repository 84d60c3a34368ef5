package linux

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux/facts"
)

// Passage asks the kernel what it does with a packet that an interface receives: the look-up with
// all its checks, without a packet.
func Passage(iface string, source, destination netip.Addr) facts.Passage {
	routes, err := netlink.RouteGetWithOptions(destination.AsSlice(),
		&netlink.RouteGetOptions{Iif: iface, SrcAddr: source.AsSlice()})
	switch {
	case err != nil && destination.Is4():
		return refusal4(err, iface, source)
	case errors.Is(err, unix.ENETUNREACH):
		return facts.Passage{Fate: facts.NoRoute}
	case refuses(err):
		return facts.Passage{Fate: facts.Refused}
	case err != nil || len(routes) == 0:
		return facts.Passage{}
	case routes[0].Type == unix.RTN_LOCAL:
		return facts.Passage{Fate: facts.Delivered}
	}
	p := facts.Passage{Fate: facts.Forwarded}
	if device, err := netlink.LinkByIndex(routes[0].LinkIndex); err == nil {
		p.Interface = device.Attrs().Name
	}
	if encap, ok := routes[0].Encap.(*netlink.SEG6Encap); ok {
		for _, segment := range slices.Backward(encap.Segments) { // the last one comes first
			if s, ok := netip.AddrFromSlice(segment); ok {
				p.Segments = append(p.Segments, s)
			}
		}
	}
	if len(p.Segments) > 0 {
		p.Source = encapsulationSource(p.Segments[0])
	}
	// the latter since Linux 6.17
	const all6, one6 = "net/ipv6/conf/all/forwarding", "force_forwarding"
	ipv6 := destination.Is6() || len(p.Segments) > 0
	if ipv6 && sysctlNumber(all6) == 0 && sysctlNumber("net/ipv6/conf/"+iface+"/"+one6) == 0 {
		return facts.Passage{Fate: facts.NotForwarding, Off: "net.ipv6.conf.all.forwarding"}
	}
	return p
}

func refuses(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EACCES) ||
		errors.Is(err, unix.EHOSTUNREACH)
}

// refusal4 reads from the error what becomes of an IPv4 packet.
func refusal4(err error, iface string, source netip.Addr) facts.Passage {
	forwards := "net/ipv4/conf/" + iface + "/forwarding"
	switch {
	case errors.Is(err, unix.EHOSTUNREACH) && sysctlNumber(forwards) == 0:
		return facts.Passage{Fate: facts.NotForwarding,
			Off: "net.ipv4.conf." + iface + ".forwarding"}
	case errors.Is(err, unix.ENETUNREACH):
		return facts.Passage{Fate: facts.NoRoute}
	case errors.Is(err, unix.EXDEV), // before Linux 6.14
		errors.Is(err, unix.EINVAL) && !comesBack(iface, source, reversePathFilter(iface)):
		return facts.Passage{Fate: facts.ReversePath}
	case refuses(err):
		return facts.Passage{Fate: facts.Refused}
	}
	return facts.Passage{}
}

// What the generic netlink family "SEG6" knows, linux/seg6_genl.h.
const (
	seg6CmdGetTunnelSource = 4
	seg6AttrAddress        = 1
)

// encapsulationSource is the outer source of what the kernel's segment routing sends to a segment:
// the one that "ip sr tunsrc" sets, else an address of the interface by which it leaves.
func encapsulationSource(segment netip.Addr) netip.Addr {
	value, err := askGeneric("SEG6", seg6CmdGetTunnelSource, seg6AttrAddress)
	if err != nil {
		return netip.Addr{}
	}
	if set, ok := netip.AddrFromSlice(value); ok && !set.IsUnspecified() {
		return set
	}
	routes, err := netlink.RouteGet(segment.AsSlice())
	if err != nil || len(routes) == 0 {
		return netip.Addr{}
	}
	chosen, _ := netip.AddrFromSlice(routes[0].Src)
	return chosen
}
