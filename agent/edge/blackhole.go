package edge

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/api"
	"sextant/linux"
)

// What the edge program does not take of a VIP's packets goes on to the kernel, and so does
// everything in the moments in which the program is not attached. The kernel would send it back to
// the router that it came from, which sends it here again, or answer "no route", which ends
// connections that are being opened. A route that drops it is there for both. It is the last resort
// of its prefix: any other route to the same address, and the address itself on an interface, come
// first.

const (
	blackholeMetric   = 0x7fffffff // the highest is the last
	blackholeProtocol = 94         // who made the route, as with health checks

	// A routing daemon that redistributes the kernel's routes leaves those of this protocol out.
	// So, while the program is off an interface, no router sends packets for a VIP here, and those
	// that come are dropped.
	withdrawnMetric   = blackholeMetric - 1
	withdrawnProtocol = unix.RTPROT_KERNEL
)

// blackhole is a route that drops what comes for a VIP.
type blackhole struct {
	vip       netip.Addr
	withdrawn bool // not to be announced
}

// dropStrays makes the kernel drop what comes to it for the VIPs of the edge. Without these routes
// the edge does its work.
func (e *Room) dropStrays() {
	wanted := map[blackhole]bool{}
	if e.Node.Edge != nil {
		for _, s := range e.Node.Edge.Services {
			wanted[blackhole{s.VIP, !e.Attached.Processes(api.Edge)}] = true
		}
	}
	before := e.strays
	e.strays = ""
	if err := setBlackholes(wanted); err != nil {
		e.strays = fmt.Sprintf("packets to VIPs that the program passes on may circle between "+
			"this edge and its router: %v; "+
			"give each VIP a blackhole route (ip route add blackhole VIP)", err)
		e.Log.Warn(e.strays)
	}
	if e.strays != before {
		e.Rewarn()
	}
}

func setBlackholes(wanted map[blackhole]bool) error {
	there, err := blackholes()
	if err != nil {
		return err
	}
	for b := range wanted {
		if _, ok := there[b]; ok {
			continue
		}
		if err := netlink.RouteAdd(b.route()); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("add blackhole route to %s: %w", b.vip, err)
		}
	}
	for b, route := range there {
		if !wanted[b] {
			if err := netlink.RouteDel(&route); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("remove blackhole route to %s: %w", b.vip, err)
			}
		}
	}
	return nil
}

func (b blackhole) route() *netlink.Route {
	r := &netlink.Route{
		Dst:  &net.IPNet{IP: b.vip.AsSlice(), Mask: net.CIDRMask(b.vip.BitLen(), b.vip.BitLen())},
		Type: unix.RTN_BLACKHOLE, Table: unix.RT_TABLE_MAIN, Protocol: blackholeProtocol,
		Priority: blackholeMetric,
	}
	if b.withdrawn {
		r.Protocol, r.Priority = withdrawnProtocol, withdrawnMetric
	}
	return r
}

// blackholes lists those that this agent or an earlier one made.
func blackholes() (map[blackhole]netlink.Route, error) {
	list := map[blackhole]netlink.Route{}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		filter := &netlink.Route{Table: unix.RT_TABLE_MAIN, Type: unix.RTN_BLACKHOLE}
		routes, err := linux.Routes(family, filter,
			netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE)
		if err != nil {
			return nil, fmt.Errorf("list blackhole routes: %w", err)
		}
		for _, r := range routes {
			announced := r.Protocol == blackholeProtocol && r.Priority == blackholeMetric
			withdrawn := r.Protocol == withdrawnProtocol && r.Priority == withdrawnMetric
			if !announced && !withdrawn || r.Dst == nil {
				continue
			}
			if vip, ok := netip.AddrFromSlice(r.Dst.IP); ok {
				list[blackhole{vip.Unmap(), withdrawn}] = r
			}
		}
	}
	return list, nil
}

// removeBlackholes removes them if an edge is there whose VIPs they are for.
func removeBlackholes(edge string) error {
	if _, err := os.Stat(edge); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return setBlackholes(nil)
}

// shortHolds warns of services whose backends get connections of one edge before the checks of
// another one must have noticed that they are back.
func (e *Room) shortHolds() (warnings []string) {
	if e.Node.Edge == nil || len(e.Node.Edge.Peers) == 0 && e.Node.BGP == nil {
		return nil // there may be other edges, but nothing here says so
	}
	for _, s := range e.Node.Edge.Services {
		if s.Check == nil {
			continue
		}
		if need := s.Check.Notice(); s.ReturnHold < need {
			warnings = append(warnings, fmt.Sprintf("service %s: returnHold %v is less than the "+
				"%v in which the checks of another edge "+
				"notice that a backend is back: connections may break that come by both; write "+
				"returnHold: %v",
				s.Name, s.ReturnHold, need, need))
		}
	}
	return warnings
}
