package linux

import (
	"errors"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Routes lists the routes of a family that are as one is, in what the mask names: its table, which
// may be missing, its type and its protocol. The kernel leaves the others out itself, of which
// there may be a million.
func Routes(family int, like *netlink.Route, mask uint64) ([]netlink.Route, error) {
	kernel, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer kernel.Close()
	if err := kernel.SetStrictCheck(true); err != nil {
		return nil, err
	}
	for tries := 1; ; tries++ {
		list, err := kernel.RouteListFiltered(family, like, mask)
		switch {
		case errors.Is(err, unix.ENOENT): // no such table
			return nil, nil
		case errors.Is(err, netlink.ErrDumpInterrupted) && tries < maxDumps:
			continue // others changed routes meanwhile
		}
		return list, err
	}
}

const maxDumps = 10
