package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sextant/linux"
	"sextant/packet/lists"
)

// routeMetric is that of "ip -6 route add".
const routeMetric = 1024

// addRoutes puts a node's routes into its main table. Both families go by the
// link-local IPv6 address of the neighbour (RFC 5549), so links need no
// addresses of their own.
func addRoutes(handle *netlink.Handle, node *fabricNode, routes []route) error {
	index := make([]int, len(node.ports))
	for i, port := range node.ports {
		link, err := handle.LinkByName(port.name)
		if err != nil {
			return linux.Failed(err, "find interface %s", port.name)
		}
		index[i] = link.Attrs().Index
	}
	for _, r := range routes {
		if err := handle.RouteAdd(kernelRoute(node, r, index)); err != nil {
			return linux.Failed(err, "add a route to %s", r.prefix)
		}
	}
	return nil
}

func kernelRoute(node *fabricNode, r route, index []int) *netlink.Route {
	result := &netlink.Route{Dst: ipNet(r.prefix), Protocol: unix.RTPROT_STATIC}
	// Packets of the node itself come from its own first address, not from a VIP.
	is4 := r.prefix.Addr().Is4()
	own := slices.IndexFunc(node.Addresses, func(a netip.Addr) bool { return a.Is4() == is4 })
	if own >= 0 {
		result.Src = node.Addresses[own].AsSlice()
	}
	if !is4 {
		result.Priority = routeMetric
	}
	for _, hop := range r.hops {
		next := &netlink.NexthopInfo{LinkIndex: index[hop.port]}
		if is4 {
			next.Via = &netlink.Via{AddrFamily: unix.AF_INET6, Addr: hop.gateway.AsSlice()}
		} else {
			next.Gw = hop.gateway.AsSlice()
		}
		result.MultiPath = append(result.MultiPath, next)
	}
	if len(result.MultiPath) == 1 { // of one, the kernel would show it as multipath
		only := result.MultiPath[0]
		result.LinkIndex, result.Gw, result.Via, result.MultiPath = only.LinkIndex, only.Gw,
			only.Via, nil
	}
	return result
}

// addNeighbours tells a node the Ethernet addresses at the other ends of impaired links, for good.
// A link that loses one packet in ten would lose some of the questions for them too, each for a
// second of silence that is not the loss that was asked for.
func (f *fabric) addNeighbours(handle *netlink.Handle, node *fabricNode) error {
	for _, p := range node.ports {
		if p.wire == "" {
			continue
		}
		link, err := handle.LinkByName(p.name)
		if err != nil {
			return linux.Failed(err, "find interface %s", p.name)
		}
		peer := f.port(p.peer)
		err = handle.NeighSet(&netlink.Neigh{
			LinkIndex: link.Attrs().Index, Family: unix.AF_INET6, State: netlink.NUD_PERMANENT,
			IP: peer.linkLocal.AsSlice(), HardwareAddr: peer.mac,
		})
		if err != nil {
			return linux.Failed(err, "tell %s the neighbour %s", p.name, peer.linkLocal)
		}
	}
	return nil
}

// addLocalRanges makes every address of the node's local prefixes its own, as
// "ip route add local PREFIX dev lo" does.
func addLocalRanges(handle *netlink.Handle, node *fabricNode) error {
	if len(node.Local) == 0 {
		return nil
	}
	lo, err := handle.LinkByName("lo")
	if err != nil {
		return linux.Failed(err, "find the loopback interface")
	}
	for _, prefix := range node.Local {
		err := handle.RouteAdd(&netlink.Route{
			Dst:       ipNet(prefix),
			LinkIndex: lo.Attrs().Index,
			Table:     unix.RT_TABLE_LOCAL,
			Type:      unix.RTN_LOCAL,
			Scope:     netlink.SCOPE_HOST,
			Protocol:  unix.RTPROT_STATIC,
		})
		if err != nil {
			return linux.Failed(err, "make the range %s local", prefix)
		}
	}
	return nil
}

// addressPatience is how long the kernel may take to make addresses usable.
const addressPatience = 5 * time.Second

// waitForAddresses waits until the kernel has taken a node's IPv6 addresses
// into its local table, which it does a moment later on its own. Until then
// the node does not answer for them, and a neighbour that asks waits a second
// before it asks again.
func waitForAddresses(ctx context.Context, handle *netlink.Handle, node *fabricNode) error {
	wanted := lists.Map(node.ports, func(port port) netip.Addr { return port.linkLocal })
	for _, list := range [][]netip.Addr{node.Addresses, node.VIPs} {
		for _, address := range list {
			if address.Is6() {
				wanted = append(wanted, address)
			}
		}
	}
	for deadline := time.Now().Add(addressPatience); ; {
		var err error
		if wanted, err = notLocal(handle, wanted); err != nil || len(wanted) == 0 {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the kernel has not made %v usable after %v", wanted, addressPatience)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// notLocal leaves those of the addresses that the local table does not have.
func notLocal(handle *netlink.Handle, wanted []netip.Addr) ([]netip.Addr, error) {
	filter := &netlink.Route{Table: unix.RT_TABLE_LOCAL}
	routes, err := handle.RouteListFiltered(unix.AF_INET6, filter, netlink.RT_FILTER_TABLE)
	if err != nil {
		return nil, linux.Failed(err, "list the local routes")
	}
	local := map[netip.Addr]bool{}
	for _, r := range routes {
		if r.Dst != nil {
			address, _ := netip.AddrFromSlice(r.Dst.IP)
			local[address] = true
		}
	}
	return slices.DeleteFunc(wanted, func(a netip.Addr) bool { return local[a] }), nil
}
