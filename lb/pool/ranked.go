package pool

import (
	"cmp"
	"slices"

	"sextant/lb/consistenthash"
)

// rankedSelection ranks all listed backends for each bucket (Method Rendezvous); the first that are
// eligible are the candidates. It knows who would have been a candidate if others had been up or
// down, so it can name in reserve who may have connections from before this edge was there.
//
// With few backends and buckets the orders are computed each time, which takes no memory; with many
// they are kept.
type rankedSelection struct {
	spec     Spec
	computed *consistenthash.Computed // nil: kept
	ranking  *consistenthash.Ranking  // nil: computed
	wider    *wider
}

// mostScores is up to how many scores, of all backends in all buckets, orders are computed: some 5
// ms. Tests set it.
var mostScores = 1 << 19

// computesOrders says whether the orders of so many backends are computed.
func (s Spec) computesOrders(backends int) bool {
	return backends == 0 ||
		s.Buckets < consistenthash.LargeTable && s.Buckets*backends <= mostScores
}

func newRanked(spec Spec, members []consistenthash.Member) (s *rankedSelection, err error) {
	s = &rankedSelection{spec: spec, wider: &wider{}}
	if spec.computesOrders(len(members)) {
		s.computed, err = consistenthash.Compute(spec.Seed, members)
	} else {
		s.ranking, err = consistenthash.Rank(spec.Buckets, spec.Seed, members)
	}
	return s, err
}

func (s *rankedSelection) update(before, backends []Backend) (selection, []int32, error) {
	listed := make([]consistenthash.Member, len(backends))
	for i, b := range backends {
		listed[i] = b.member()
	}
	if s.ranking == nil || s.spec.computesOrders(len(listed)) {
		next, err := newRanked(s.spec, listed)
		if err == nil && s.computed != nil && next.computed != nil &&
			s.computed.Same(next.computed) && sameEligible(before, backends) {
			return s, []int32{}, nil
		}
		return next, nil, err
	}
	was, is := newScratch(before), newScratch(backends)
	stay := sameSites(before, backends)
	ranking, changed, err := s.ranking.Update(listed)
	if err != nil {
		return nil, nil, err
	}
	next := &rankedSelection{spec: s.spec, ranking: ranking, wider: &wider{}}
	if ranking == s.ranking && stay {
		next.wider = s.wider
	}
	places := s.spec.Candidates
	came, went := is.eligible.without(&was.eligible), was.eligible.without(&is.eligible)
	if changed == nil || !stay || !is.sites.settledAlike(was.sites, places) ||
		min(places, is.count) != min(places, was.count) ||
		came.count()+went.count() > manyChanges {
		return next, nil, nil
	}
	for id := range came.all() {
		if s.ranking.Has(id) {
			changed = append(changed, ranking.Holding(id)...)
		} // else the ranking has told
	}
	for id := range went.all() {
		changed = append(changed, ranking.Holding(id)...)
	}
	return next, changed, nil
}

// sameEligible reports whether the same backends may be candidates, in the same sites.
func sameEligible(before, backends []Backend) bool {
	was, is := newScratch(before), newScratch(backends)
	return was.eligible == is.eligible && sameSites(before, backends)
}

// first returns the best backends of a bucket's order. What it returned for another bucket is lost.
func (s *rankedSelection) first(bucket int, space *scratch) []uint16 {
	if s.computed == nil {
		return s.ranking.First(bucket)
	}
	if space.bucket != bucket {
		space.known = len(s.computed.FirstNear(bucket, &space.near, space.order[:]))
		space.bucket = bucket
	}
	return space.order[:space.known]
}

func (s *rankedSelection) all(bucket int) []uint16 {
	if s.computed == nil {
		return s.ranking.All(bucket)
	}
	return s.computed.All(bucket)
}

// inOrder returns some backends in a bucket's order.
func (s *rankedSelection) inOrder(bucket int, ids []uint16) []uint16 {
	if s.computed == nil {
		return s.ranking.InOrder(bucket, ids)
	}
	return s.computed.InOrder(bucket, ids)
}

func (s *rankedSelection) candidates(bucket int, space *scratch) (chosen []uint16, scarce bool) {
	want := min(s.spec.Candidates, space.count)
	if space.sites != nil {
		return s.chooseBySite(bucket, want, space)
	}
	chosen = choose(s.first(bucket, space), want, space)
	if len(chosen) < want { // all that come first in this bucket are out of service
		return choose(s.all(bucket), want, space), true
	}
	return chosen, false
}

func choose(order []uint16, want int, space *scratch) []uint16 {
	chosen := space.chosen[:0]
	for _, id := range order {
		if len(chosen) == want {
			break
		}
		if space.eligible.has(id) {
			chosen = append(chosen, id)
		}
	}
	return chosen
}

func (s *rankedSelection) holding(id uint16, space *scratch) (buckets []int32) {
	if space.eligible.has(id) {
		return nil // update has told
	}
	if s.computed == nil {
		return s.ranking.Holding(id)
	}
	for bucket := range s.spec.Buckets {
		if slices.Contains(s.first(bucket, space), id) {
			buckets = append(buckets, int32(bucket))
		}
	}
	return buckets
}

func (s *rankedSelection) reserves(bucket int, ids *idSet, space *scratch) bool {
	return ids != nil && slices.ContainsFunc(s.first(bucket, space), ids.has)
}

// reserve fills the chain up with the best of the bucket's order that are alive: those before the
// candidates have had the bucket while they were up, those behind while the candidates were not.
func (s *rankedSelection) reserve(bucket int, c *Chain, is transition) {
	if is.space.sites != nil {
		s.reserveBySite(bucket, c, is)
		return
	}
	for _, id := range s.first(bucket, is.space) {
		if is.alive.has(id) {
			c.push(id, s.spec.Depth)
		}
	}
}

// moduloSelection takes the bucket modulo the number of eligible backends (Method Modulo), each as
// often as its weight says, as a router without a resilient table does.
type moduloSelection struct {
	turns []uint16
}

// maxTurns bounds the list of turns. Weights that need more are scaled down, to 1 at least.
const maxTurns = 4096

func (s moduloSelection) update(_, backends []Backend) (selection, []int32, error) {
	members := eligible(backends)
	slices.SortFunc(members, func(a, b consistenthash.Member) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.ID, b.ID))
	})
	total := uint64(0)
	for _, m := range members {
		total += uint64(m.Weight)
	}
	divisor := common(members)
	if total/divisor > maxTurns {
		divisor = (total + maxTurns - 1) / maxTurns
	}
	var next moduloSelection
	for _, m := range members {
		next.turns = append(next.turns,
			slices.Repeat([]uint16{m.ID}, int(max(1, uint64(m.Weight)/divisor)))...)
	}
	return next, nil, nil
}

// common is the greatest common divisor of the weights, 1 without any.
func common(members []consistenthash.Member) uint64 {
	g := uint64(0)
	for _, m := range members {
		a, b := g, uint64(m.Weight)
		for b != 0 {
			a, b = b, a%b
		}
		g = a
	}
	return max(1, g)
}

func (s moduloSelection) candidates(bucket int, space *scratch) ([]uint16, bool) {
	if len(s.turns) == 0 {
		return nil, false
	}
	space.chosen[0] = s.turns[bucket%len(s.turns)]
	return space.chosen[:1], false
}

func (s moduloSelection) reserves(int, *idSet, *scratch) bool { return false }
func (s moduloSelection) holding(uint16, *scratch) []int32    { return nil }
func (s moduloSelection) reserve(int, *Chain, transition)     {}
