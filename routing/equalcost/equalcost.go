// Package equalcost orders a router's equal-cost next hops: controllable load balancing (package
// cflb) chooses by their place, so that the order is the same in each tool, independent of that in
// which the kernel or a routing daemon holds them.
package equalcost

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"sextant/linux/rtnetlink"
)

// State is what the kernel knows of a router's routes.
type State struct {
	Routes     []rtnetlink.RouterRoute
	Objects    map[uint32]rtnetlink.WayObject
	Links      map[uint32]Link
	Neighbours map[Neighbour][6]byte
}

// Link is an interface.
type Link struct {
	Name    string
	MTU     int
	Address [6]byte // zero: it is no Ethernet
}

// Neighbour is a machine on a link.
type Neighbour struct {
	Interface uint32
	Address   netip.Addr
}

// NextHop is one of the equal-cost next hops of a destination.
type NextHop struct {
	Gateway   netip.Addr // invalid: the destination is on the link
	Interface string
	Number    uint32 // of the interface
	Weight    uint32
	Down      bool // it keeps its index, and gets no packets

	Place  int    // among the kernel's next hops, by which it divides its hash
	Share  uint32 // of the hash, as a weight; 0 if it counts as none
	MTU    int
	Source [6]byte // of frames to it
	// of its neighbour; zero: not known
	Destination [6]byte
}

// id is what tells next hops apart.
type id struct {
	gateway netip.Addr
	link    string
}

func (n NextHop) id() id { return id{n.Gateway, n.Interface} }

// Why says why a destination is left to the kernel although it has several next hops.
type Why uint8

// The reasons.
const (
	Resilient Why = iota + 1 // a resilient group has buckets, which no hash names
	Selective                // routes of several types of service, or of source prefixes
	Several                  // several routes of one metric, of which the kernel takes turns
)

// String says it in an operator's words.
func (w Why) String() string {
	return [...]string{"", "its next hop group is resilient: make it of type hash-threshold " +
		"(mpath)",
		"it has routes by type of service or by source",
		"several routes of one metric lead to it: make it one route of several next hops"}[w]
}

// Table is the destinations of a router.
type Table struct {
	// Sets are the next hops of destinations that have several, sorted: the index of a next hop is
	// its place.
	Sets map[netip.Prefix][]NextHop
	// Kernel lists the destinations inside of these that the kernel has to decide.
	Kernel []netip.Prefix
	// Left are those with several next hops that are left to the kernel.
	Left map[netip.Prefix]Why
}

// Tables that the kernel asks for every packet, in this order, without rules of an operator.
const (
	tableLocal = 255
	tableMain  = 254
)

// Compute makes the table. Routes of other tables than main and local count for nothing.
func Compute(s State) Table {
	t := Table{Sets: map[netip.Prefix][]NextHop{}, Left: map[netip.Prefix]Why{}}
	local, best := map[netip.Prefix]bool{}, map[netip.Prefix]candidate{}
	for _, r := range s.Routes {
		if r.Prefix.Addr().IsLinkLocalUnicast() { // a router does not forward it
			continue
		}
		switch r.Table {
		case tableLocal:
			local[r.Prefix] = true
		case tableMain:
			best[r.Prefix] = best[r.Prefix].with(r)
		}
	}
	owned := coverOf(maps.Keys(local))
	for prefix, c := range best {
		if owned.covers(prefix, prefix.Bits()) {
			continue // the local table is asked first
		}
		if hops, why := s.nextHops(c); why != 0 {
			t.Left[prefix] = why
		} else if len(hops) > 1 {
			t.Sets[prefix] = hops
		}
	}
	t.Kernel = t.exceptions(local, best)
	return t
}

// candidate is the route to a prefix that the kernel takes.
type candidate struct {
	route     rtnetlink.RouterRoute
	there     bool
	several   bool // there are others of its metric
	selective bool
}

func (c candidate) with(r rtnetlink.RouterRoute) candidate {
	selective := c.selective || r.Selective
	switch {
	case !c.there || r.Metric < c.route.Metric:
		return candidate{route: r, there: true, selective: selective}
	case r.Metric == c.route.Metric:
		c.several = true
	}
	c.selective = selective
	return c
}

// exceptions are the destinations inside of the sets' that have no set of their own.
func (t Table) exceptions(local map[netip.Prefix]bool,
	best map[netip.Prefix]candidate) (list []netip.Prefix) {
	sets := coverOf(maps.Keys(t.Sets))
	for prefix := range local {
		if sets.covers(prefix, prefix.Bits()) {
			list = append(list, prefix)
		}
	}
	for prefix := range best {
		if _, ok := t.Sets[prefix]; !ok && !local[prefix] && sets.covers(prefix, prefix.Bits()-1) {
			list = append(list, prefix)
		}
	}
	slices.SortFunc(list, ComparePrefixes)
	return list
}

// ComparePrefixes orders prefixes by address, then by length.
func ComparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
}

// cover answers whether one of a set of prefixes holds another prefix.
type cover struct {
	set     map[netip.Prefix]bool
	lengths map[int]bool
}

func coverOf(prefixes func(yield func(netip.Prefix) bool)) cover {
	c := cover{map[netip.Prefix]bool{}, map[int]bool{}}
	for p := range prefixes {
		c.set[p], c.lengths[p.Bits()] = true, true
	}
	return c
}

// covers reports whether a prefix of at most this length holds p.
func (c cover) covers(p netip.Prefix, longest int) bool {
	for length := range c.lengths {
		if length <= longest && c.set[netip.PrefixFrom(p.Addr(), length).Masked()] {
			return true
		}
	}
	return false
}

// nextHops are those of a route, sorted. One alone is no matter here.
func (s State) nextHops(c candidate) ([]NextHop, Why) {
	ways, why := c.route.Ways, Why(0)
	group := false
	if object, ok := s.Objects[c.route.NextHopID]; ok && c.route.NextHopID != 0 {
		ways, group = s.waysOf(object), true
		if object.Resilient {
			why = Resilient
		}
	}
	switch {
	case !c.route.Unicast:
		return nil, 0
	case c.several:
		return nil, Several
	case len(ways) < 2:
		return nil, 0
	case c.selective:
		return nil, Selective
	case why != 0:
		return nil, why
	}
	hops := make([]NextHop, len(ways))
	for i, way := range ways {
		link := s.Links[way.Interface]
		hops[i] = NextHop{Gateway: way.Gateway, Interface: link.Name, Number: way.Interface,
			Weight: uint32(way.Weight), Share: uint32(way.Weight), Down: way.Dead, Place: i,
			MTU: link.MTU, Source: link.Address,
			Destination: s.Neighbours[Neighbour{way.Interface, way.Gateway}]}
		if way.Dead && !group { // a group of objects keeps the range of one that is down
			hops[i].Share = 0
		}
	}
	slices.SortStableFunc(hops, func(a, b NextHop) int {
		return cmp.Or(a.Gateway.Compare(b.Gateway), cmp.Compare(a.Interface, b.Interface))
	})
	return hops, 0
}

// waysOf are the ways of an object, in the order in which the kernel divides its hash.
func (s State) waysOf(object rtnetlink.WayObject) []rtnetlink.Way {
	if len(object.Group) == 0 {
		return []rtnetlink.Way{object.Way}
	}
	ways := make([]rtnetlink.Way, len(object.Group))
	for i, leg := range object.Group {
		ways[i] = s.Objects[leg.ID].Way
		ways[i].Weight = leg.Weight
	}
	return ways
}

// Renumbered counts the previous destinations at which a next hop that is still there has another
// index now: flows that had chosen it take another path, or are hashed.
func (t Table) Renumbered(before Table) int {
	count := 0
	for prefix, old := range before.Sets {
		was, is := indexes(old), indexes(t.Sets[prefix])
		for hop, index := range is {
			if earlier, there := was[hop]; there && earlier != index {
				count++
				break
			}
		}
	}
	return count
}

// indexes are the indexes of next hops, of several alike the first.
func indexes(hops []NextHop) map[id]int {
	list := map[id]int{}
	for i, hop := range hops {
		if _, there := list[hop.id()]; !there {
			list[hop.id()] = i
		}
	}
	return list
}
