package linux

import (
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux/facts"
)

// routeReader asks the kernel for many routes: by one socket, and once for each interface.
type routeReader struct {
	handle  *netlink.Handle
	devices map[int]routeDevice
}

// routeDevice is an interface to which routes lead.
type routeDevice struct {
	name       string
	neighbours map[netip.Addr]int // their states
}

func newRouteReader() *routeReader {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		handle = &netlink.Handle{} // which opens a socket for each question
	}
	return &routeReader{handle, map[int]routeDevice{}}
}

func (r *routeReader) close() { r.handle.Close() }

// isLocal reports whether packets to an address are delivered on this machine.
func (r *routeReader) isLocal(a netip.Addr) bool {
	routes, err := r.handle.RouteGet(a.AsSlice())
	return err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL
}

// Undelivered returns those of some addresses to which packets are not delivered on this machine.
func Undelivered(addresses []netip.Addr) []netip.Addr {
	routes := newRouteReader()
	defer routes.close()
	return slices.DeleteFunc(slices.Clone(addresses), routes.isLocal)
}

// neighbourStates are those that doctor can use.
var neighbourStates = map[int]string{
	netlink.NUD_REACHABLE: "reachable", netlink.NUD_STALE: "reachable",
	netlink.NUD_DELAY: "reachable", netlink.NUD_PROBE: "reachable",
	netlink.NUD_PERMANENT: "reachable", netlink.NUD_NOARP: "reachable",
	netlink.NUD_FAILED: "failed", netlink.NUD_INCOMPLETE: "failed",
}

// routeTo asks the kernel for the way to an address.
func (r *routeReader) routeTo(a netip.Addr) facts.Route {
	routes, err := r.handle.RouteGet(a.AsSlice())
	if err != nil || len(routes) == 0 {
		return facts.Route{} // none, or one that refuses
	}
	device := r.device(routes[0].LinkIndex)
	next := a
	if gateway, ok := netip.AddrFromSlice(routes[0].Gw); ok {
		next = gateway
	}
	return facts.Route{Reachable: routes[0].Type != unix.RTN_BLACKHOLE, MTU: routes[0].MTU,
		Interface: device.name, Neighbour: neighbourStates[device.neighbours[next]]}
}

func (r *routeReader) device(index int) routeDevice {
	d, known := r.devices[index]
	if known {
		return d
	}
	if link, err := r.handle.LinkByIndex(index); err == nil {
		d.name, d.neighbours = link.Attrs().Name, map[netip.Addr]int{}
		list, _ := r.handle.NeighList(index, netlink.FAMILY_V6) // unknown is no fault
		for _, n := range list {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				d.neighbours[ip] = n.State
			}
		}
	}
	r.devices[index] = d
	return d
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
