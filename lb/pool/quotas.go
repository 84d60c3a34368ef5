package pool

import (
	"slices"

	"sextant/lb/consistenthash"
)

// quotaSelection gives each backend its exact share (Method Exact). There is one consistent table
// per place in the chain, each with a seed of its own, so the second candidates of one backend's
// buckets are spread over all others, and a backend that fails hands its load to all others too.
// The first table alone decides the first candidate; shares of new connections are therefore exact.
//
// A later table names a backend that is in the chain already in about one of n buckets. Then the
// spare table is probed until it names another one.
type quotaSelection struct {
	tables   []*consistenthash.Table // one per place
	spare    *consistenthash.Table
	eligible []consistenthash.Member // who may be a candidate, by ascending id
	// candidates per chain: as asked for, or fewer if there are not as many backends
	places int
}

// spareSlots is the size of the spare table. It need not have a slot per bucket, since a probe may
// hit any of them. The rounding of its quotas shifts the choice by at most one in spareSlots of the
// buckets: with n backends, one bucket in n asks it, and its shares are off by at most n /
// spareSlots.
const spareSlots = 4096

// maxProbes bounds the search in the spare table. One probe fails with a probability of 5/6 at
// worst (see spareMembers) and of about (candidates-1)/backends as a rule.
const maxProbes = 32

// seedStep keeps the tables' seeds apart; it is odd and has no short period.
const seedStep = 0xd1342543de82ef95

// resumeQuotas makes the tables as the candidates of the chains say. The spare table has no members
// yet.
func resumeQuotas(chains []Chain, spec Spec) (selection, error) {
	candidates, seed := spec.Candidates, spec.Seed
	s := quotaSelection{tables: make([]*consistenthash.Table, candidates)}
	owners := make([]uint16, spec.Buckets)
	var err error
	for place := range s.tables {
		for bucket := range chains {
			owners[bucket] = chains[bucket].candidate(place)
		}
		if s.tables[place], err = consistenthash.Resume(owners,
			seed+uint64(place)*seedStep); err != nil {
			return nil, err
		}
	}
	s.spare, err = consistenthash.Build(spareSlots, seed+uint64(candidates)*seedStep, nil)
	return &s, err
}

// update leaves all tables as they are if the same backends may be candidates.
func (s *quotaSelection) update(_, backends []Backend) (selection, []int32, error) {
	eligible := eligible(backends)
	if s.places > 0 && slices.Equal(eligible, s.eligible) {
		return s, []int32{}, nil
	}
	next := &quotaSelection{tables: make([]*consistenthash.Table, len(s.tables)),
		eligible: eligible}
	next.places = min(len(next.tables), len(eligible))
	changed := []int32{}
	for i, table := range s.tables {
		following, moved, err := table.Update(eligible)
		if err != nil {
			return nil, nil, err
		}
		next.tables[i], changed = following, append(changed, moved...)
	}
	if next.places != s.places {
		changed = nil
	}
	var err error
	next.spare, _, err = s.spare.Update(spareMembers(eligible, next.places))
	return next, changed, err
}

// candidates writes the candidates of bucket to space, and returns them. Those for which the spare
// table was asked depend on any backend.
func (s *quotaSelection) candidates(bucket int, space *scratch) (chosen []uint16, spared bool) {
	chosen = space.chosen[:0]
	for place := range s.places {
		id := s.tables[place].Owner(bucket)
		if place > 0 && slices.Contains(chosen, id) {
			id, spared = s.another(bucket, chosen), true
		}
		chosen = append(chosen, id)
	}
	return chosen, spared
}

// A table that knows the past needs nobody in reserve.
func (s *quotaSelection) reserves(int, *idSet, *scratch) bool { return false }
func (s *quotaSelection) holding(uint16, *scratch) []int32    { return nil }
func (s *quotaSelection) reserve(int, *Chain, transition)     {}

// another returns a candidate for bucket that is not among those chosen. If the spare table names
// none in time (a backend with a tiny weight may own no slot in a small table), the next free one
// in a circle over all of them is taken.
func (s *quotaSelection) another(bucket int, chosen []uint16) uint16 {
	for attempt := range maxProbes {
		if id := s.spare.Probe(bucket, attempt); !slices.Contains(chosen, id) {
			return id
		}
	}
	// It ends: places, and so the chosen and one more, are at most as many as the eligible.
	for i := bucket; ; i++ {
		if id := s.eligible[i%len(s.eligible)].ID; !slices.Contains(chosen, id) {
			return id
		}
	}
}

// spareMembers returns the members with the weights that the spare table uses. They are capped, so
// that the backends chosen already, at most taken = places-1 of them, can't own nearly all of that
// table: if one backend has 99 % of the weight, it is chosen first nearly always, and the second
// place must be found among the others, by their weights.
//
// Let w be the weight after the taken heaviest, and rest the sum of it and all that follow. With a
// cap of max(w, rest/taken) the taken ones together weigh at most taken * cap, and a probe finds
// another one with a probability of at least rest / (rest + taken * cap), which is 1/2, or
// 1/(taken+1) where few backends are left.
func spareMembers(members []consistenthash.Member, places int) []consistenthash.Member {
	taken := places - 1
	if taken < 1 {
		return members
	}
	weights := make([]uint32, len(members))
	for i, m := range members {
		weights[i] = m.Weight
	}
	slices.Sort(weights)
	slices.Reverse(weights)
	rest := uint64(0)
	for _, w := range weights[taken:] {
		rest += uint64(w)
	}
	limit := max(uint64(weights[taken]), rest/uint64(taken))
	capped := slices.Clone(members)
	for i := range capped {
		capped[i].Weight = uint32(min(uint64(capped[i].Weight), limit))
	}
	return capped
}
