package edge

import (
	"maps"
	"net/netip"

	"sextant/agent/state"
	"sextant/config"
	"sextant/datapath"
	"sextant/lb/pool"
)

// An edge that learns its backends by BGP knows none when it begins. Until its neighbors have told
// all they know, each backend that earlier chains name (the kernel's, of peers, of etcd, of the
// journal) may still be there, and is kept as if it were draining.

// follow returns the generation that follows the service's running one. As long as the edge does
// not know all hosts, that is one of the past once more, with who joined since.
func (e *Room) follow(s *Service, spec pool.Spec, n *config.Node,
	members []pool.Backend) (*pool.Generation, error) {
	if s.past == nil {
		return s.Generation.Next(members, e.Now())
	}
	chains, err := pool.Merge(s.past, s.Generation.AllChains())
	if err != nil {
		return nil, err
	}
	if e.Found.Startup.Settled {
		s.past = nil
	}
	return e.resume(s, spec, n, chains, members)
}

// takeUp makes a generation of what an earlier agent left in the kernel: the one that it was, if
// its mark says so.
func (e *Room) takeUp(
	s *Service, spec pool.Spec, n *config.Node, found datapath.MarkedChains,
	members []pool.Backend,
) (*pool.Generation, error) {
	if g, err := found.Continue(spec, members, s.order); g != nil || err != nil {
		return g, err
	}
	return e.resume(s, spec, n, found.Read(), members)
}

// resume makes a generation of earlier chains.
func (e *Room) resume(
	s *Service, spec pool.Spec, n *config.Node, earlier []pool.Chain, members []pool.Backend,
) (*pool.Generation, error) {
	s.pastSIDs = nil
	if s.past != nil {
		members = e.withRemembered(s, n, earlier, members)
	}
	return pool.Resume(spec, earlier, members, e.Now())
}

// withRemembered adds to the members those whom earlier chains name beside them, as draining,
// and notes their SIDs.
func (e *Room) withRemembered(
	s *Service, n *config.Node, chains []pool.Chain, members []pool.Backend,
) []pool.Backend {
	others := e.remembered(n, chains, members)
	for id, sid := range others {
		members = append(members[:len(members):len(members)],
			pool.Backend{ID: id, Key: state.KeyOf(n.Domain.Block, sid),
				Weight: config.DefaultWeight, State: pool.Draining})
	}
	if s.pastSIDs == nil {
		s.pastSIDs = others
	} else {
		maps.Copy(s.pastSIDs, others)
	}
	return members
}

// remembered are those whom chains name although they are not among the members.
func (e *Room) remembered(n *config.Node, chains []pool.Chain,
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
			if sid := e.Store.Kept.SIDs.Behind(n.Domain.Block, id); sid.IsValid() {
				others[id] = sid
			}
		}
	}
	return others
}
