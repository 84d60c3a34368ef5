package lab

import (
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"

	"sextant/lab/netem"
)

// RouteText writes the routes of all nodes of a Spec, for golden files: one
// node per paragraph, one prefix per line with its next hops.
func RouteText(spec *Spec) (string, error) {
	f, err := newFabric(spec)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for i, routes := range routesOf(f) {
		node := f.nodes[i]
		fmt.Fprintf(&text, "%s\n", node.Name)
		for _, r := range routes {
			fmt.Fprintf(&text, "  %s", r.prefix)
			for _, hop := range r.hops {
				port := node.ports[hop.port]
				fmt.Fprintf(&text, " via %s %s", f.nodes[port.peer.node].Name,
					Endpoint{node.Name, port.name}.Interface)
			}
			fmt.Fprintln(&text)
		}
	}
	return text.String(), nil
}

// Hops returns, for each node by name, the neighbours to which it sends for
// each prefix.
func Hops(spec *Spec) (map[string]map[string][]string, error) {
	f, err := newFabric(spec)
	if err != nil {
		return nil, err
	}
	hops := map[string]map[string][]string{}
	for i, routes := range routesOf(f) {
		node := f.nodes[i]
		hops[node.Name] = map[string][]string{}
		for _, r := range routes {
			for _, hop := range r.hops {
				peer := f.nodes[node.ports[hop.port].peer.node].Name
				hops[node.Name][r.prefix.String()] = append(hops[node.Name][r.prefix.String()],
					peer)
			}
		}
	}
	return hops, nil
}

// The pure readers of single values.
var (
	ParseReady = parseReady
	WithIndex  = withIndex
)

// NodeFiles returns the Sextant configurations of a Spec as the agents will
// read them.
func NodeFiles(spec *Spec) (map[string]string, error) {
	l := newLab(spec, "/sys/fs/cgroup", "/sys/fs/bpf")
	files := map[string]string{}
	for i, node := range spec.Nodes {
		settled, err := settle(l, &l.Nodes[i], node, Options{Self: "/usr/bin/sextant"})
		if err != nil {
			return nil, err
		}
		if node.Sextant != "" {
			files[node.Name] = settled.Sextant
		}
	}
	return files, nil
}

// ChosenWires says what impairs each link of a Spec, on a kernel with or without netem.
func ChosenWires(spec *Spec, preference WireKind, netem bool) ([]WireKind, error) {
	f, err := newFabric(spec)
	if err != nil {
		return nil, err
	}
	if err := chooseWires(f, preference, func() (bool, error) { return netem, nil }); err != nil {
		return nil, err
	}
	kinds := make([]WireKind, len(f.links))
	for i, link := range f.links {
		kinds[i] = link.wire
	}
	return kinds, nil
}

// Netem is the queueing discipline of a kernel wire, and the profile that is read back from it.
func Netem(p netem.Profile) (*netlink.Netem, netem.Profile) {
	q := netemQdisc(1, p)
	return q, profileOfNetem(q)
}
