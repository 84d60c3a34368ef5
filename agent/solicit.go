package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/agent/role"
	"sextant/linux"
)

// The programs send to Ethernet addresses that the kernel found, without the kernel: it never sees
// that a neighbour is used, so it never asks whether the address is still right. The agent does: a
// router that silently got another address is found by its answer, which the kernel takes like any
// other, and the programs look again (forgetNextHops).
//
// A gateway whose address the kernel does not know is looked for, too: packets that need it are
// given to the kernel, which may not be allowed to forward them (a firewall whose policy is to
// drop), and then nothing else would ever look for it. And one that no longer answers is given up,
// which the kernel would not do for want of packets: only then does it say so.

const (
	// solicitInterval is how often each neighbour in use is asked.
	solicitInterval = time.Second
	// solicitMost bounds how many are asked at a time; with more, each is asked less often.
	solicitMost = 64
	// gatewayInterval is how long the list of gateways is good for.
	gatewayInterval = 10 * time.Second
)

// neighbour is the next hop of packets.
type neighbour struct {
	index   int // of the interface
	address netip.Addr
}

// solicitor asks neighbours for their Ethernet addresses.
type solicitor struct {
	*role.Core
	*role.Roles
	gateways map[neighbour]bool // of routes
	read     time.Duration      // when; 0: never
	next     int                // of the list, to be asked first
}

// solicit asks some of the neighbours by which the node's programs send.
func (s *solicitor) solicit() {
	if !slices.ContainsFunc(s.Running(), func(r role.NamedRole) bool { return r.Resolves() }) {
		return
	}
	if now := s.Now(); s.gateways == nil || now-s.read >= gatewayInterval {
		gateways, err := gatewaysOf()
		if err != nil {
			s.Log.Debug("routes can't be read for their gateways", "error", err)
			return
		}
		s.gateways, s.read = gateways, now
	}
	entries, err := netlink.NeighList(0, netlink.FAMILY_V6)
	if err != nil {
		s.Log.Debug("neighbours can't be listed", "error", err)
		return
	}
	for _, n := range s.choose(entries, s.segments()) {
		if err := sendSolicitation(n); err != nil {
			s.Log.Debug("a neighbour can't be asked for its address", "neighbour",
				n.address, "error", err)
		}
	}
	for _, n := range s.doubtful(entries) {
		if err := linux.SeekNeighbor(n.index, n.address); err != nil {
			s.Log.Debug("a gateway can't be looked for", "gateway", n.address, "error", err)
		}
	}
}

// doubtful lists gateways whose addresses the kernel does not know, or took from an old answer:
// those that answer are reachable. There are at most as many as are asked at a time, in any order.
func (s *solicitor) doubtful(entries []netlink.Neigh) (list []neighbour) {
	settled := map[neighbour]bool{}
	for _, e := range entries {
		address, ok := netip.AddrFromSlice(e.IP)
		if ok && e.State != unix.NUD_NONE && e.State&(unix.NUD_FAILED|unix.NUD_STALE) == 0 {
			settled[neighbour{e.LinkIndex, address}] = true
		}
	}
	for n := range s.gateways {
		if !settled[n] && n.address.Is6() && len(list) < solicitMost {
			list = append(list, n)
		}
	}
	return list
}

// choose returns the neighbours that are asked now: those that are in use, in turn.
func (s *solicitor) choose(entries []netlink.Neigh, segments map[netip.Addr]bool) []neighbour {
	var used []neighbour
	for _, e := range entries {
		address, ok := netip.AddrFromSlice(e.IP)
		resolved := e.State&(unix.NUD_REACHABLE|unix.NUD_STALE|unix.NUD_DELAY|unix.NUD_PROBE) != 0
		n := neighbour{e.LinkIndex, address}
		if ok && resolved && len(e.HardwareAddr) == 6 && (s.gateways[n] || segments[address]) {
			used = append(used, n)
		}
	}
	if len(used) <= solicitMost {
		return used
	}
	var chosen []neighbour
	for range solicitMost {
		chosen = append(chosen, used[s.next%len(used)])
		s.next++
	}
	return chosen
}

// segments are the SIDs that may be neighbours themselves.
func (s *solicitor) segments() map[netip.Addr]bool {
	found := map[netip.Addr]bool{}
	for _, room := range role.Having[role.Solicited](s.Roles) {
		for _, sid := range room.Sids() {
			found[sid] = true
		}
	}
	return found
}

// gatewaysOf are the IPv6 gateways of all routes.
func gatewaysOf() (map[neighbour]bool, error) {
	routes, err := netlink.RouteListFiltered(netlink.FAMILY_V6,
		&netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, err
	}
	found := map[neighbour]bool{}
	add := func(index int, via net.IP) {
		if address, ok := netip.AddrFromSlice(via); ok {
			found[neighbour{index, address}] = true
		}
	}
	for _, r := range routes {
		add(r.LinkIndex, r.Gw)
		for _, hop := range r.MultiPath {
			add(hop.LinkIndex, hop.Gw)
		}
	}
	return found, nil
}

// sendSolicitation sends a neighbour solicitation to the solicited-node group of an address (RFC
// 4861 section 7.2.2), from the interface's link-local address.
func sendSolicitation(n neighbour) error {
	device, err := net.InterfaceByIndex(n.index)
	if err != nil {
		return err
	}
	source, err := linkLocalOf(device)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMPV6)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_HOPS, 255),
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MULTICAST_IF, n.index),
		unix.Bind(fd, &unix.SockaddrInet6{Addr: source.As16(), ZoneId: uint32(n.index)}),
	); err != nil {
		return linux.Failed(err, "prepare a socket for solicitations")
	}
	target := n.address.As16()
	group := netip.MustParseAddr("ff02::1:ff00:0").As16()
	copy(group[13:], target[13:])
	return unix.Sendto(fd, solicitation(target, device.HardwareAddr), 0,
		&unix.SockaddrInet6{Addr: group, ZoneId: uint32(n.index)})
}

// solicitation is the ICMPv6 message with the source link-layer address option (RFC 4861 section
// 4.3). The kernel computes the checksum.
func solicitation(target [16]byte, own net.HardwareAddr) []byte {
	message := append([]byte{135, 0, 0, 0, 0, 0, 0, 0}, target[:]...)
	return append(append(message, 1, 1), own...)
}

func linkLocalOf(device *net.Interface) (netip.Addr, error) {
	addresses, err := device.Addrs()
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range addresses {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil &&
			prefix.Addr().IsLinkLocalUnicast() && prefix.Addr().Is6() {
			return prefix.Addr(), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("interface %s has no link-local address", device.Name)
}
