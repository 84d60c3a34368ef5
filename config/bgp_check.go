package config

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"
)

// Bounds of the bgp section.
const (
	maxNeighbors             = 256
	minHoldTime, maxHoldTime = 3 * time.Second, 65535 * time.Second
)

func (b *BGP) check(c *checker) {
	c.asn("bgp.asn", b.ASN)
	if !b.RouterID.Is4() || b.RouterID.IsUnspecified() {
		c.invalid("bgp.routerID", fmt.Sprintf("routerID %s is not an IPv4 address", b.RouterID),
			"use an address of this machine; if it has none, any that no other speaker uses")
	}
	if b.OnStop == Keep && b.GracefulRestart == 0 {
		c.conflict("bgp.onStop", "onStop keep needs graceful restart",
			"write onStop: withdraw, or a time for gracefulRestart",
			"bgp.gracefulRestart")
	}
	c.count("bgp.neighbors", "neighbors", len(b.Neighbors), maxNeighbors)
	addresses, names := unique[netip.Addr]{}, unique[string]{}
	for i, n := range b.Neighbors {
		where := fmt.Sprintf("bgp.neighbors[%d]", i)
		addresses.once(c, join(where, "address"), n.Address, deleteOne,
			"neighbor %s is given twice")
		if n.Name != "" {
			c.name(join(where, "name"), "neighbor", n.Name)
			names.once(c, join(where, "name"), n.Name, "give one of them another",
				"two neighbors have the name %q")
		}
		c.neighbor(where, n, b)
	}
}

func (c *checker) asn(where string, asn int) {
	if asn < 1 || asn >= math.MaxUint32 {
		c.invalid(where, fmt.Sprintf("asn %d is out of range", asn),
			"write 1 to 4294967294; 64512 to 65534 are for private use")
	}
}

// wait checks the range of a time; with 0 in the mend, 0 is fine too.
func (c *checker) wait(where string, d, low, high time.Duration, none string) {
	if (none == "" || d != 0) && (d < low || d > high) {
		c.invalid(where, fmt.Sprintf("%s %v is out of range", last(where), d),
			fmt.Sprintf("write %v to %v%s", low, high, none))
	}
}

func (c *checker) neighbor(where string, n Neighbor, b *BGP) {
	c.asn(join(where, "asn"), n.ASN)
	if n.Address.IsUnspecified() || n.Address.IsMulticast() || n.Address.IsLinkLocalUnicast() {
		c.invalid(join(where, "address"), fmt.Sprintf("neighbor %s is no address to connect to",
			n.Address),
			"use a global or unique local address of the neighbor")
	}
	if n.Local.IsValid() && n.Local.Is4() != n.Address.Is4() {
		c.invalid(join(where, "local"),
			fmt.Sprintf("local %s and address %s are of different IP versions", n.Local, n.Address),
			"use an address of this node of the same version", join(where, "address"))
	}
	if n.PasswordFile != "" {
		c.directory(join(where, "passwordFile"), n.PasswordFile)
	}
	c.wait(join(where, "holdTime"), n.HoldTime.Truncate(time.Second), minHoldTime, maxHoldTime, "")
	if n.Multihop != 0 && n.ASN == b.ASN {
		c.conflict(join(where, "multihop"), "multihop is for neighbors of another autonomous "+
			"system", "delete it", join(where, "asn"))
	}
	c.bfd(join(where, "bfd"), n)
	c.families(join(where, "families"), n, b)
}

func (c *checker) bfd(where string, n Neighbor) {
	if n.BFD == (BFD{}) {
		return
	}
	if n.Multihop > 1 {
		c.conflict(where, "bfd watches neighbors on the same link only", "delete bfd, or multihop")
	}
}

func (c *checker) families(where string, n Neighbor, b *BGP) {
	c.some(where, len(n.Families), "no family is given",
		"write some of "+alternatives(families)+", or delete the key")
	seen := unique[Family]{}
	for i, f := range n.Families {
		at := fmt.Sprintf("%s[%d]", where, i)
		seen.once(c, at, f, deleteOne, "family %s is given twice")
	}
	vpn := slices.Contains(n.Families, VPNv4) || slices.Contains(n.Families, VPNv6)
	if vpn && n.ASN != b.ASN && b.RouteTarget == fmt.Sprintf("%d:1", b.ASN) {
		c.conflict(where, fmt.Sprintf("the route target %s, made of this node's asn, is not the "+
			"one of asn %d", b.RouteTarget, n.ASN),
			"write the same routeTarget on all nodes, or families without vpnv4 and vpnv6",
			"bgp.routeTarget")
	}
}
