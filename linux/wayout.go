package linux

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// WayOut is by which interface packets to an address leave, and how long they can be.
type WayOut struct {
	Interface string
	Index     int
	MTU       int
}

// WayTo asks the kernel for the way to an address.
func WayTo(a netip.Addr) (w WayOut, err error) {
	routes, err := netlink.RouteGet(a.AsSlice())
	switch {
	case err != nil:
		return w, fmt.Errorf("route to %s: %w", a, err)
	case len(routes) == 0, routes[0].Type != unix.RTN_UNICAST:
		return w, fmt.Errorf("route to %s: it leads to no neighbour", a)
	}
	device, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return w, fmt.Errorf("route to %s: %w", a, err)
	}
	w = WayOut{device.Attrs().Name, device.Attrs().Index, device.Attrs().MTU}
	if routes[0].MTU != 0 {
		w.MTU = min(w.MTU, routes[0].MTU)
	}
	return w, nil
}
