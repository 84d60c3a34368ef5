package format

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sextant/te/topology"
)

// attributes are what a format can hold besides nodes and edges.
type attributes struct {
	weight, delay, delayUnit, capacity, place, edgeName, srlg, sid bool

	twoCapacities bool // of a link, one for each direction
}

var everything = attributes{
	weight: true, delay: true, delayUnit: true, capacity: true, place: true, edgeName: true,
	srlg: true, sid: true, twoCapacities: true,
}

// Lost lists what of a graph a format can't hold, so that [Write] leaves it out.
func Lost(g *topology.Graph, format Format) []string {
	keeps := attributes{weight: true, delay: true} // Rocketfuel
	if c, ok := codecOf(format); ok {
		keeps = c.keeps
	}
	has := attributesOf(g)
	var lost []string
	for _, a := range []struct {
		name       string
		has, keeps bool
	}{
		{"weights", has.weight, keeps.weight},
		{"delays", has.delay, keeps.delay},
		{"the unit of delays", has.delayUnit && has.delay && keeps.delay,
			keeps.delayUnit || format == Rocketfuel},
		{"capacities", has.capacity, keeps.capacity},
		{"the capacity of the second direction of links", has.twoCapacities && keeps.capacity,
			keeps.twoCapacities},
		{"coordinates", has.place, keeps.place},
		{"names of edges", has.edgeName, keeps.edgeName},
		{"shared-risk groups", has.srlg, keeps.srlg},
		{"SIDs", has.sid, keeps.sid},
	} {
		if a.has && !a.keeps {
			lost = append(lost, a.name)
		}
	}
	return lost
}

// attributesOf tells what a graph states. A weight of 1 says nothing.
func attributesOf(g *topology.Graph) attributes {
	has := attributes{delayUnit: g.DelayUnit() != 0}
	for v := range g.Nodes() {
		n := g.Node(topology.Node(v))
		has.place = has.place || n.Known
		has.sid = has.sid || n.SID.IsValid()
	}
	for i := range g.Edges() {
		e := g.Edge(topology.Edge(i))
		has.weight = has.weight || e.Weight != 1
		has.delay = has.delay || e.Delay != 0
		has.capacity = has.capacity || e.CapacityKbps != 0
		has.edgeName = has.edgeName || e.Name != ""
		has.srlg = has.srlg || len(e.SRLGs) > 0
		has.sid = has.sid || e.SID.IsValid()
		r := g.Reverse(topology.Edge(i))
		has.twoCapacities = has.twoCapacities || r != topology.NoEdge &&
			g.Edge(r).CapacityKbps != e.CapacityKbps
	}
	return has
}

// parseGroups reads shared-risk link groups, and sorts them.
func parseGroups(texts []string) ([]uint32, error) {
	var groups []uint32
	for _, text := range texts {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("shared-risk group %q is no number; write numbers from 0 to "+
				"%d: 3,17", text, uint32(1<<32-1))
		}
		groups = append(groups, uint32(n))
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}

func joinGroups(groups []uint32) string {
	var texts []string
	for _, group := range groups {
		texts = append(texts, strconv.FormatUint(uint64(group), 10))
	}
	return strings.Join(texts, ",")
}

// parseLocator reads the SID of a node, a prefix.
func parseLocator(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || !p.Addr().Is6() || p.Masked() != p {
		return netip.Prefix{}, fmt.Errorf("locator %q is no IPv6 prefix; write it like "+
			"fcbb:bb00:1::/48", text)
	}
	return p, nil
}

// parseSID reads the SID of an edge, an address.
func parseSID(text string) (netip.Addr, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || !a.Is6() || a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("SID %q is no IPv6 address; write one like "+
			"fcbb:bb00:1:e001::1", text)
	}
	return a, nil
}
