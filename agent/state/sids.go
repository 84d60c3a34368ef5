package state

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sextant/config"
	"sextant/lb/consistenthash"
	"sextant/packet/srv6"
)

// SIDs has the ids of SIDs that are no compressed ones of the domain, by which chains name them:
// first those that no compressed SID may have, 0xe000 to 0xffff, and when these are used up those
// of compressed SIDs that are not seen here, from 0xdfff down. These ids are the node's own.
type SIDs struct {
	ids  map[netip.Addr]uint16
	sids []netip.Addr    // by id, of 65,536; nil: none has an id
	seen map[uint16]bool // compressed SIDs that backends have
	next int             // no id before this place is free
	lent int             // ids of compressed SIDs that others have
	most int             // how many are kept before those that are used no more are forgotten
}

const (
	firstLocal = uint16(srv6.MaxGlobalCSID) + 1
	localIDs   = 1<<16 - int(firstLocal)
	allIDs     = 1<<16 - 1 // 0 is none
)

// idAt is the id at a place of the order in which they are given.
func idAt(place int) uint16 {
	if place < localIDs {
		return firstLocal + uint16(place)
	}
	return uint16(allIDs - place)
}

func placeOf(id uint16) int {
	if id >= firstLocal {
		return int(id - firstLocal)
	}
	return allIDs - int(id)
}

// compressed is the id of a SID that is a compressed one of the block.
func compressed(block srv6.Block, sid netip.Addr) (id uint16, ok bool) {
	ids, err := block.CSIDs(sid)
	if err != nil || len(ids) != 1 || !ids[0].Global() {
		return 0, false
	}
	return uint16(ids[0]), true
}

// Number returns the id of a backend's SID: the compressed SID itself, or another one that stands
// for a SID of another form.
func (s *SIDs) Number(block srv6.Block, sid netip.Addr) (uint16, error) {
	if id, ok := compressed(block, sid); ok {
		if other := s.Of(id); other.IsValid() {
			return 0, &config.Problem{Kind: config.ErrConflict, Text: fmt.Sprintf("the id of %s "+
				"is that of %s, as more than %d SIDs are outside of the block %s", sid, other,
				localIDs, block.Prefix()), Mend: "give the backend a lower identifier"}
		}
		if s.seen == nil {
			s.seen = map[uint16]bool{}
		}
		s.seen[id] = true
		return id, nil
	}
	if id, ok := s.ids[sid]; ok {
		return id, nil
	}
	for ; s.next < allIDs; s.next++ {
		if id := idAt(s.next); !s.Of(id).IsValid() && !s.seen[id] {
			s.set(sid, id)
			return id, nil
		}
	}
	return 0, &config.Problem{Kind: config.ErrConflict,
		Text: fmt.Sprintf("%s is one of more than %d SIDs outside of the block %s at a time", sid,
			len(s.ids), block.Prefix()), Mend: "serve some backends by other edges"}
}

// Of is the SID that has an id which is no compressed SID; the zero value: none has it.
func (s *SIDs) Of(id uint16) netip.Addr {
	if s.sids == nil {
		return netip.Addr{}
	}
	return s.sids[id]
}

// Behind is the SID behind an id, as Number gave it; the zero value: none is known.
func (s *SIDs) Behind(block srv6.Block, id uint16) netip.Addr {
	if sid := s.Of(id); sid.IsValid() || !srv6.CSID(id).Global() {
		return sid
	}
	sid, err := block.Carrier(srv6.CSID(id))
	if err != nil {
		return netip.Addr{}
	}
	return sid
}

// Len is how many SIDs have an id here.
func (s *SIDs) Len() int { return len(s.ids) }

// All are the ids, by SID.
func (s *SIDs) All() map[netip.Addr]uint16 { return maps.Clone(s.ids) }

func (s *SIDs) set(sid netip.Addr, id uint16) {
	if s.ids == nil {
		s.ids = map[netip.Addr]uint16{}
	}
	if s.sids == nil {
		s.sids = make([]netip.Addr, 1<<16)
	}
	s.remove(s.sids[id])
	s.remove(sid)
	s.ids[sid], s.sids[id] = id, sid
	if id < firstLocal {
		s.lent++
	}
}

func (s *SIDs) remove(sid netip.Addr) {
	if id, ok := s.ids[sid]; ok {
		delete(s.ids, sid)
		s.sids[id] = netip.Addr{}
		s.next = min(s.next, placeOf(id))
		if id < firstLocal {
			s.lent--
		}
	}
}

// Prune forgets the ids of SIDs that are not used any more, if those that are wanted might not be
// numbered else, or many ids have been given since it last did: SIDs of pods come and go for as
// long as a node runs.
func (s *SIDs) Prune(block srv6.Block, wanted []netip.Addr, used func() map[netip.Addr]bool) {
	s.most = max(s.most, localIDs)
	if len(s.ids)+len(wanted) <= min(s.most, allIDs-len(s.seen)) &&
		!slices.ContainsFunc(wanted, func(sid netip.Addr) bool {
			id, ok := compressed(block, sid)
			return ok && s.Of(id).IsValid()
		}) {
		return
	}
	keep := used()
	for sid := range s.ids {
		if !keep[sid] {
			s.remove(sid)
		}
	}
	maps.DeleteFunc(s.seen, func(id uint16, _ bool) bool {
		sid, err := block.Carrier(srv6.CSID(id))
		return err != nil || !keep[sid]
	})
	s.most = max(localIDs, len(s.ids)+len(wanted)+len(s.ids)/4)
}

// Own reports which ids name SIDs at this node alone although they might be compressed ones; nil:
// none does. Others can't be told of them.
func (s *SIDs) Own() func(id uint16) bool {
	if s.lent == 0 {
		return nil
	}
	sids := slices.Clone(s.sids)
	return func(id uint16) bool { return id < firstLocal && sids[id].IsValid() }
}

// Clone copies the ids.
func (s SIDs) Clone() SIDs {
	s.ids, s.sids, s.seen = maps.Clone(s.ids), slices.Clone(s.sids), maps.Clone(s.seen)
	return s
}

// MarshalJSON writes the ids by SID.
func (s SIDs) MarshalJSON() ([]byte, error) {
	if s.ids == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(s.ids)
}

// UnmarshalJSON reads what MarshalJSON wrote, and refuses what it would not write.
func (s *SIDs) UnmarshalJSON(text []byte) error {
	var ids map[string]uint16
	if err := json.Unmarshal(text, &ids); err != nil {
		return err
	}
	*s = SIDs{}
	for text, id := range ids {
		sid, err := netip.ParseAddr(text)
		if err != nil || sid.String() != text || id == 0 || s.Of(id).IsValid() {
			return fmt.Errorf("%q has the id %#x, which is of another or of none", text, id)
		}
		s.set(sid, id)
	}
	return nil
}

// KeyOf is what all nodes know a backend by that has an id here: 0 stands for the id itself, if it
// is the compressed SID. Other ids differ between nodes.
func KeyOf(block srv6.Block, sid netip.Addr) uint64 {
	if _, ok := compressed(block, sid); ok {
		return 0
	}
	return consistenthash.KeyOf(sid.As16())
}
