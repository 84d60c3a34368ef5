package pool

import (
	"slices"

	"sextant/consistent"
)

// rankedSelection ranks all listed backends for each bucket (Method Rendezvous); the first that are eligible are the candidates. It
// knows who would have been a candidate if others had been up or down, so it can name in reserve who may have connections
// from before this edge was there.
type rankedSelection struct {
	ranking  *consistent.Ranking
	eligible idSet
	count    int // of the eligible
	places   int // candidates asked for
}

func (s *rankedSelection) update(backends []Backend) (selection, []int32, error) {
	next := &rankedSelection{places: s.places}
	listed := make([]consistent.Member, len(backends))
	for i, b := range backends {
		listed[i] = consistent.Member{ID: b.ID, Weight: b.Weight}
	}
	for _, m := range eligible(backends) {
		next.eligible.add(m.ID)
		next.count++
	}
	ranking, changed, err := s.ranking.Update(listed)
	if err != nil {
		return nil, nil, err
	}
	next.ranking = ranking
	came, went := next.eligible.without(&s.eligible), s.eligible.without(&next.eligible)
	if changed == nil || min(next.places, next.count) != min(s.places, s.count) || came.count()+went.count() > manyChanges {
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

func (s *rankedSelection) candidates(bucket int, space *[MaxChain]uint16) (chosen []uint16, scarce bool) {
	want := min(s.places, s.count)
	chosen = s.choose(s.ranking.First(bucket), want, space)
	if len(chosen) < want { // all that come first in this bucket are out of service
		return s.choose(s.ranking.All(bucket), want, space), true
	}
	return chosen, false
}

func (s *rankedSelection) choose(order []uint16, want int, space *[MaxChain]uint16) []uint16 {
	chosen := space[:0]
	for _, id := range order {
		if len(chosen) == want {
			break
		}
		if s.eligible.has(id) {
			chosen = append(chosen, id)
		}
	}
	return chosen
}

func (s *rankedSelection) holding(id uint16) []int32 {
	if s.eligible.has(id) {
		return nil // update has told
	}
	return s.ranking.Holding(id)
}

func (s *rankedSelection) reserves(bucket int, ids *idSet) bool {
	return ids != nil && slices.ContainsFunc(s.ranking.First(bucket), ids.has)
}

// reserve fills the chain up with the best of the bucket's order who are alive: those before the candidates have had the bucket
// while they were up, those behind while the candidates were not.
func (s *rankedSelection) reserve(bucket int, c *Chain, alive *idSet, depth int) {
	for _, id := range s.ranking.First(bucket) {
		if alive.has(id) {
			c.push(id, depth)
		}
	}
}

// moduloSelection takes the bucket modulo the number of eligible backends (Method Modulo), each as often as its weight says, as
// a router without a resilient table does.
type moduloSelection struct {
	turns []uint16
}

// maxTurns bounds the list of turns. Weights that need more are scaled down, to 1 at least.
const maxTurns = 4096

func (s moduloSelection) update(backends []Backend) (selection, []int32, error) {
	members := eligible(backends)
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
		next.turns = append(next.turns, slices.Repeat([]uint16{m.ID}, int(max(1, uint64(m.Weight)/divisor)))...)
	}
	return next, nil, nil
}

// common is the greatest common divisor of the weights, 1 without any.
func common(members []consistent.Member) uint64 {
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

func (s moduloSelection) candidates(bucket int, space *[MaxChain]uint16) ([]uint16, bool) {
	if len(s.turns) == 0 {
		return nil, false
	}
	space[0] = s.turns[bucket%len(s.turns)]
	return space[:1], false
}

func (s moduloSelection) reserves(int, *idSet) bool        { return false }
func (s moduloSelection) holding(uint16) []int32           { return nil }
func (s moduloSelection) reserve(int, *Chain, *idSet, int) {}
