package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"sextant/config"
	"sextant/linux/facts"
)

func forwarding(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachInterface(n, f, func(at config.Face, i facts.Interface) []Finding {
		if i.Forwarding || at.Plain || at.Role == "strays" {
			return nil // of the role strays the kernel is asked: strayPassages
		}
		return []Finding{{"sysctl_forwarding", Broken, at.Name,
			"IPv6 forwarding is off for packets from this interface",
			"the kernel finds no next hop for them, and drops those that the program gives it to " +
				"send",
			"sysctl -w net.ipv6.conf.all.forwarding=1"}}
	})
}

func segmentRouting(n *config.Node, f *facts.Facts, _ string) []Finding {
	return eachInterface(n, f, func(at config.Face, i facts.Interface) []Finding {
		switch {
		case at.Plain: // nothing that comes in by it is the role's
			return nil
		case i.Seg6HMAC > 0 && i.Seg6:
			return []Finding{{"sysctl_seg6_hmac", Risk, at.Name,
				"the kernel takes only segment routing headers with an HMAC here",
				"packets to SIDs of the kernel's own seg6local, and to plain addresses, are " +
					"dropped without one; " +
					"Sextant's SIDs are not concerned, for which host.hmac says the same",
				"sysctl -w " + perInterface("ipv6", at.Name, "seg6_require_hmac") +
					"=0, unless it is wanted; edges sign for Linux with form: linux"}}
		case at.Role != "edge" && at.Role != "headend" && !i.Seg6:
			return []Finding{{"sysctl_seg6", Notable, at.Name,
				"the kernel takes no segment routing headers to this machine's plain addresses " +
					"here",
				"segment lists that name a plain address of this host end here; Sextant's SIDs " +
					"and the kernel's are not concerned",
				"sysctl -w net.ipv6.conf.all.seg6_enabled=1 " + perInterface("ipv6", at.Name,
					"seg6_enabled") +
					"=1, if such lists are used"}}
		}
		return nil
	})
}

// forwardBoth has the kernel forward both families.
const forwardBoth = "sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1"

// withoutReversePath takes the reverse path filter off an interface: of its own setting and that of
// all, the stricter one counts.
func withoutReversePath(name string) string {
	return "sysctl -w net.ipv4.conf.all.rp_filter=0 " + perInterface("ipv4", name, "rp_filter") +
		"=0"
}

// perInterface names an interface's setting as sysctl(8) reads it: a dot in the interface's name,
// as of a VLAN, is a slash there.
func perInterface(family, name, key string) string {
	return "net." + family + ".conf." + strings.ReplaceAll(name, ".", "/") + "." + key
}

// reversePath tells where the kernel drops what comes out of the encapsulation. Of a host's VIPs it
// is known whether they are of IPv4; what an egress takes out may be of any source.
func reversePath(n *config.Node, f *facts.Facts, _ string) []Finding {
	serves := n.Host != nil && slices.ContainsFunc(n.Host.Services,
		func(s config.HostService) bool { return s.VIP.Is4() })
	return eachInterface(n, f, func(at config.Face, i facts.Interface) []Finding {
		client, astray := f.Returns[at.Name]
		if i.RPFilter == 0 || !astray || at.Role != "merge" && !(at.Role == "host" && serves) {
			return nil
		}
		finding := Finding{"rp_filter", Broken, at.Name,
			"the reverse path filter drops IPv4 packets of clients",
			fmt.Sprintf("they come out of the encapsulation on this interface, and the way back "+
				"to clients (tried: %s) is another or none",
				client),
			withoutReversePath(at.Name) + ", or a route back by " + at.Name}
		if at.Role == "merge" {
			finding.Severity, finding.What = Risk,
				"the reverse path filter drops IPv4 packets whose way back is not by this interface"
		}
		return []Finding{finding}
	})
}

func vips(n *config.Node, f *facts.Facts, _ string) []Finding {
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

func listeners(n *config.Node, f *facts.Facts, _ string) []Finding {
	if n.Host == nil || f.Listeners == nil {
		return nil
	}
	var list []Finding
	for _, s := range n.Host.Services {
		if s.Port != config.AnyPort && !slices.ContainsFunc(f.Listeners,
			func(l facts.Listener) bool { return serves(l, s.Endpoint) }) {
			list = append(list, Finding{"listener_missing", Broken, s.Endpoint.String(),
				"nothing listens for service " + s.Name,
				"connections are refused; in another network namespace than the agent's, a " +
					"server is not seen",
				"start the server on the VIP or on all addresses, or take the service out: " +
					"sextant service delete " + s.Name})
		}
	}
	return list
}

// serves reports whether a socket gets the packets of an endpoint.
func serves(l facts.Listener, e config.Endpoint) bool {
	if l.UDP != (e.Protocol == config.UDP) || l.Address.Port() != e.Port {
		return false
	}
	a := l.Address.Addr().Unmap()
	return a == e.VIP || a.IsUnspecified() && (a.Is6() || e.VIP.Is4())
}

// destination is where packets are sent to by a SID.
type destination struct {
	sid  netip.Addr
	on   string // what has the SID
	what string // the SID is of it
	lost string // what becomes of packets without a route
}

// destinations are those of all services and segment lists, each SID once.
func destinations(n *config.Node) []destination {
	bySID := map[netip.Addr]destination{}
	if n.Headend != nil {
		for sid, lists := range firstSegments(n.Headend) {
			bySID[sid] = destination{sid, strings.Join(lists, ", "), "first segment",
				"packets that take the list are dropped as no_route"}
		}
	}
	if n.Edge != nil {
		for _, s := range n.Edge.Services {
			for _, b := range s.Backends {
				bySID[b.SID] = destination{b.SID, b.Name, "SID",
					"packets that are offered to it are dropped as no_route"}
			}
		}
	}
	return slices.SortedFunc(maps.Values(bySID), func(a, b destination) int {
		return cmp.Or(cmp.Compare(a.on, b.on), a.sid.Compare(b.sid))
	})
}

// firstSegments are the first segments of the lists that are up, with the lists, named
// "policy/list".
func firstSegments(h *config.Headend) map[netip.Addr][]string {
	lists := map[netip.Addr][]string{}
	for _, p := range h.Policies {
		for _, path := range p.Paths {
			for _, l := range path.Lists {
				name := p.Name + "/" + l.Name
				if l.State != config.ListDown && len(l.Segments) > 0 &&
					!slices.Contains(lists[l.Segments[0]], name) {
					lists[l.Segments[0]] = append(lists[l.Segments[0]], name)
				}
			}
		}
	}
	return lists
}

func sidRoutes(n *config.Node, f *facts.Facts, _ string) []Finding {
	var list []Finding
	for _, to := range destinations(n) {
		route, asked := f.Routes[to.sid]
		switch {
		case !asked:
		case !route.Reachable:
			list = append(list, Finding{"sid_route", Broken, to.on,
				"there is no route to its " + to.what + " " + to.sid.String(),
				to.lost,
				"route its locator to it: on this node, or by the routing protocol of the " +
					"domain; see: ip -6 route get " + to.sid.String()})
		case route.Neighbour == "failed":
			list = append(list, Finding{"sid_neighbour", Broken, to.on,
				"the next hop to its " + to.what + " " + to.sid.String() + " does not answer",
				"the route is there, and its gateway is not, on interface " + route.Interface,
				"see that the gateway is up: ip -6 neigh show dev " + route.Interface})
		}
	}
	return list
}

func pathMTU(n *config.Node, f *facts.Facts, _ string) []Finding {
	var list []Finding
	for _, to := range destinations(n) {
		if route := f.Routes[to.sid]; route.Reachable && route.MTU > 0 && route.MTU < n.Domain.MTU {
			list = append(list, Finding{"path_mtu", Broken, to.on,
				fmt.Sprintf("the path to its %s carries %d bytes, and domain.mtu says %d", to.what,
					route.MTU, n.Domain.MTU),
				"encapsulated packets between the two are lost on the way",
				"raise the path's MTU, or lower domain.mtu on all nodes"})
		}
	}
	return list
}
