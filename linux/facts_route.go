package linux

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux/facts"
)

// isLocal reports whether packets to an address are delivered on this machine.
func isLocal(a netip.Addr) bool {
	routes, err := netlink.RouteGet(a.AsSlice())
	return err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL
}

// neighbourStates are those that doctor can use.
var neighbourStates = map[int]string{
	netlink.NUD_REACHABLE: "reachable", netlink.NUD_STALE: "reachable",
	netlink.NUD_DELAY: "reachable", netlink.NUD_PROBE: "reachable",
	netlink.NUD_PERMANENT: "reachable", netlink.NUD_NOARP: "reachable",
	netlink.NUD_FAILED: "failed", netlink.NUD_INCOMPLETE: "failed",
}

// routeTo asks the kernel for the way to an address.
func routeTo(a netip.Addr) facts.Route {
	routes, err := netlink.RouteGet(a.AsSlice())
	if err != nil || len(routes) == 0 {
		return facts.Route{} // none, or one that refuses
	}
	route := facts.Route{Reachable: routes[0].Type != unix.RTN_BLACKHOLE, MTU: routes[0].MTU}
	device, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return route
	}
	route.Interface = device.Attrs().Name
	next := a
	if gateway, ok := netip.AddrFromSlice(routes[0].Gw); ok {
		next = gateway
	}
	neighbours, err := netlink.NeighList(routes[0].LinkIndex, netlink.FAMILY_V6)
	for _, n := range neighbours {
		if ip, ok := netip.AddrFromSlice(n.IP); ok && err == nil && ip == next {
			route.Neighbour = neighbourStates[n.State]
		}
	}
	return route
}

// comesBack reports whether the reverse path filter lets packets of a source in by an interface, as
// the kernel's fib_validate_source decides: a route of the main table, or of the VRF that the
// interface is, leads back by it; in loose mode by any, if it has an address.
func comesBack(iface string, source netip.Addr, filter int) bool {
	if filter == 0 {
		return true
	}
	in, err := netlink.LinkByName(iface)
	if err != nil {
		return false
	}
	options := &netlink.RouteGetOptions{}
	if in.Type() == "vrf" {
		options.VrfName = iface
	}
	routes, err := netlink.RouteGetWithOptions(source.AsSlice(), options)
	switch {
	case err != nil || len(routes) == 0:
		return false
	case routes[0].Type == unix.RTN_LOCAL: // not the filter's business
		return true
	case routes[0].LinkIndex == in.Attrs().Index:
		return true
	}
	const loose = 2
	addresses, err := netlink.AddrList(in, netlink.FAMILY_V4)
	return filter == loose && err == nil && len(addresses) > 0
}
