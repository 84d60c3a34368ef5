package protection

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sextant/te/segment"
	"sextant/te/topology"
)

// Link is one direction of a link by the names of its ends, so that it stays the same link in a
// topology that was read anew: of parallel ones, if that has those before it, too.
type Link struct {
	From, To string
	Number   int // which of the parallel ones, from 0
}

// String writes "R1>R2", and "R1>R2#1" for the second of parallel links.
func (l Link) String() string {
	if l.Number == 0 {
		return l.From + ">" + l.To
	}
	return fmt.Sprintf("%s>%s#%d", l.From, l.To, l.Number)
}

// ParseLink reads what String writes; ok is false if it is no link.
func ParseLink(text string) (l Link, ok bool) {
	at := strings.LastIndex(text, ">")
	if at < 0 {
		return l, false
	}
	l.From, l.To = text[:at], text[at+1:]
	if hash := strings.LastIndex(l.To, "#"); hash >= 0 {
		if number, err := strconv.Atoi(l.To[hash+1:]); err == nil && number >= 0 {
			l.To, l.Number = l.To[:hash], number
		}
	}
	return l, l.From != "" && l.To != ""
}

// Reverse is the other direction.
func (l Link) Reverse() Link { return Link{l.To, l.From, l.Number} }

// Path is a way through the network with the segment list that holds packets to it.
type Path struct {
	Links []Link       // in travel order
	SIDs  []netip.Addr // in travel order; the last one is the egress's node SID
	Names []string     // what each SID says, for people: "b", or "a->b" for a link
	Delay int64        // in the topology's unit
	Risks []uint32     // shared-risk groups of its links, ascending
}

// Same tells whether two paths take the same links by the same list.
func (p Path) Same(o Path) bool {
	return slices.Equal(p.Links, o.Links) && slices.Equal(p.SIDs, o.SIDs)
}

// Crosses tells whether the path crosses a link, in either direction.
func (p Path) Crosses(l Link) bool {
	return slices.Contains(p.Links, l) || slices.Contains(p.Links, l.Reverse())
}

// meets tells whether two paths between the same ends share what they must not.
func (p Path) meets(o Path, kind segment.Disjointness) bool {
	for i, l := range p.Links {
		switch {
		case slices.Contains(o.Links, l), kind != segment.EdgeDisjoint && o.Crosses(l):
			return true
		case kind == segment.NodeDisjoint && i > 0 && o.passes(l.From):
			return true
		}
	}
	return kind == segment.SRLGDisjoint && slices.ContainsFunc(p.Risks,
		func(r uint32) bool { return slices.Contains(o.Risks, r) })
}

func (p Path) passes(node string) bool {
	return slices.ContainsFunc(p.Links[1:], func(l Link) bool { return l.From == node })
}

// LinkOf names an edge of a graph.
func LinkOf(g *topology.Graph, e topology.Edge) Link {
	l := Link{From: g.Node(g.From(e)).Name, To: g.Node(g.To(e)).Name}
	for _, other := range g.Out(g.From(e)) {
		if other == e {
			break
		}
		if g.To(other) == g.To(e) {
			l.Number++
		}
	}
	return l
}

// EdgeOf finds a link in a graph; false if it has none such.
func EdgeOf(g *topology.Graph, l Link) (topology.Edge, bool) {
	from, ok := g.Lookup(l.From)
	if !ok {
		return topology.NoEdge, false
	}
	number := l.Number
	for _, e := range g.Out(from) {
		if g.Node(g.To(e)).Name != l.To {
			continue
		}
		if number == 0 {
			return e, true
		}
		number--
	}
	return topology.NoEdge, false
}
