package linux

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// neighborValid are the states in which the kernel has a link address to send to: NUD_VALID of its
// include/net/neighbour.h.
const neighborValid = netlink.NUD_PERMANENT | netlink.NUD_NOARP | netlink.NUD_REACHABLE |
	netlink.NUD_PROBE | netlink.NUD_STALE | netlink.NUD_DELAY

// AwaitNeighbor waits until the kernel knows the link address of the next hop to an address, and
// has it look for it. While it does, the kernel keeps neigh/IF/unres_qlen_bytes of packets, and
// drops others. The error is the context's, or says why there is no such neighbour.
func AwaitNeighbor(ctx context.Context, a netip.Addr) error {
	routes, err := netlink.RouteGet(a.AsSlice())
	if err != nil {
		return fmt.Errorf("route to %s: %w", a, err)
	}
	route := routes[0] // the kernel answers with one, or an error
	if route.Type == unix.RTN_LOCAL {
		return nil
	}
	next := route.Gw
	if next == nil {
		next = a.AsSlice()
	}
	family := netlink.FAMILY_V6
	if next.To4() != nil {
		family = netlink.FAMILY_V4
	}
	use := &netlink.Neigh{LinkIndex: route.LinkIndex, Family: family, IP: next,
		Flags: netlink.NTF_USE}
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		// Again and again: the kernel gives up after some solicitations.
		if err := netlink.NeighSet(use); err != nil {
			return fmt.Errorf("look for the neighbour %s on the way to %s: %w", next, a, err)
		}
		known, err := netlink.NeighList(route.LinkIndex, family)
		if err != nil {
			return fmt.Errorf("list the neighbours on the way to %s: %w", a, err)
		}
		for _, n := range known {
			if n.IP.Equal(next) && n.State&neighborValid != 0 {
				return nil
			}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("the neighbour %s on the way to %s does not answer: %w", next, a,
				ctx.Err())
		}
	}
}
