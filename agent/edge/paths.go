package edge

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/agent/state"
	"sextant/config"
	"sextant/lb/pool"
)

// paths are those to the backends of a service, by ids as the program knows SIDs. The zero value:
// there are none.
type paths struct {
	to   map[uint16][]uint16
	sids map[uint16]netip.Addr // of all that are on them
}

func (p paths) equal(o paths) bool {
	return maps.EqualFunc(p.to, o.to, slices.Equal) && maps.Equal(p.sids, o.sids)
}

// pathsOf numbers the SIDs on the paths to the service's backends.
func (e *Room) pathsOf(s *config.Service, members []pool.Backend, n *config.Node) (paths, error) {
	var p paths
	for i, b := range s.Backends {
		path := s.PathTo(b)
		if len(path) == 0 {
			continue
		}
		if p.to == nil {
			p = paths{to: map[uint16][]uint16{}, sids: map[uint16]netip.Addr{}}
		}
		ids := make([]uint16, len(path))
		for j, sid := range path {
			var err error
			if ids[j], err = state.NumberSID(e.Store.Kept.SIDs, n.Domain.Block, sid); err != nil {
				return p, err
			}
			p.sids[ids[j]] = sid
		}
		p.to[members[i].ID] = ids
	}
	return p, nil
}

// setPaths tells the program the service's paths; SetService brings them into force.
func (e *Role) setPaths(s *Service) error {
	for id, sid := range s.Paths.sids {
		if err := e.Program.SetSID(id, sid); err != nil {
			return err
		}
	}
	return e.Program.SetPaths(s.Index, s.Paths.to)
}

// refreshPaths brings the paths of a running service up to date, whose backends are those of next.
func (e *Room) refreshPaths(s *Service, next *config.Service, members []pool.Backend) error {
	p, err := e.pathsOf(next, members, e.Node)
	if err != nil || p.equal(s.Paths) {
		return err
	}
	s.Paths = p
	if err := e.Runs.setPaths(s); err != nil {
		return err
	}
	return e.Runs.Program.SetService(s.Key, s.Index, s.Buckets)
}

// headerOf tells which SIDs the outer header of a packet names, in the order of travel.
func (e *Room) headerOf(s *Service, path, chain []uint16) (list []api.HeaderSID) {
	for _, id := range path {
		list = append(list, e.headerSID(id, api.HeaderSID{SID: s.Paths.sids[id], Role: "path"}))
	}
	for _, id := range chain {
		p := e.place(s, pool.Place{ID: id})
		list = append(list, e.headerSID(id, api.HeaderSID{SID: p.SID, Role: "backend",
			Backend: p.Backend}))
	}
	return list
}

// headerSID adds the bytes by which a SID stands in the header.
func (e *Room) headerSID(id uint16, h api.HeaderSID) api.HeaderSID {
	if e.Node.Edge.Encapsulation == config.Carrier {
		h.Bytes = fmt.Sprintf("%04x", id)
	} else if h.SID.IsValid() {
		h.Bytes = hex.EncodeToString(h.SID.AsSlice())
	}
	return h
}
