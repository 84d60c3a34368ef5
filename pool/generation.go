package pool

import (
	"fmt"
	"slices"

	"sextant/consistent"
)

// Generation holds the chains of all buckets at one time. It never changes.
type Generation struct {
	selection selection
	alive     idSet // backends that a chain may name
	chains    []Chain
}

// New makes the first generation: chains of candidates backends each, or of as many as are up, without a past. The seed
// selects one of many equally good ways to spread buckets over backends; edges that should agree share it.
func New(buckets, candidates int, seed uint64, backends []Backend) (*Generation, error) {
	if buckets < 1 || buckets > consistent.MaxSlots {
		return nil, fmt.Errorf("pool of %d buckets; choose 1 to %d", buckets, consistent.MaxSlots)
	}
	return Resume(make([]Chain, buckets), candidates, seed, backends)
}

// Resume makes the generation that follows chains which another process left, in a map of the kernel for example, when nothing else
// of it is known: as Next does, it keeps the owners of the buckets where it can, and those it can't in their past. With the
// backends, candidates and seed that the chains were made for, first candidates stay as they are; later ones change in the
// few buckets where backends had come up twice.
func Resume(chains []Chain, candidates int, seed uint64, backends []Backend) (*Generation, error) {
	if candidates < 1 || candidates > MaxChain {
		return nil, fmt.Errorf("pool: %d candidates per bucket; choose 1 to %d", candidates, MaxChain)
	}
	g := &Generation{chains: chains}
	for bucket := range chains {
		if err := chains[bucket].check(); err != nil {
			return nil, fmt.Errorf("pool: chain of bucket %d: %w", bucket, err)
		}
		for _, id := range chains[bucket].ids() {
			g.alive.add(id)
		}
	}
	var err error
	if g.selection, err = resumeSelection(chains, candidates, seed); err != nil {
		return nil, fmt.Errorf("pool of %d buckets: %w", len(chains), err)
	}
	if err := validate(backends); err != nil {
		return nil, err
	}
	return g.follow(alive(backends), eligible(backends))
}

// Next returns the generation for the backends as they are now; backends that are not listed are gone. A bucket whose
// candidates change gets the old ones into its past; backends that are down or gone leave all chains; every other chain stays as
// it is. Next returns g itself if nothing changes.
func (g *Generation) Next(backends []Backend) (*Generation, error) {
	if err := validate(backends); err != nil {
		return nil, err
	}
	alive, eligible := alive(backends), eligible(backends)
	if alive == g.alive && slices.Equal(eligible, g.selection.eligible) {
		return g, nil
	}
	return g.follow(alive, eligible)
}

// follow returns the generation in which those who are alive may be named, and those who are eligible may be candidates.
func (g *Generation) follow(alive idSet, eligible []consistent.Member) (*Generation, error) {
	selection, err := g.selection.update(eligible)
	if err != nil {
		return nil, fmt.Errorf("pool of %d buckets: %w", g.Buckets(), err)
	}
	next := &Generation{selection: selection, alive: alive, chains: slices.Clone(g.chains)}
	next.advance(!g.alive.within(&next.alive))
	return next, nil
}

// advance brings the chains, still those of the generation before, up to date. Lost says that some of the backends they name may
// be gone.
func (g *Generation) advance(lost bool) {
	var space [MaxChain]uint16
	for bucket := range g.chains {
		chain := &g.chains[bucket]
		candidates := g.selection.candidates(bucket, &space)
		if !chain.offers(candidates) || lost && !chain.within(&g.alive) {
			*chain = chain.succeed(candidates, &g.alive)
		}
	}
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

// Chain returns the chain of bucket, from 0 to Buckets()-1. Its length is 0 if there is nobody to offer a packet to.
func (g *Generation) Chain(bucket int) Chain { return g.chains[bucket] }

// Buckets returns the number of buckets.
func (g *Generation) Buckets() int { return len(g.chains) }
