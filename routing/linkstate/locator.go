package linkstate

import (
	"fmt"
	"net/netip"
	"slices"

	"sextant/packet/srv6"
)

// locatorBits is the length of a router's locator: the block, and the router's id.
const locatorBits = 48

// locators are the prefixes of a block that routers announce, by router id.
type locators struct {
	block srv6.Block
	of    map[netip.Prefix][]string
}

// add notes that a router announces a prefix.
func (l *locators) add(router string, p netip.Prefix) {
	if p.Bits() != locatorBits || p != p.Masked() || !l.block.Contains(p.Addr()) ||
		slices.Contains(l.of[p], router) {
		return
	}
	if l.of == nil {
		l.of = map[netip.Prefix][]string{}
	}
	l.of[p] = append(l.of[p], router)
}

// give makes the lowest locator of each router the SID of its End. One that several announce is
// nobody's.
func (l *locators) give(d *domain) (ignored []string) {
	for p, routers := range l.of {
		if len(routers) > 1 {
			ignored = append(ignored, fmt.Sprintf("locator %s: %d routers announce it", p,
				len(routers)))
			continue
		}
		n := d.nodes[routers[0]]
		if n != nil && (!n.sid.IsValid() || p.Addr().Less(n.sid)) {
			n.sid = p.Addr()
		}
	}
	return ignored
}
