package edge

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sextant/agent/api"
	"sextant/config"
	"sextant/datapath"
	"sextant/datapath/model"
	"sextant/lb/pool"
	"sextant/packet/srv6"
)

// paths are those to the backends of a service, by ids as the program knows SIDs. The zero value:
// there are none.
type paths struct {
	to   map[uint16][][]uint16 // one, or two of which a flow's hash chooses
	sids map[uint16]netip.Addr // of all that are on them
}

func (p paths) equal(o paths) bool {
	return maps.EqualFunc(p.to, o.to, func(a, b [][]uint16) bool {
		return slices.EqualFunc(a, b, slices.Equal)
	}) && maps.Equal(p.sids, o.sids)
}

// pathsOf numbers the SIDs on the paths to the service's backends: those that they are given, or
// else those of the service's way.
func (e *Room) pathsOf(s *config.Service, w *serviceWay, members []pool.Backend,
	n *config.Node) (paths, error) {
	var p paths
	for i, b := range s.Backends {
		lists := [][]netip.Addr{s.PathTo(b)}
		if len(lists[0]) == 0 {
			lists = w.sids(b)
		}
		if !slices.ContainsFunc(lists, func(l []netip.Addr) bool { return len(l) > 0 }) {
			continue
		}
		if p.to == nil {
			p = paths{to: map[uint16][][]uint16{}, sids: map[uint16]netip.Addr{}}
		}
		for _, list := range lists {
			ids := make([]uint16, len(list))
			for j, sid := range list {
				id, err := e.Store.Kept.SIDs.Number(n.Domain.Block, sid)
				if err != nil {
					return p, err
				}
				ids[j], p.sids[id] = id, sid
			}
			p.to[members[i].ID] = append(p.to[members[i].ID], ids)
		}
	}
	return p, nil
}

// ofFlow are the ids on the path of a flow to a backend.
func (p paths) ofFlow(backend uint16, hash uint64) []uint16 {
	if list := p.to[backend]; len(list) > 0 {
		return model.PathOfFlow(list, hash)
	}
	return nil
}

// setPaths tells the program the paths of the service of an index; SetService brings them into
// force.
func (e *Role) setPaths(index uint32, p paths) error {
	for id, sid := range p.sids {
		if err := e.Program.SetSID(id, sid); err != nil {
			return err
		}
	}
	err := e.Program.SetPaths(index, p.to)
	e.crowded = e.crowded || errors.Is(err, datapath.ErrNoRoom)
	return err
}

// makePathRoom loads the edge's programs anew with a table for more paths, if there was no room for
// those that services have come to want; they are set when chains are brought up to date.
func (e *Room) makePathRoom() error {
	if e.Runs == nil || !e.Runs.crowded {
		return nil
	}
	if _, more := e.Runs.Config.Capacity.WithMorePaths(); !more {
		e.Runs.crowded = false // it is said again if there still is none
		return nil
	}
	e.Runs.Broken = true // what runs is no more what is to run
	if err := e.Reload(); err != nil {
		return fmt.Errorf("make room for more paths: %w", err)
	}
	return nil
}

// copied are the packets of the service that go over two paths.
func (s *Service) copied() datapath.Copies {
	return datapath.Copies{All: slices.Contains(s.Copies, config.CopiedAll),
		SYN:  slices.Contains(s.Copies, config.CopiedSYN),
		Data: slices.Contains(s.Copies, config.CopiedData)}
}

// refreshPaths brings the paths of a running service up to date, whose backends are those of next.
func (e *Room) refreshPaths(s *Service, next *config.Service, members []pool.Backend) error {
	p, err := e.pathsOf(next, s.way, members, e.Node)
	if err != nil || p.equal(s.Paths) {
		return err
	}
	if err := e.Runs.setPaths(s.Index, p); err != nil {
		return err
	}
	s.Paths = p
	return e.Runs.Program.SetService(s.Key, s.Index, s.Buckets)
}

// copiesOf tells of the second copy of a packet, and marks the header of the first; nil: it goes
// once.
func (e *Room) copiesOf(s *Service, header *[]api.HeaderSID, r model.Result) *api.OtherCopy {
	if !r.Copy.IsValid() {
		return nil
	}
	other := &api.OtherCopy{Header: e.headerOf(s, s.Paths.to[r.Chain[0]][1], r.Chain)}
	*header = append(*header, markOf(0, "first"))
	other.Header = append(other.Header, markOf(1, "second"))
	if s.way != nil {
		for i, m := range s.Members {
			a := s.way.answers[s.way.nodes[s.Backends[i].SID]]
			if m.ID != r.Chain[0] || len(a.Paths) < srv6.Copies {
				continue
			}
			other.Cost = a.Paths[1].Cost
			for _, l := range a.Paths[1].Links {
				other.Links = append(other.Links, l.String())
			}
		}
	}
	return other
}

// markOf is the mark of a copy as a part of the header.
func markOf(n int, which string) api.HeaderSID {
	return api.HeaderSID{Bytes: srv6.CopyMark(n).String(), Role: "mark",
		Does: "says that this is the " + which + " of two copies; of these the one that comes " +
			"first is offered, and the other one follows it or is dropped"}
}

// headerOf tells which SIDs the outer header of a packet names, in the order of travel.
func (e *Room) headerOf(s *Service, path, chain []uint16) (list []api.HeaderSID) {
	for _, id := range path {
		sid := s.Paths.sids[id]
		list = append(list, e.headerSID(id, api.HeaderSID{SID: sid, Role: "path",
			Name: s.way.nameOf(sid), Does: "End: sends it on to the next SID"}))
	}
	for i, id := range chain {
		p := e.place(s, pool.Place{ID: id})
		does := "takes it, as the last"
		if i+1 < len(chain) {
			does = "takes it if it accepts it or has its connection, else sends it on to " +
				e.place(s, pool.Place{ID: chain[i+1]}).Backend
		}
		list = append(list, e.headerSID(id, api.HeaderSID{SID: p.SID, Role: "backend",
			Backend: p.Backend, Does: does}))
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
