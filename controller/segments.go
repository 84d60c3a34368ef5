package controller

import (
	"fmt"
	"net/netip"
	"slices"

	"sextant/packet/srv6"
	"sextant/te/reroute"
	"sextant/te/segment"
	"sextant/te/segment/sidlist"
	"sextant/te/spf"
	"sextant/te/topology"
)

// segments turns paths into segment lists, and back: the SID of each router after the first, as the
// paper does (section III-C). Where the IGP would not take the link that leads on, or others
// besides, the SID of the link (End.X) stands in place of its router's. The IGP is taken with all
// links up: the only shortest path stays that when others fail, and when they return.
type segments struct {
	plan   sidlist.Plan
	egress map[topology.Node]netip.Addr // SIDs that decapsulate, of routers whose file says so
	known  map[netip.Addr]segment.SID
	igp    *spf.Table
	ways   []way // by edge
}

// way is how the IGP gets to the router behind a link, from the one before it.
type way uint8

const (
	wayUnknown  way = iota // nobody has asked yet
	wayLink                // by this link, and no other
	wayParallel            // by links between the two, of which this one is not the only one
	wayAstray              // by other routers, too or only
)

func newSegments(g *topology.Graph, c *Config) (*segments, error) {
	block, err := c.checkBlock()
	if err != nil {
		return nil, err
	}
	s := &segments{egress: map[topology.Node]netip.Addr{}, known: map[netip.Addr]segment.SID{},
		plan: sidlist.Plan{Graph: g, Block: block}, ways: make([]way, g.Edges())}
	metric := reroute.IGP.Cost(g.All())
	s.igp = spf.New(g.All(), metric, metric)
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

// way tells how the IGP gets over a link. What is asked of a router is found for all of its links.
func (s *segments) way(e topology.Edge) way {
	if s.ways[e] != wayUnknown {
		return s.ways[e]
	}
	g := s.plan.Graph
	from := g.From(e)
	row := s.igp.Passing(from, false)
	for _, out := range g.Out(from) {
		to := g.To(out)
		switch {
		case row.Via[to] == out:
			s.ways[out] = wayLink
		case slices.ContainsFunc(row.Back(to), func(last spf.Arc) bool {
			return last.Node != from && row.TightBack(to, last)
		}):
			s.ways[out] = wayAstray
		default:
			s.ways[out] = wayParallel
		}
	}
	s.igp.Forget(from)
	return s.ways[e]
}

// of is the segment list of a path. The routes of a head-end choose between its parallel links; if
// they could also go by other routers, the SID of the first link is in front.
func (s *segments) of(path []topology.Edge) (list []netip.Addr, err error) {
	add := func(sid netip.Addr, err error) error {
		if err != nil {
			return fmt.Errorf("segment %d: %w", len(list)+1, err)
		}
		list = append(list, sid)
		return nil
	}
	if s.way(path[0]) == wayAstray {
		err = add(s.over(path[0]))
	}
	for i := 0; i < len(path) && err == nil; i++ {
		switch v := s.plan.Graph.To(path[i]); {
		case i == len(path)-1:
			err = add(s.last(v))
		case s.way(path[i+1]) != wayLink:
			err = add(s.over(path[i+1]))
		default:
			err = add(s.plan.Node(v))
		}
	}
	return list, err
}

// over is the SID of a link that the IGP does not take by itself.
func (s *segments) over(e topology.Edge) (netip.Addr, error) {
	g := s.plan.Graph
	if g.Edge(e).SID == sidlist.Unknown {
		from, to := g.Node(g.From(e)).Name, g.Node(g.To(e)).Name
		return netip.Addr{}, fmt.Errorf("the IGP goes from %s to %s by other links than this one, "+
			"of which %s tells no SID; let it announce an End.X, or give the link the least metric",
			from, to, from)
	}
	return s.plan.Link(e)
}

// path is the path from a router that a segment list holds packets to; false if it is not one that
// of makes.
func (s *segments) path(from topology.Node, list []netip.Addr) (path []topology.Edge, ok bool) {
	g := s.plan.Graph
	next := topology.NoEdge // the link that the last SID chose
	for i, sid := range list {
		meaning, known := s.known[sid]
		if !known {
			return nil, false
		}
		if i == 0 && meaning.Node == from && meaning.Link != topology.NoEdge {
			next = meaning.Link
			continue
		}
		if next == topology.NoEdge {
			if next = s.linkTo(from, meaning.Node, i == 0); next == topology.NoEdge {
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

// linkTo is the link by which the IGP gets from one router to another; at a head-end whose routes
// choose, the first of those.
func (s *segments) linkTo(from, to topology.Node, atHead bool) topology.Edge {
	chosen := topology.NoEdge
	for _, e := range s.plan.Graph.Out(from) {
		switch {
		case s.plan.Graph.To(e) != to:
		case s.way(e) == wayLink:
			return e
		case atHead && chosen == topology.NoEdge && s.way(e) == wayParallel:
			chosen = e
		}
	}
	return chosen
}

// hasParallels tells whether several links lead where one does.
func hasParallels(g *topology.Graph, e topology.Edge) bool {
	return slices.ContainsFunc(g.Out(g.From(e)), func(other topology.Edge) bool {
		return other != e && g.To(other) == g.To(e)
	})
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
