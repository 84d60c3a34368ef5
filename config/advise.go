package config

import (
	"fmt"
	"slices"
)

// Warnings lists what a node file without faults permits all the same and its operator should
// know, in the order of the file.
func Warnings(n *Node) (list []string) {
	if n.Edge != nil {
		for i, at := range n.Edge.Interfaces {
			list = append(list, mixedWarning("edge", i, at.Name, at.Side)...)
		}
		list = append(list, n.Edge.shareWarnings()...)
		list = append(list, n.Edge.orderWarnings()...)
		list = append(list, n.copiesWarnings()...)
		list = append(list, n.idleWarnings()...)
	}
	if n.Headend != nil {
		for i, at := range n.Headend.Interfaces {
			list = append(list, mixedWarning("headend", i, at.Name, at.Side)...)
		}
		if len(n.Headend.Local) > 1 {
			list = append(list, "headend.local: several interfaces: where a route of this "+
				"machine has equal next "+
				"hops over them, its own UDP datagrams above a policy's mtu are lost, as the "+
				"kernel notes the "+
				"policy's MTU at one of the next hops; write the MTU at the route (ip route ... "+
				"mtu BYTES)")
		}
	}
	list = append(list, n.straysWarnings()...)
	if n.BGP != nil && len(n.BGP.Neighbors) == 0 {
		list = append(list, "bgp: the speaker has no neighbor: add \"neighbors: [{address: "+
			"2001:db8::1, asn: 64512}]\", or let other software declare some by the API")
	}
	return list
}

// idleWarnings names services of an edge that nobody serves.
func (n *Node) idleWarnings() (list []string) {
	for i := range n.Edge.Services {
		s := &n.Edge.Services[i]
		switch {
		case n.BGP != nil || slices.ContainsFunc(s.Backends,
			func(b Backend) bool { return b.State == Up && b.Weight > 0 }):
		case len(s.Backends) == 0:
			list = append(list, fmt.Sprintf("service %q: it has no backend, and none is learned "+
				"without a bgp section; add one (sextant backend add), or add the section", s.Name))
		default:
			list = append(list, fmt.Sprintf("service %q: none of its backends takes new "+
				"connections; let one be of state up and of a weight above 0", s.Name))
		}
	}
	return list
}

// mixedWarning is said of an interface that clients and the SR domain share.
func mixedWarning(role string, i int, name string, side Side) []string {
	if side != Mixed {
		return nil
	}
	return []string{fmt.Sprintf(
		"%s.interfaces[%d]: %s is mixed: a packet that comes in by it and says that it is from "+
			"domain.infrastructure is trusted; let the routers in front refuse that from "+
			"outside, "+
			"or write \"side: external\" if only hosts or clients are behind it", role, i, name)}
}
