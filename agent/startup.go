package agent

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"sextant/config"
	"sextant/lb/discovery"
	"sextant/lb/pool"
	"sextant/routing/bgp"
)

// An edge that learns its backends by BGP knows none when it begins. Until its neighbors have told
// all they know, whoever is named by chains of the past (the kernel's, of peers, of etcd, of the
// journal) may still be there, and is kept as if it were draining.

// startup is how far an edge has come since it began.
type startup struct {
	// nothing was pinned: no packets are forwarded on, and no neighbor keeps routes
	fresh bool
	began time.Time // the zero value is long ago
	// the neighbors have told all, or the time for it is over; so it is without BGP
	settled bool
}

// discoveries are the backends that routing told of, and how far that is.
type discoveries struct {
	*core
	startup   startup
	learned   map[config.Endpoint][]config.Backend // what the store keeps, by service
	withdrawn map[learnedKey]bool                  // of these, whom nobody tells of any more
}

// settling reports whether a neighbor that tells of hosts has not yet told all it knows.
func settling(n *config.BGP, peers []bgp.Peer) bool {
	return slices.ContainsFunc(n.Neighbors, func(neighbor config.Neighbor) bool {
		tells := slices.Contains(neighbor.Families, config.VPNv4) ||
			slices.Contains(neighbor.Families, config.VPNv6)
		i := slices.IndexFunc(peers, func(p bgp.Peer) bool { return p.Address == neighbor.Address })
		return tells && (i < 0 || peers[i].Session == discovery.Settling)
	})
}

// noteSettled notes when the neighbors have told all, and reports whether that is now. Unsettled:
// a source of routes other than BGP has not.
func (d *discoveries) noteSettled(peers []bgp.Peer, unsettled bool, now time.Time) bool {
	if d.startup.settled {
		return false
	}
	wait := time.Duration(0)
	if b := d.node.BGP; b != nil {
		wait, unsettled = b.Startup, unsettled || settling(b, peers)
	}
	if r := d.node.Routing; r != nil && r.FPM != nil {
		wait = max(wait, 2*r.FPM.Settle) // zebra may have to start first
	}
	if unsettled && now.Sub(d.startup.began) < wait {
		return false
	}
	d.startup.settled = true
	d.options.Log.Info("routing: all that neighbors knew at the start is told", "after",
		now.Sub(d.startup.began).Round(time.Millisecond))
	return true
}

// mayAnnounce says whether packets may come to this edge. To one that starts afresh they come when
// it knows the hosts, and when the other edges know what it knew.
func (d *discoveries) mayAnnounce(now time.Time) bool {
	if !d.startup.fresh || d.node.Edge == nil {
		return true
	}
	hold := time.Duration(0)
	for _, s := range d.node.Edge.Services {
		hold = max(hold, s.ReturnHold)
	}
	return d.startup.settled && now.Sub(d.startup.began) >= hold
}

// follow returns the generation that follows the service's running one. As long as the edge does
// not know all hosts, that is one of the past once more, with who joined since.
func (e *edgeRoom) follow(s *edgeService, spec pool.Spec, n *config.Node,
	members []pool.Backend) (*pool.Generation, error) {
	if s.past == nil {
		return s.generation.Next(members, e.now())
	}
	chains, err := pool.Merge(s.past, chainsOf(s.generation))
	if err != nil {
		return nil, err
	}
	if e.found.startup.settled {
		s.past = nil
	}
	return e.resume(s, spec, n, chains, members)
}

// resume makes a generation of chains of the past.
func (e *edgeRoom) resume(
	s *edgeService, spec pool.Spec, n *config.Node, chains []pool.Chain, members []pool.Backend,
) (*pool.Generation, error) {
	s.pastSIDs = nil
	if s.past != nil {
		members = e.withRemembered(s, n, chains, members)
	}
	return pool.Resume(spec, chains, members, e.now())
}

// withRemembered adds to the members those whom chains of the past name beside them, as draining,
// and notes their SIDs.
func (e *edgeRoom) withRemembered(
	s *edgeService, n *config.Node, chains []pool.Chain, members []pool.Backend,
) []pool.Backend {
	others := e.remembered(n, chains, members)
	for id := range others {
		members = append(members[:len(members):len(members)],
			pool.Backend{ID: id, Weight: config.DefaultWeight, State: pool.Draining})
	}
	if s.pastSIDs == nil {
		s.pastSIDs = others
	} else {
		maps.Copy(s.pastSIDs, others)
	}
	return members
}

// remembered are those whom chains name although they are not among the members.
func (e *edgeRoom) remembered(n *config.Node, chains []pool.Chain,
	members []pool.Backend) map[uint16]netip.Addr {
	others, known := map[uint16]netip.Addr{}, map[uint16]bool{}
	for _, m := range members {
		known[m.ID] = true
	}
	for i := range chains {
		for _, id := range chains[i].IDs[:chains[i].Length] {
			if known[id] {
				continue
			}
			known[id] = true
			if sid := sidOf(e.store.kept.SIDs, n, id); sid.IsValid() {
				others[id] = sid
			}
		}
	}
	return others
}

func chainsOf(g *pool.Generation) []pool.Chain {
	chains := make([]pool.Chain, g.Buckets())
	for b := range chains {
		chains[b] = g.Chain(b)
	}
	return chains
}
