package doctor

import (
	"net/netip"
	"slices"

	"sextant/config"
	"sextant/linux/facts"
)

// Interfaces lists the names of the interfaces about which facts are wanted.
func Interfaces(n *config.Node) (names []string) {
	for _, at := range n.Faces() {
		if !slices.Contains(names, at.Name) {
			names = append(names, at.Name)
		}
	}
	return names
}

// Destinations lists the SIDs to which facts about the way are wanted: those of an edge's backends,
// and where the segment lists of a head-end lead first.
func Destinations(n *config.Node) (sids []netip.Addr) {
	for _, to := range destinations(n) {
		sids = append(sids, to.sid)
	}
	return sids
}

// eachInterface visits those of the node file that exist.
func eachInterface(n *config.Node, f *facts.Facts,
	visit func(config.Face, facts.Interface) []Finding) []Finding {
	var list []Finding
	for _, at := range n.Faces() {
		if i, exists := f.Interfaces[at.Name]; exists {
			list = append(list, visit(at, i)...)
		}
	}
	return list
}
