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
	of       []uint16   // number of a backend's site, by id
	members  [][]uint16 // by site: who is in orders
	eligible []int      // by site: how many may be candidates
	wide     []int      // in how many sites more than so many may be
	taken    []uint16   // by site: of an order so far
	turns    []turn     // of an order
	sizes    []int      // of turns
	inTurn   []uint16
}

// turn is whose turn a backend has among those of its site.
type turn struct{ id, number uint16 }

// sitesOf are the sites of backends; nil: all are in one.
func sitesOf(backends []Backend) *sites {
	if !slices.ContainsFunc(backends, func(b Backend) bool { return b.Site != backends[0].Site }) {
		return nil
	}
	var names []uint16
	most := uint16(0)
	for _, b := range backends {
		if at, known := slices.BinarySearch(names, b.Site); !known {
			names = slices.Insert(names, at, b.Site)
		}
		most = max(most, b.ID)
	}
	s := &sites{of: make([]uint16, int(most)+1), members: make([][]uint16, len(names)),
		eligible: make([]int, len(names)), taken: make([]uint16, len(names))}
	for _, b := range backends {
		at, _ := slices.BinarySearch(names, b.Site)
		s.of[b.ID] = uint16(at)
		if b.Weight > 0 {
			s.members[at] = append(s.members[at], b.ID)
		}
		if b.eligible() {
			if s.eligible[at]++; s.eligible[at] > len(s.wide) {
				s.wide = append(s.wide, 0)
			}
			s.wide[s.eligible[at]-1]++
		}
	}
	return s
}

// another puts in turn what s does, at the same time.
func (s *sites) another() *sites {
	return &sites{of: s.of, members: s.members, eligible: s.eligible, wide: s.wide,
		taken: make([]uint16, len(s.members))}
}

// sameSites says whether those who are in both lists, which are sorted by id, are where they were.
func sameSites(before, after []Backend) bool {
	for len(before) > 0 && len(after) > 0 {
		a, b := before[0], after[0]
		if a.ID == b.ID && a.Site != b.Site {
			return false
		}
		if a.ID <= b.ID {
			before = before[1:]
		}
		if b.ID <= a.ID {
			after = after[1:]
		}
	}
	return true
}

// bySite returns backends of an order so that the best of each site come first, in the order's,
// then the second of each, and so on; those who are not wanted are left out. What it returned for
// another order is lost.
func (s *sites) bySite(order []uint16, wanted *idSet) []uint16 {
	s.reserve(len(order))
	turns, sizes, taken := s.turns[:len(order)], s.sizes[:len(order)], s.taken
	clear(sizes)
	known, last := 0, -1
	for _, id := range order {
		if !wanted.has(id) {
			continue
		}
		site := s.of[id]
		number := taken[site]
		taken[site] = number + 1
		turns[known] = turn{id, number}
		known, last = known+1, max(last, int(number))
		sizes[number]++
	}
	turns, sizes = turns[:known], sizes[:last+1]
	begin := 0
	for number, size := range sizes {
		sizes[number], begin = begin, begin+size
	}
	inTurn := s.inTurn[:known]
	for _, t := range turns {
		inTurn[sizes[t.number]] = t.id
		sizes[t.number]++ // in the end where the turn ends
		taken[s.of[t.id]] = 0
	}
	s.sizes = sizes
	return inTurn
}

// reserve makes room for the turns of so many.
func (s *sites) reserve(members int) {
	if members > cap(s.sizes) {
		s.turns, s.sizes = make([]turn, members), make([]int, members)
		s.inTurn = make([]uint16, members)
	}
	s.sizes = s.sizes[:cap(s.sizes)]
}

// settled says whether what was put in turn was enough for so many candidates: each site had its
// turn. Of the begin of an order, the last turn may be left to those who come first.
func (s *sites) settled(candidates int, isBegin bool) bool {
	begin := 0
	for number, end := range s.sizes {
		if isBegin && end >= candidates {
			return true
		}
		if end-begin < s.wide[number] {
			return false
		}
		if end >= candidates {
			return true
		}
		begin = end
	}
	return candidates == 0
}

// turnsFor is how many turns it takes until so many candidates have had theirs.
func (s *sites) turnsFor(candidates int) (turns int) {
	for places := 0; places < candidates; turns++ {
		places += s.wide[turns]
	}
	return turns
}

// withMissed are the begin of an order and all members of the sites of which it has too few for so
// many turns.
func (s *sites) withMissed(begin []uint16, wanted *idSet, turns int) (ids []uint16) {
	for _, id := range begin {
		if wanted.has(id) {
			s.taken[s.of[id]]++
		}
	}
	isShort := func(site int) bool { return int(s.taken[site]) < min(turns, s.eligible[site]) }
	for _, id := range begin {
		if !isShort(int(s.of[id])) {
			ids = append(ids, id)
		}
	}
	for site, members := range s.members {
		if isShort(site) {
			ids = append(ids, members...)
		}
	}
	clear(s.taken)
	return ids
}

// narrow leaves out of an order who comes behind those of its site that have so many turns.
func (s *sites) narrow(order []uint16, wanted *idSet, turns int) (ids []uint16) {
	for _, id := range order {
		taken := &s.taken[s.of[id]]
		if int(*taken) == turns {
			continue
		}
		if ids = append(ids, id); wanted.has(id) {
			*taken++
		}
	}
	clear(s.taken)
	return ids
}

// settledAlike says whether the same begins of orders are enough for so many candidates as with
// other backends.
func (s *sites) settledAlike(other *sites, candidates int) bool {
	if s == nil || other == nil {
		return s == other
	}
	return slices.Equal(s.wide[:min(candidates, len(s.wide))],
		other.wide[:min(candidates, len(other.wide))])
}

// chooseBySite writes the candidates of a bucket to space. Mostly the best of the bucket's order
// are in sites enough; else more are looked at.
func (s *rankedSelection) chooseBySite(bucket, want int, space *scratch) (chosen []uint16,
	scarce bool) {
	order := space.sites.bySite(s.first(bucket, space), &space.eligible)
	if scarce = !space.sites.settled(want, true); scarce {
		order = s.wider.bySite(s, bucket, want, space)
	}
	return append(space.chosen[:0], order[:min(want, len(order))]...), scarce
}

// wider are the orders of buckets in which the best are not in sites enough: of each site, those
// who come first. Who may be a candidate does not matter to orders, so they stay for as long as the
// ranking and the sites do.
type wider struct {
	mu     sync.Mutex
	orders map[int][]uint16
}

// bySite puts a bucket's order in turn, with as many members as it takes.
func (w *wider) bySite(s *rankedSelection, bucket, want int, space *scratch) []uint16 {
	w.mu.Lock()
	defer w.mu.Unlock()
	sites, eligible := space.sites, &space.eligible
	inTurn := sites.bySite(w.orders[bucket], eligible)
	if sites.settled(want, false) {
		return inTurn
	}
	turns := sites.turnsFor(want)
	ids := sites.withMissed(s.first(bucket, space), eligible, turns)
	if w.orders == nil {
		w.orders = map[int][]uint16{}
	}
	w.orders[bucket] = sites.narrow(s.inOrder(bucket, ids), eligible, turns)
	return sites.bySite(w.orders[bucket], eligible)
}

// reserveBySite fills the chain up as reserve does, from all sites alike.
func (s *rankedSelection) reserveBySite(bucket int, c *Chain, is transition) {
	for _, id := range is.space.sites.bySite(s.first(bucket, is.space), is.alive) {
		c.push(id, s.spec.Depth)
	}
}
