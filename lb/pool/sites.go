package pool

import "slices"

// Sites. Where backends are in several, each bucket has candidates in as many of them as it has
// candidates: the best of each site in the bucket's order. So an edge in any of them finds one
// nearby, and all edges have the same candidates, whatever their site: see Order.

// sitesOf are the sites of backends by id; nil: all are in one.
func sitesOf(backends []Backend) map[uint16]uint16 {
	if !slices.ContainsFunc(backends, func(b Backend) bool { return b.Site != backends[0].Site }) {
		return nil
	}
	sites := make(map[uint16]uint16, len(backends))
	for _, b := range backends {
		sites[b.ID] = b.Site
	}
	return sites
}

// bySite returns backends of an order so that the best of each site come first, in the order's,
// then the second of each, and so on; those who are not wanted are left out.
func bySite(order []uint16, sites map[uint16]uint16, wanted func(uint16) bool) []uint16 {
	var rounds [][]uint16
	taken := map[uint16]int{} // by site
	for _, id := range order {
		if !wanted(id) {
			continue
		}
		round := taken[sites[id]]
		taken[sites[id]]++
		if round == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[round] = append(rounds[round], id)
	}
	return slices.Concat(rounds...)
}

// chooseBySite writes the candidates of a bucket to space. Mostly the best of the bucket's order
// are in sites enough; else all are looked at.
func (s *rankedSelection) chooseBySite(bucket, want int, space *scratch) []uint16 {
	first := s.first(bucket, space)
	order := bySite(first, space.sites, space.eligible.has)
	if differ := distinct(order, space.sites); differ < want {
		order = bySite(s.all(bucket), space.sites, space.eligible.has)
	}
	return append(space.chosen[:0], order[:min(want, len(order))]...)
}

// distinct is how many of the first of an order are in sites of their own.
func distinct(order []uint16, sites map[uint16]uint16) int {
	seen := map[uint16]bool{}
	for i, id := range order {
		if seen[sites[id]] {
			return i
		}
		seen[sites[id]] = true
	}
	return len(order)
}

// reserveBySite fills the chain up as reserve does, from all sites alike.
func (s *rankedSelection) reserveBySite(bucket int, c *Chain, is transition) {
	for _, id := range bySite(s.first(bucket, is.space), is.space.sites, is.alive.has) {
		c.push(id, s.spec.Depth)
	}
}
