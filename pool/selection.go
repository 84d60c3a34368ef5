package pool

import (
	"cmp"
	"slices"

	"sextant/consistent"
)

// selection chooses the candidates of each bucket. It never changes; update makes the one that follows.
type selection interface {
	// update returns the selection for the backends, who are sorted by id, and the buckets of which it may say something else; nil: of any.
	update(backends []Backend) (selection, []int32, error)
	// candidates writes the candidates of a bucket to space, and returns them. Scarce says that they depend on backends besides those
	// for whom holding names the bucket.
	candidates(bucket int, space *[MaxChain]uint16) (chosen []uint16, scarce bool)
	// holding returns the buckets in which reserve may add a backend that is no candidate.
	holding(id uint16) []int32
	// reserves tells whether reserve may add one of these to the bucket's chain; nil stands for nobody.
	reserves(bucket int, ids *idSet) bool
	// reserve adds to the chain who else may have connections of the bucket although no past owner is known.
	reserve(bucket int, c *Chain, alive *idSet, depth int)
}

// newSelection makes the selection that chose the candidates of the chains, as far as that can be told from them.
func newSelection(spec Spec, chains []Chain) (selection, error) {
	switch spec.Method {
	case Exact:
		return resumeQuotas(chains, spec.Candidates, spec.Seed)
	case Modulo:
		return moduloSelection{}, nil
	}
	ranking, err := consistent.Rank(spec.Buckets, spec.Seed, nil)
	return &rankedSelection{ranking: ranking, places: spec.Candidates}, err
}

// eligible returns who may be a candidate; backends are sorted by id.
func eligible(backends []Backend) []consistent.Member {
	members := make([]consistent.Member, 0, len(backends))
	for _, b := range backends {
		if b.State == Up && b.Weight > 0 {
			members = append(members, consistent.Member{ID: b.ID, Weight: b.Weight})
		}
	}
	return members
}

// alive returns the backends that a chain may name.
func alive(backends []Backend) idSet {
	var ids idSet
	for _, b := range backends {
		if b.State != Down {
			ids.add(b.ID)
		}
	}
	return ids
}

func sorted(backends []Backend) []Backend {
	return slices.SortedFunc(slices.Values(backends), func(a, b Backend) int { return cmp.Compare(a.ID, b.ID) })
}
