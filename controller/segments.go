package controller

import (
	"fmt"
	"net/netip"
	"slices"

	"sextant/packet/srv6"
	"sextant/te/segment"
	"sextant/te/segment/sidlist"
	"sextant/te/topology"
)

// segments turns paths into segment lists, and back: the SID of each router after the first, as the
// paper does (section III-C). Where several links lead on, the SID of one of them (End.X) stands in
// place of its router's.
type segments struct {
	plan   sidlist.Plan
	egress map[topology.Node]netip.Addr // SIDs that decapsulate, of routers whose file says so
	known  map[netip.Addr]segment.SID
}

func newSegments(g *topology.Graph, c *Config) (*segments, error) {
	block, err := c.checkBlock()
	if err != nil {
		return nil, err
	}
	s := &segments{egress: map[topology.Node]netip.Addr{}, known: map[netip.Addr]segment.SID{},
		plan: sidlist.Plan{Graph: g, Block: block}}
	if c.Southbound.Decap != "" {
		if s.plan.Decap, err = srv6.ParseCSID(c.Southbound.Decap); err != nil {
			return nil, fmt.Errorf("southbound.decap: %w", err)
		}
	}
	for i, r := range c.Routers {
		v, ok := g.Lookup(r.Name)
		if !ok {
			return nil, fmt.Errorf("routers[%d]: %s has no router %q", i, g.Name(), r.Name)
		}
		if r.Egress.IsValid() {
			s.egress[v] = r.Egress
		}
	}
	s.learn()
	return s, nil
}

// learn notes which SID says what. Nodes and links without SIDs are on no path.
func (s *segments) learn() {
	g := s.plan.Graph
	for v := range topology.Node(g.Nodes()) {
		if sid, err := s.plan.Node(v); err == nil {
			s.known[sid] = segment.SID{Node: v, Link: topology.NoEdge}
		}
		if sid, err := s.last(v); err == nil {
			s.known[sid] = segment.SID{Node: v, Link: topology.NoEdge}
		}
	}
	for e := range topology.Edge(g.Edges()) {
		if sid, err := s.plan.Link(e); err == nil {
			s.known[sid] = segment.SID{Node: g.From(e), Link: e}
		}
	}
}

// last is the SID by which a router takes packets out of a list that ends there.
func (s *segments) last(v topology.Node) (netip.Addr, error) {
	if sid, ok := s.egress[v]; ok {
		return sid, nil
	}
	list, err := s.plan.List(segment.Path{SIDs: []segment.SID{{Node: v, Link: topology.NoEdge}}})
	if err != nil {
		return netip.Addr{}, err
	}
	return list.SIDs[0], nil
}

// hasParallels tells whether several links lead where one does.
func hasParallels(g *topology.Graph, e topology.Edge) bool {
	return slices.ContainsFunc(g.Out(g.From(e)), func(other topology.Edge) bool {
		return other != e && g.To(other) == g.To(e)
	})
}

// of is the segment list of a path.
func (s *segments) of(path []topology.Edge) (list []netip.Addr, err error) {
	for i, e := range path {
		var sid netip.Addr
		switch v := s.plan.Graph.To(e); {
		case i == len(path)-1:
			sid, err = s.last(v)
		case hasParallels(s.plan.Graph, path[i+1]):
			sid, err = s.plan.Link(path[i+1])
		default:
			sid, err = s.plan.Node(v)
		}
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w", i+1, err)
		}
		list = append(list, sid)
	}
	return list, nil
}

// path is the path from a router that a segment list holds packets to; false if it is not one that
// of makes.
func (s *segments) path(from topology.Node, list []netip.Addr) (path []topology.Edge, ok bool) {
	g := s.plan.Graph
	next := topology.NoEdge // the link that the last SID chose
	for _, sid := range list {
		meaning, known := s.known[sid]
		if !known {
			return nil, false
		}
		if next == topology.NoEdge {
			if next = linkBetween(g, from, meaning.Node); next == topology.NoEdge {
				return nil, false
			}
		}
		if g.To(next) != meaning.Node {
			return nil, false
		}
		path = append(path, next)
		from, next = meaning.Node, meaning.Link
	}
	return path, next == topology.NoEdge && len(path) > 0
}

// linkBetween is the first link from one router to another.
func linkBetween(g *topology.Graph, from, to topology.Node) topology.Edge {
	for _, e := range g.Out(from) {
		if g.To(e) == to {
			return e
		}
	}
	return topology.NoEdge
}
