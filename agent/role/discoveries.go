package role

import (
	"net/netip"
	"slices"
	"time"

	"sextant/config"
	"sextant/lb/discovery"
	"sextant/routing/bgp"
)

// Startup is how far an edge has come since it began.
type Startup struct {
	// nothing was pinned: no packets are forwarded on, and no neighbor keeps routes
	Fresh bool
	Began time.Time // the zero value is long ago
	// the neighbors have told all, or the time for it is over; so it is without BGP
	Settled bool
}

// Discoveries are the backends that routing told of, and how far that is.
type Discoveries struct {
	*Core
	Startup   Startup
	Learned   map[config.Endpoint][]config.Backend // what the store keeps, by service
	Withdrawn map[LearnedKey]bool                  // of these, whom nobody tells of any more
	Sources   map[LearnedKey]discovery.Source      // who told of them
}

// Settling reports whether a neighbor that tells of hosts has not yet told all it knows.
func Settling(n *config.BGP, peers []bgp.Peer) bool {
	return slices.ContainsFunc(n.Neighbors, func(neighbor config.Neighbor) bool {
		tells := slices.Contains(neighbor.Families, config.VPNv4) ||
			slices.Contains(neighbor.Families, config.VPNv6)
		i := slices.IndexFunc(peers, func(p bgp.Peer) bool { return p.Address == neighbor.Address })
		return tells && (i < 0 || peers[i].Session == discovery.Settling)
	})
}

// NoteSettled notes when the neighbors have told all, and reports whether that is now. Unsettled:
// a source of routes other than BGP has not.
func (d *Discoveries) NoteSettled(peers []bgp.Peer, unsettled bool, now time.Time) bool {
	if d.Startup.Settled {
		return false
	}
	wait := time.Duration(0)
	if b := d.Node.BGP; b != nil {
		wait, unsettled = b.Startup, unsettled || Settling(b, peers)
	}
	if r := d.Node.Routing; r != nil && r.FPM != nil {
		wait = max(wait, 2*r.FPM.Settle) // zebra may have to start first
	}
	if unsettled && now.Sub(d.Startup.Began) < wait {
		return false
	}
	d.Startup.Settled = true
	d.Log.Info("routing: all that neighbors knew at the start is told", "after",
		now.Sub(d.Startup.Began).Round(time.Millisecond))
	return true
}

// MayAnnounce says whether packets may come to this edge. To one that starts without state they
// come when it knows the hosts, and when the other edges know what it knew.
func (d *Discoveries) MayAnnounce(now time.Time) bool {
	if !d.Startup.Fresh || d.Node.Edge == nil {
		return true
	}
	hold := time.Duration(0)
	for _, s := range d.Node.Edge.Services {
		hold = max(hold, s.ReturnHold)
	}
	return d.Startup.Settled && now.Sub(d.Startup.Began) >= hold
}

// LearnedKey is a backend that routing told of.
type LearnedKey struct {
	Endpoint config.Endpoint
	SID      netip.Addr
}

// SetLearned makes the members those that routing told of.
func (d *Discoveries) SetLearned(members []discovery.Member) {
	d.Store.Kept.Learned, d.Learned = members, map[config.Endpoint][]config.Backend{}
	d.Withdrawn, d.Sources = map[LearnedKey]bool{}, map[LearnedKey]discovery.Source{}
	for _, m := range members {
		key := LearnedKey{Endpoint: m.Endpoint, SID: m.SID}
		d.Withdrawn[key], d.Sources[key] = !m.Withdrawn.IsZero(), m.Source()
		d.Learned[m.Endpoint] = append(d.Learned[m.Endpoint], m.Backend())
	}
}

// WithLearned is a service with the backends of the node file and those that BGP told of. If their
// hosts want them up, the operator's word counts.
func (d *Discoveries) WithLearned(s config.Service) config.Service {
	s.Backends = append(slices.Clone(s.Backends), d.Learned[s.Endpoint]...)
	for _, l := range s.Learned {
		i := slices.IndexFunc(s.Backends, func(b config.Backend) bool { return b.SID == l.SID })
		if i < 0 {
			continue // nobody tells of it now
		}
		b := &s.Backends[i]
		b.Agent, b.Site = l.Agent, l.Site
		if b.State == config.Up || l.State == config.Down {
			b.State = l.State
		}
	}
	return s
}
