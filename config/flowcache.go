package config

import (
	"fmt"
	"net/netip"
)

// FlowCache is an edge's memory of which backend took which connection; the zero value is none.
type FlowCache struct {
	// End.LEARN: SYNs come from there, and hosts send the answers there
	SID netip.Addr `key:"sid" as:"sid"`
	// connections, of 8 bytes each
	Entries int `key:"entries" default:"1048576" range:"64 268435456"`
}

func (c *checker) flowCache(e *Edge) {
	f := e.FlowCache
	if f == (FlowCache{}) {
		return
	}
	c.source("edge.flowCache.sid", f.SID)
	if f.SID == e.Source {
		c.conflict("edge.flowCache.sid", fmt.Sprintf("sid %s is the edge's source, so hosts "+
			"could not tell whether it learns", f.SID),
			"give End.LEARN an address of its own", "edge.source")
	}
	if f.SID == e.Shadow.SID {
		c.conflict("edge.flowCache.sid", fmt.Sprintf("sid %s is that of shadow", f.SID),
			"give End.LEARN an address of its own",
			"edge.shadow.sid")
	}
}

// String writes the size and the SID, or nothing.
func (c FlowCache) String() string {
	if c == (FlowCache{}) {
		return ""
	}
	return fmt.Sprintf("%d entries, sid %s", c.Entries, c.SID)
}

// maxLearners is how many prefixes of edges' End.LEARN SIDs a host can have.
const maxLearners = 4

// learners checks whom a host tells what it accepted: it needs an address to send from.
func (c *checker) learners(h *Host) {
	c.count("host.learners", "prefixes", len(h.Learners), maxLearners)
	prefixes := unique[netip.Prefix]{}
	for i, p := range h.Learners {
		where := fmt.Sprintf("host.learners[%d]", i)
		prefixes.once(c, where, p, deleteOne, "prefix %s is given twice")
		if !p.Addr().Is6() || p.Bits() == 0 {
			c.invalid(where, fmt.Sprintf("prefix %s is not one of SIDs", p),
				`write that of the edges' flowCache.sid, like "fd00:5e:0:1ea::/64"`)
		}
	}
	switch {
	case len(h.Learners) == 0:
	case !h.Source.IsValid():
		c.invalid("host.source",
			"the host has no address from which it could send SYN-ACKs to edges",
			`add "source: " and an address of this machine that lies inside infrastructure`,
			"host.learners")
	default:
		c.source("host.source", h.Source)
	}
}
