package linux

import (
	"context"
	"fmt"
	"net"
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
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		// Again and again: the route may be another meanwhile, as of an address that the kernel is
		// about to make its own, and the kernel gives up after some solicitations.
		next, known, err := askNeighbor(a)
		if err != nil || known {
			return err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("the neighbour %s on the way to %s does not answer: %w", next, a,
				ctx.Err())
		}
	}
}

// askNeighbor says whether the kernel knows the link address of the next hop to an address, which
// a local one does not need, and has the kernel look for it.
func askNeighbor(a netip.Addr) (next net.IP, known bool, err error) {
	routes, err := netlink.RouteGet(a.AsSlice())
	if err != nil {
		return nil, false, fmt.Errorf("route to %s: %w", a, err)
	}
	route := routes[0] // the kernel answers with one, or an error
	if route.Type == unix.RTN_LOCAL {
		return nil, true, nil
	}
	next = route.Gw
	if next == nil {
		next = a.AsSlice()
	}
	family := netlink.FAMILY_V6
	if next.To4() != nil {
		family = netlink.FAMILY_V4
	}
	if err := seek(route.LinkIndex, family, next); err != nil {
		return nil, false, fmt.Errorf("look for the neighbour %s on the way to %s: %w", next, a,
			err)
	}
	neighbors, err := netlink.NeighList(route.LinkIndex, family)
	if err != nil {
		return nil, false, fmt.Errorf("list the neighbours on the way to %s: %w", a, err)
	}
	for _, n := range neighbors {
		if n.IP.Equal(next) && n.State&neighborValid != 0 {
			return next, true, nil
		}
	}
	return next, false, nil
}

// SeekNeighbor has the kernel look for the link address of a neighbour, as if it had a packet for
// it. It does not wait for the answer.
func SeekNeighbor(index int, a netip.Addr) error {
	family := netlink.FAMILY_V6
	if a.Is4() {
		family = netlink.FAMILY_V4
	}
	return Failed(seek(index, family, a.AsSlice()), "look for the neighbour %s", a)
}

func seek(index, family int, a net.IP) error {
	return netlink.NeighSet(&netlink.Neigh{LinkIndex: index, Family: family, IP: a,
		Flags: netlink.NTF_USE})
}
