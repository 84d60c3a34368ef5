package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sextant/config"
)

func forwarding(n *config.Node, f *Facts, _ string) []Finding {
	return eachInterface(n, f, func(at face, i Interface) []Finding {
		if i.Forwarding || at.role == "strays" {
			return nil // of the role strays the kernel is asked: strayPassages
		}
		return []Finding{{"sysctl_forwarding", Broken, at.name, "IPv6 forwarding is off for packets from this interface",
			"the kernel finds no next hop for them, and drops those that the program gives it to send",
			"sysctl -w net.ipv6.conf.all.forwarding=1"}}
	})
}

func segmentRouting(n *config.Node, f *Facts, _ string) []Finding {
	return eachInterface(n, f, func(at face, i Interface) []Finding {
		switch {
		case i.Seg6HMAC > 0 && i.Seg6:
			return []Finding{{"sysctl_seg6_hmac", Risk, at.name,
				"the kernel takes only segment routing headers with an HMAC here",
				"packets to SIDs of the kernel's own seg6local, and to plain addresses, are dropped without one; " +
					"Sextant's SIDs are not concerned, for which host.hmac says the same",
				"sysctl -w net.ipv6.conf." + at.name + ".seg6_require_hmac=0, unless it is wanted; edges sign for Linux with form: linux"}}
		case at.role != "edge" && !i.Seg6:
			return []Finding{{"sysctl_seg6", Notable, at.name,
				"the kernel takes no segment routing headers to this machine's plain addresses here",
				"segment lists that name a plain address of this host end here; Sextant's SIDs and the kernel's are not concerned",
				"sysctl -w net.ipv6.conf.all.seg6_enabled=1 net.ipv6.conf." + at.name + ".seg6_enabled=1, if such lists are used"}}
		}
		return nil
	})
}

func reversePath(n *config.Node, f *Facts, _ string) []Finding {
	if n.Host == nil || !slices.ContainsFunc(n.Host.Services, func(s config.HostService) bool { return s.VIP.Is4() }) {
		return nil
	}
	return eachInterface(n, f, func(at face, i Interface) []Finding {
		client, astray := f.Returns[at.name]
		if i.RPFilter == 0 || !astray || at.role != "host" {
			return nil
		}
		return []Finding{{"rp_filter", Broken, at.name, "the reverse path filter drops IPv4 packets of clients",
			fmt.Sprintf("they come out of the encapsulation on this interface, and the way back to clients (tried: %s) is another or none",
				client),
			"sysctl -w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf." + at.name + ".rp_filter=0, or a route back by " + at.name}}
	})
}

func vips(n *config.Node, f *Facts, _ string) []Finding {
	if n.Host == nil || f.Local == nil {
		return nil
	}
	var list []Finding
	seen := map[netip.Addr]bool{}
	for _, s := range n.Host.Services {
		if local, asked := f.Local[s.VIP]; asked && !local && !seen[s.VIP] {
			list = append(list, Finding{"vip_missing", Broken, s.VIP.String(),
				"the VIP of service " + s.Name + " is no address of this machine",
				"packets to it come out of the encapsulation, and the kernel does not deliver them",
				"ip addr add " + netip.PrefixFrom(s.VIP, s.VIP.BitLen()).String() + " dev lo"})
		}
		seen[s.VIP] = true
	}
	return list
}

func listeners(n *config.Node, f *Facts, _ string) []Finding {
	if n.Host == nil || f.Listeners == nil {
		return nil
	}
	var list []Finding
	for _, s := range n.Host.Services {
		if s.Port != config.AnyPort && !slices.ContainsFunc(f.Listeners, func(l Listener) bool { return l.serves(s.Endpoint) }) {
			list = append(list, Finding{"listener_missing", Broken, s.Endpoint.String(), "nothing listens for service " + s.Name,
				"connections are refused; in another network namespace than the agent's, a server is not seen",
				"start the server on the VIP or on all addresses, or take the service out: sextant service delete " + s.Name})
		}
	}
	return list
}

// serves reports whether a socket gets the packets of an endpoint.
func (l Listener) serves(e config.Endpoint) bool {
	if l.UDP != (e.Protocol == config.UDP) || l.Address.Port() != e.Port {
		return false
	}
	a := l.Address.Addr().Unmap()
	return a == e.VIP || a.IsUnspecified() && (a.Is6() || e.VIP.Is4())
}

// backends are those of all services, each SID once.
func backends(n *config.Node) []config.Backend {
	bySID := map[netip.Addr]config.Backend{}
	if n.Edge != nil {
		for _, s := range n.Edge.Services {
			for _, b := range s.Backends {
				bySID[b.SID] = b
			}
		}
	}
	return slices.SortedFunc(maps.Values(bySID), func(a, b config.Backend) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.SID.Compare(b.SID))
	})
}

func sidRoutes(n *config.Node, f *Facts, _ string) []Finding {
	var list []Finding
	for _, b := range backends(n) {
		route, asked := f.Routes[b.SID]
		switch {
		case !asked:
		case !route.Reachable:
			list = append(list, Finding{"sid_route", Broken, b.Name, "there is no route to its SID " + b.SID.String(),
				"packets that are offered to it are dropped as no_route",
				"route its locator to it: on this node, or by the routing protocol of the domain; see: ip -6 route get " + b.SID.String()})
		case route.Neighbour == "failed":
			list = append(list, Finding{"sid_neighbour", Broken, b.Name, "the next hop to its SID " + b.SID.String() + " does not answer",
				"the route is there, and its gateway is not, on interface " + route.Interface,
				"see that the gateway is up: ip -6 neigh show dev " + route.Interface})
		}
	}
	return list
}

func pathMTU(n *config.Node, f *Facts, _ string) []Finding {
	var list []Finding
	for _, b := range backends(n) {
		if route := f.Routes[b.SID]; route.Reachable && route.MTU > 0 && route.MTU < n.Domain.MTU {
			list = append(list, Finding{"path_mtu", Broken, b.Name,
				fmt.Sprintf("the path to its SID carries %d bytes, and domain.mtu says %d", route.MTU, n.Domain.MTU),
				"encapsulated packets between the two are lost on the way", "raise the path's MTU, or lower domain.mtu on all nodes"})
		}
	}
	return list
}
