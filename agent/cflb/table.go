package cflb

import (
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"

	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/routing/equalcost"
)

// controlled are the routes of families that have selectors.
func controlled(routes equalcost.Table, c *config.CFLB) equalcost.Table {
	maps.DeleteFunc(routes.Sets, func(to netip.Prefix, _ []equalcost.NextHop) bool {
		return c.SelectorOf(to.Addr()) == nil
	})
	maps.DeleteFunc(routes.Left, func(to netip.Prefix, _ equalcost.Why) bool {
		return c.SelectorOf(to.Addr()) == nil
	})
	return routes
}

// cflbTable makes of a router's next hops the table of the programs. Sends names the interfaces by
// which the program at XDP can send. Left says which destinations with several next hops are left
// to the kernel, and why.
func cflbTable(routes equalcost.Table, c *config.CFLB,
	sends map[uint32]bool) (t model.CFLBTable, left map[netip.Prefix]string) {
	t.Routes, left = map[netip.Prefix]int{}, map[netip.Prefix]string{}
	groups := map[string]int{}
	for _, prefix := range slices.SortedFunc(maps.Keys(routes.Sets), equalcost.ComparePrefixes) {
		hops := routes.Sets[prefix]
		if most := min(c.SelectorOf(prefix.Addr()).Radix, datapath.CFLBNextHops); len(hops) > most {
			t.Routes[prefix] = model.CFLBKernel
			left[prefix] = fmt.Sprintf("it has %d next hops, and selectors name %d: raise the "+
				"radix of the network, at most to %d", len(hops), most, datapath.CFLBNextHops)
			continue
		}
		key := fmt.Sprint(prefix.Addr().Is4(), hops)
		number, known := groups[key]
		if !known {
			number = len(t.Groups)
			groups[key] = number
			t.Groups = append(t.Groups, cflbNextHops(hops, sends))
		}
		t.Routes[prefix] = number
	}
	for _, prefix := range routes.Kernel {
		t.Routes[prefix] = model.CFLBKernel
	}
	for prefix, why := range routes.Left {
		left[prefix] = why.String()
	}
	return t, left
}

// cflbNextHops are next hops as the programs want them.
func cflbNextHops(hops []equalcost.NextHop, sends map[uint32]bool) []model.CFLBNextHop {
	shares := make([]uint32, len(hops)) // in the kernel's order
	for _, hop := range hops {
		shares[hop.Place] = hop.Share
	}
	hashes := model.CFLBKernelHashes(shares)
	list := make([]model.CFLBNextHop, len(hops))
	for i, hop := range hops {
		list[i] = model.CFLBNextHop{Interface: hop.Number, Weight: hop.Weight,
			MTU:    uint16(min(hop.MTU, math.MaxUint16)),
			Source: hop.Source, Destination: hop.Destination, KernelHash: hashes[hop.Place],
			Ready: sends[hop.Number] && hop.Source != [6]byte{} && hop.Destination != [6]byte{}}
		if hop.Down {
			list[i].Weight = 0
		}
	}
	return list
}
