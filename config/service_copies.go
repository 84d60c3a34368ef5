package config

import (
	"fmt"
	"slices"

	"sextant/packet/srv6"
)

// Copied is a kind of packets that go over both paths of a way at once.
type Copied string

// The kinds of packets.
const (
	CopiedAll  Copied = "all"
	CopiedSYN  Copied = "syn"  // of TCP that open a connection
	CopiedData Copied = "data" // of TCP with payload
)

// HasCopies reports whether some service sends packets over two paths.
func (e *Edge) HasCopies() bool {
	for i := range e.Services { // which are large: none is copied
		if len(e.Services[i].Copies) > 0 {
			return true
		}
	}
	return false
}

// markSIDs is for how many identifiers a carrier has to have room beside path and chain.
func (s *Service) markSIDs() int { return min(len(s.Copies), 1) }

func (c *checker) copies(where string, s Service, e *Edge) {
	at := join(where, "copies")
	if len(s.Copies) == 0 {
		return
	}
	for i, kind := range s.Copies {
		item := fmt.Sprintf("%s[%d]", at, i)
		if slices.Contains(s.Copies[:i], kind) {
			c.conflict(item, fmt.Sprintf("%s is given twice", kind), "delete one of the two")
		} else if kind == CopiedAll && len(s.Copies) > 1 {
			c.conflict(item, "all has the others in it", "write all alone")
		}
	}
	way := join(where, "way")
	switch {
	case s.Way == nil || s.Way.Disjoint < srv6.Copies:
		c.conflict(at, "copies go over two paths that share no link, and there is one",
			"add way: {disjoint: 2}", way)
	case s.longestPath() > 0:
		c.conflict(at, "backends with a path of their own have no second one",
			"leave path out: the way finds both", way)
	case e.Encapsulation != Carrier:
		c.conflict(at, fmt.Sprintf("encapsulation %s has no place for the mark of a copy",
			e.Encapsulation), "write encapsulation: carrier", "edge.encapsulation")
	case s.Way.SIDs+s.chainSIDs()+s.markSIDs() > srv6.MaxCarrierCSIDs:
		c.conflict(at, fmt.Sprintf("a path with %d SIDs, chains with %d and the mark of a copy "+
			"take %d identifiers, and an address has room for %d", s.Way.SIDs, s.chainSIDs(),
			s.Way.SIDs+s.chainSIDs()+s.markSIDs(), srv6.MaxCarrierCSIDs),
			fmt.Sprintf("write depth: %d, or way: {sids: 1}",
				srv6.MaxCarrierCSIDs-s.markSIDs()-s.Way.SIDs), join(where, "depth"))
	}
}

// CopiesMTU is how long a packet may be that goes twice, in bytes, outer header included: what the
// data plane's loop takes.
const CopiesMTU = 3400

// copiesWarnings are about packets of which no second copy is sent.
func (n *Node) copiesWarnings() (list []string) {
	for i := range n.Edge.Services {
		if s := &n.Edge.Services[i]; len(s.Copies) > 0 && n.Domain.MTU > CopiesMTU {
			list = append(list, fmt.Sprintf("service %q: copies: packets of more than %d bytes "+
				"with the outer header go once, and domain.mtu says that there are packets of %d; "+
				"write domain.mtu: %d on all nodes, if all are to have their copies", s.Name,
				CopiesMTU, n.Domain.MTU, CopiesMTU))
		}
	}
	return list
}
