package node

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux"
)

// routeProtocol marks our routes: no other protocol of rt_protos has the number.
const routeProtocol = 83

// wiring is what a pod has beside its agent: its virtual addresses, and routes to its SIDs.
type wiring struct {
	VIPs, SIDs []netip.Addr
	// Forwards says that the pod passed no packets on before it was wired.
	Forwards bool
}

func wiringOf(p Pod, locator netip.Prefix) (w wiring) {
	for _, s := range p.Serves {
		w.VIPs = append(w.VIPs, s.VIP)
	}
	for _, a := range p.Addresses {
		w.SIDs = append(w.SIDs, SIDOf(locator, a))
	}
	return w
}

// and is both together, each address once.
func (w wiring) and(other wiring) wiring {
	return wiring{union(w.VIPs, other.VIPs), union(w.SIDs, other.SIDs),
		w.Forwards || other.Forwards}
}

func union(a, b []netip.Addr) []netip.Addr {
	return slices.Compact(slices.SortedFunc(slices.Values(slices.Concat(a, b)),
		netip.Addr.Compare))
}

// wire gives a pod's loopback interface the virtual addresses, which its sockets then accept, and
// the node routes to its SIDs, and takes away what was there before. It returns the interface of
// the pod by which packets arrive.
func (w wiring) wire(p Pod, ns *linux.Netns, locator netip.Prefix, before wiring) (string, error) {
	handle, err := ns.Netlink()
	if err != nil {
		return "", err
	}
	defer handle.Close()
	link, gateway, err := interfaceOf(handle, p.Addresses)
	if err != nil {
		return "", err
	}
	iface := link.Attrs().Name
	if err := hold(handle, before.VIPs, w.VIPs); err != nil {
		return "", err
	}
	if err := ns.Do(func() error { return forward(iface, true) }); err != nil {
		return "", err
	}
	if err := receive(link.Attrs().ParentIndex); err != nil {
		return "", err
	}
	for _, a := range p.Addresses {
		if err := routeTo(SIDOf(locator, a), a, gateway); err != nil {
			return "", err
		}
	}
	return iface, unroute(slices.DeleteFunc(slices.Clone(before.SIDs),
		func(sid netip.Addr) bool { return slices.Contains(w.SIDs, sid) }))
}

// receive lets the node's end of a pod's veth take what the pod's program sends back, candidates'
// packets that it passes on: a veth without an XDP program drops it, whatever its offloads are.
func receive(peer int) error {
	other, err := netlink.LinkByIndex(peer)
	if peer == 0 || err != nil || other.Type() != "veth" {
		return nil // not a veth of this namespace: its driver receives what is sent to it
	}
	if x := other.Attrs().Xdp; x != nil && x.Attached {
		return nil
	}
	pass, err := linux.LoadXDPPass()
	if err != nil {
		return err
	}
	defer pass.Close()
	return linux.AttachXDP(other.Attrs().Name, pass)
}

// interfaceOf finds the interface that has a pod's addresses, and its link-local address.
func interfaceOf(handle *netlink.Handle, addresses []netip.Addr) (netlink.Link, net.IP, error) {
	list, err := handle.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, nil, linux.Failed(err, "list the addresses of the pod")
	}
	index := 0
	for _, a := range list {
		for _, want := range addresses {
			if got, ok := netip.AddrFromSlice(a.IP); ok && got.Unmap() == want {
				index = a.LinkIndex
			}
		}
	}
	if index == 0 {
		return nil, nil, fmt.Errorf("no interface of the pod has %v", addresses)
	}
	link, err := handle.LinkByIndex(index)
	if err != nil {
		return nil, nil, linux.Failed(err, "find the interface of the pod")
	}
	for _, a := range list {
		if a.LinkIndex == index && a.IP.To4() == nil && a.IP.IsLinkLocalUnicast() {
			return link, a.IP, nil
		}
	}
	return link, nil, nil
}

// hold brings the loopback interface from the previous virtual addresses to those of now.
func hold(handle *netlink.Handle, before, now []netip.Addr) error {
	lo, err := handle.LinkByName("lo")
	if err != nil {
		return linux.Failed(err, "find the pod's loopback interface")
	}
	wanted := map[netip.Addr]bool{}
	for _, a := range now {
		wanted[a] = true
		err := handle.AddrReplace(lo, addressOf(a))
		if err != nil {
			return linux.Failed(err, "give the pod the address %s", a)
		}
	}
	for _, a := range before {
		if !wanted[a] {
			err := handle.AddrDel(lo, addressOf(a))
			if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
				return linux.Failed(err, "take the address %s from the pod", a)
			}
		}
	}
	return nil
}

func addressOf(a netip.Addr) *netlink.Addr {
	of := &netlink.Addr{IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(),
		a.BitLen())}, Scope: unix.RT_SCOPE_UNIVERSE}
	if a.Is6() {
		of.Flags = unix.IFA_F_NODAD
	}
	return of
}

// routeTo lets the node send packets to a SID as it sends those to the pod: by the same interface,
// to the same neighbour. A pod that has no IPv6 address is reached by its link-local one.
func routeTo(sid, pod netip.Addr, linkLocal net.IP) error {
	ways, err := netlink.RouteGet(pod.AsSlice())
	if err != nil || len(ways) == 0 {
		return linux.Failed(errors.Join(err), "find the node's route to the pod's address %s", pod)
	}
	way := ways[0]
	gateway := net.IP(pod.AsSlice())
	if pod.Is4() {
		if gateway = linkLocal; gateway == nil {
			return fmt.Errorf("the pod has IPv4 alone, and its interface no link-local IPv6 "+
				"address, by which SID %s could be reached: set net.ipv6.conf.*.disable_ipv6 to 0 "+
				"in pods", sid)
		}
	} else if way.Gw != nil {
		gateway = way.Gw
	}
	err = netlink.RouteReplace(&netlink.Route{Dst: netlink.NewIPNet(sid.AsSlice()), Gw: gateway,
		LinkIndex: way.LinkIndex, Protocol: routeProtocol, Flags: int(netlink.FLAG_ONLINK)})
	return linux.Failed(err, "route SID %s to the pod", sid)
}

// unwire takes the routes away, and the addresses if the pod still runs.
func unwire(w wiring, ns *linux.Netns) error {
	all := unroute(w.SIDs)
	if ns == nil {
		return all
	}
	handle, err := ns.Netlink()
	if err != nil {
		return errors.Join(all, err)
	}
	defer handle.Close()
	if w.Forwards {
		all = errors.Join(all, ns.Do(func() error { return forward("lo", false) }))
	}
	return errors.Join(all, hold(handle, w.VIPs, nil))
}

// forward lets this network namespace pass packets of others on, as a candidate does that is not
// whom they are for, or no longer. Router advertisements are heeded as before.
func forward(iface string, on bool) error {
	const forwarding = "net.ipv6.conf.all.forwarding"
	was, err := linux.ReadSysctl(forwarding)
	if err != nil || (was != "0") == on {
		return err
	}
	if !on {
		return linux.WriteSysctl(forwarding, "0")
	}
	advertised := "net.ipv6.conf." + iface + ".accept_ra"
	if heeds, err := linux.ReadSysctl(advertised); err == nil && heeds == "1" {
		if err := linux.WriteSysctl(advertised, "2"); err != nil {
			return err
		}
	}
	return linux.WriteSysctl(forwarding, "1")
}

// forwards reports whether a network namespace passes packets on.
func forwards(ns *linux.Netns) (on bool, err error) {
	err = ns.Do(func() error {
		text, err := linux.ReadSysctl("net.ipv6.conf.all.forwarding")
		on = text != "0"
		return err
	})
	return on, err
}

// unroute removes our routes to SIDs.
func unroute(sids []netip.Addr) (all error) {
	for _, sid := range sids {
		err := netlink.RouteDel(&netlink.Route{Dst: netlink.NewIPNet(sid.AsSlice()),
			Protocol: routeProtocol})
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, os.ErrNotExist) {
			all = errors.Join(all, linux.Failed(err, "remove the route of SID %s", sid))
		}
	}
	return all
}
