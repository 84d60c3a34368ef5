package pool

import (
	"cmp"
	"slices"

	"sextant/lb/consistenthash"
)

// selection chooses the candidates of each bucket. It never changes; update makes the one that
// follows.
type selection interface {
	// update returns the selection for the backends, and the buckets of which it may say something
	// else than for those before; nil: of any. Both are sorted by id.
	update(before, backends []Backend) (selection, []int32, error)
	// candidates writes the candidates of a bucket to space, and returns them. Scarce says that
	// they depend on backends besides those for whom holding names the bucket.
	candidates(bucket int, space *scratch) (chosen []uint16, scarce bool)
	// holding returns the buckets in which reserve may add a backend that is no candidate.
	holding(id uint16, space *scratch) []int32
	// reserves tells whether reserve may add one of these to the bucket's chain; nil stands for
	// nobody.
	reserves(bucket int, ids *idSet, space *scratch) bool
	// reserve adds to the chain who else may have connections of the bucket although no previous
	// owner is known.
	reserve(bucket int, c *Chain, is transition)
}

// scratch is what choosing the candidates of one bucket after the other takes.
type scratch struct {
	chosen   [MaxChain]uint16
	eligible idSet // who may be a candidate now
	count    int   // of these
	bucket   int   // whose order was computed last; -1: none
	near     consistenthash.Near
	order    [consistenthash.Depth]uint16
	known    int    // of order
	sites    *sites // nil: all are in one
}

func newScratch(backends []Backend) *scratch {
	s := &scratch{bucket: -1, sites: sitesOf(backends)}
	for _, b := range backends {
		if b.eligible() {
			s.eligible.add(b.ID)
			s.count++
		}
	}
	return s
}

// newSelection makes the selection that chose the candidates of the chains, as far as that can be
// told from them.
func newSelection(spec Spec, chains []Chain) (selection, error) {
	switch spec.Method {
	case Exact:
		return resumeQuotas(chains, spec)
	case Modulo:
		return moduloSelection{}, nil
	}
	return newRanked(spec, nil)
}

// eligible returns who may be a candidate; backends are sorted by id.
func eligible(backends []Backend) []consistenthash.Member {
	members := make([]consistenthash.Member, 0, len(backends))
	for _, b := range backends {
		if b.eligible() {
			members = append(members, b.member())
		}
	}
	return members
}

// eligible says whether the backend may be a candidate.
func (b Backend) eligible() bool { return b.State == Up && b.Weight > 0 }

// member is the backend as an owner of buckets.
func (b Backend) member() consistenthash.Member {
	return consistenthash.Member{ID: b.ID, Weight: b.Weight, Key: b.Key}
}

// alive returns the backends that a chain may name.
func alive(backends []Backend) *idSet {
	ids := new(idSet)
	for _, b := range backends {
		if b.State != Down {
			ids.add(b.ID)
		}
	}
	return ids
}

func sorted(backends []Backend) []Backend {
	list := slices.Clone(backends)
	slices.SortFunc(list, func(a, b Backend) int { return cmp.Compare(a.ID, b.ID) })
	return list
}
