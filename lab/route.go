package lab

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sextant/te/spf"
	"sextant/te/topology"
)

// route is what a node does with a prefix: it takes one of the hops, all of
// which are equally near.
type route struct {
	prefix netip.Prefix
	hops   []hop
}

// hop is a neighbour: its link-local address on the link of a port.
type hop struct {
	port    int // index in the node's ports
	gateway netip.Addr
}

// routesOf returns the routes of each node: to each prefix along all paths of
// the least weight, that is with the fewest links where none is given, to the nearest node that
// announces it. A node has no route to what it announces itself, nor to what it can't reach.
func routesOf(f *fabric) [][]route {
	routes := make([][]route, len(f.nodes))
	for _, group := range groupByAnnouncers(f) {
		distance := distances(f, group.announcers)
		for node := range f.nodes {
			if hops := hopsFrom(f, distance, node); len(hops) > 0 {
				for _, prefix := range group.prefixes {
					routes[node] = append(routes[node], route{prefix, hops})
				}
			}
		}
	}
	return routes
}

// group is prefixes that the same nodes announce: all have the same paths.
type group struct {
	announcers []int
	prefixes   []netip.Prefix
}

func groupByAnnouncers(f *fabric) []group {
	announcers := map[netip.Prefix][]int{}
	announce := func(node int, prefix netip.Prefix) {
		if !slices.Contains(announcers[prefix], node) {
			announcers[prefix] = append(announcers[prefix], node)
		}
	}
	for i, node := range f.nodes {
		for _, address := range node.Addresses {
			announce(i, netip.PrefixFrom(address, address.BitLen()))
		}
		for _, prefix := range node.Announce {
			announce(i, prefix)
		}
	}
	groups := map[string]group{}
	for _, prefix := range slices.SortedFunc(maps.Keys(announcers), comparePrefixes) {
		key := fmt.Sprint(announcers[prefix])
		groups[key] = group{announcers[prefix], append(groups[key].prefixes, prefix)}
	}
	return slices.SortedFunc(maps.Values(groups), func(a, b group) int {
		return slices.Compare(a.announcers, b.announcers)
	})
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

const unreachable = -1

// distances sums the weights of the links from every node to the nearest of
// some nodes, by Dijkstra's algorithm from these.
func distances(f *fabric, to []int) []int {
	distance := slices.Repeat([]int{unreachable}, len(f.nodes))
	var queue spf.Heap
	for _, node := range to {
		queue.Push(spf.Item{Node: topology.Node(node)})
	}
	for len(queue) > 0 {
		next := queue.Pop()
		if distance[next.Node] != unreachable {
			continue
		}
		distance[next.Node] = int(next.Cost)
		for _, port := range f.nodes[next.Node].ports {
			from := f.port(port.peer)
			cost := next.Cost + uint64(from.link.weight(from.side))
			queue.Push(spf.Item{Cost: cost, Node: topology.Node(port.peer.node)})
		}
	}
	return distance
}

// hopsFrom lists the neighbours of a node that are nearer by the link's weight.
func hopsFrom(f *fabric, distance []int, node int) []hop {
	var hops []hop
	for i, port := range f.nodes[node].ports {
		if distance[node] > 0 && distance[port.peer.node] == distance[node]-port.link.weight(
			port.side) {
			hops = append(hops, hop{i, f.port(port.peer).linkLocal})
		}
	}
	return hops
}
