package pool

import (
	"slices"
	"sync"
)

// Sites. Where backends are in several, each bucket has candidates in as many of them as it has
// candidates: the best of each site in the bucket's order. So an edge in any of them finds one
// nearby, and all edges have the same candidates, whatever their site: see Order.

// sites are where backends are, and what putting them in turn takes.
type sites struct {
	of     []uint16 // number of a backend's site, by id
	wide   []int    // in how many sites more than so many backends may be candidates
	taken  []uint16 // by site: of an order so far
	turns  []turn   // of an order
	sizes  []int    // of turns
	inTurn []uint16
}

// turn is whose turn a backend has among those of its site.
type turn struct{ id, number uint16 }

// sitesOf are the sites of backends; nil: all are in one.
func sitesOf(backends []Backend) *sites {
	var names []uint16
	most := uint16(0)
	for _, b := range backends {
		if at, known := slices.BinarySearch(names, b.Site); !known {
			names = slices.Insert(names, at, b.Site)
		}
		most = max(most, b.ID)
	}
	if len(names) < 2 {
		return nil
	}
	s := &sites{of: make([]uint16, int(most)+1), taken: make([]uint16, len(names))}
	eligible := make([]int, len(names))
	for _, b := range backends {
		at, _ := slices.BinarySearch(names, b.Site)
		if s.of[b.ID] = uint16(at); b.eligible() {
			if eligible[at]++; eligible[at] > len(s.wide) {
				s.wide = append(s.wide, 0)
			}
			s.wide[eligible[at]-1]++
		}
	}
	return s
}

// same says whether backends are in the same sites.
func (s *sites) same(other *sites) bool {
	if s == nil || other == nil {
		return s == other
	}
	return slices.Equal(s.of, other.of)
}

// bySite returns backends of an order so that the best of each site come first, in the order's,
// then the second of each, and so on; those who are not wanted are left out. What it returned for
// another order is lost.
func (s *sites) bySite(order []uint16, wanted *idSet) []uint16 {
	s.turns, s.sizes = s.turns[:0], s.sizes[:0]
	for _, id := range order {
		if !wanted.has(id) {
			continue
		}
		taken := &s.taken[s.of[id]]
		if int(*taken) == len(s.sizes) {
			s.sizes = append(s.sizes, 0)
		}
		s.turns = append(s.turns, turn{id, *taken})
		s.sizes[*taken]++
		*taken++
	}
	s.inTurn = slices.Grow(s.inTurn[:0], len(s.turns))[:len(s.turns)]
	begin := 0
	for number, size := range s.sizes {
		s.sizes[number], begin = begin, begin+size
	}
	for _, t := range s.turns {
		s.inTurn[s.sizes[t.number]] = t.id
		s.sizes[t.number]++ // in the end where the turn ends
		s.taken[s.of[t.id]] = 0
	}
	return s.inTurn
}

// settled says whether the begin of an order was enough for so many candidates: each site had its
// turn before another one had its next.
func (s *sites) settled(candidates int) bool {
	begin := 0
	for number, end := range s.sizes {
		if end >= candidates {
			return true
		}
		if end-begin < s.wide[number] {
			return false
		}
		begin = end
	}
	return begin >= candidates
}

// settledAlike says whether the same begins of orders are enough for so many candidates as with
// other backends.
func (s *sites) settledAlike(other *sites, candidates int) bool {
	return s == nil || slices.Equal(s.wide[:min(candidates, len(s.wide))],
		other.wide[:min(candidates, len(other.wide))])
}

// chooseBySite writes the candidates of a bucket to space. Mostly the best of the bucket's order
// are in sites enough; else more are looked at.
func (s *rankedSelection) chooseBySite(bucket, want int, space *scratch) (chosen []uint16,
	scarce bool) {
	order := space.sites.bySite(s.first(bucket, space), &space.eligible)
	if scarce = !space.sites.settled(want); scarce {
		order = s.longer.bySite(s, bucket, want, space)
	}
	return append(space.chosen[:0], order[:min(want, len(order))]...), scarce
}

// longer has the begins of orders of buckets in which the best are not in sites enough: to find
// these takes a look at all backends. Who may be a candidate does not matter to them, so they stay
// for as long as the ranking does.
type longer struct {
	mu    sync.Mutex
	begin map[int][]uint16
}

// bySite returns who is wanted of a bucket by sites, of as long a begin as it takes.
func (l *longer) bySite(s *rankedSelection, bucket, want int, space *scratch) []uint16 {
	l.mu.Lock()
	defer l.mu.Unlock()
	order := space.sites.bySite(l.begin[bucket], &space.eligible)
	if space.sites.settled(want) {
		return order
	}
	var begin []uint16
	for id := range s.all(bucket) {
		if begin = append(begin, id); len(begin)&(len(begin)-1) > 0 {
			continue
		}
		space.sites.bySite(begin, &space.eligible)
		if space.sites.settled(want) {
			break
		}
	}
	if l.begin == nil {
		l.begin = map[int][]uint16{}
	}
	l.begin[bucket] = begin
	return space.sites.bySite(begin, &space.eligible)
}

// reserveBySite fills the chain up as reserve does, from all sites alike.
func (s *rankedSelection) reserveBySite(bucket int, c *Chain, is transition) {
	for _, id := range is.space.sites.bySite(s.first(bucket, is.space), is.alive) {
		c.push(id, s.spec.Depth)
	}
}
