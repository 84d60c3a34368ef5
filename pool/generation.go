package pool

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sextant/consistent"
)

// Spec is what stays the same over all generations of a service.
type Spec struct {
	Buckets    int
	Seed       uint64 // selects one of many equally good ways to spread buckets over backends; edges that should agree share it
	Policy     Policy
	Method     Method
	Candidates int           // of a new connection, with policy Offer; the others have one
	Depth      int           // of a chain, at most, with policy Offer; 0: MaxChain
	Drain      time.Duration // how long a past owner stays in a bucket's chain; 0: until its place is needed
}

// normal returns the spec with its defaults, or says what is wrong with it.
func (s Spec) normal() (Spec, error) {
	if s.Policy != Offer {
		s.Candidates, s.Depth = 1, 1
	}
	if s.Depth == 0 {
		s.Depth = MaxChain
	}
	switch {
	case s.Buckets < 1 || s.Buckets > consistent.MaxSlots:
		return s, fmt.Errorf("pool of %d buckets; choose 1 to %d", s.Buckets, consistent.MaxSlots)
	case s.Candidates < 1 || s.Candidates > MaxChain:
		return s, fmt.Errorf("pool: %d candidates per bucket; choose 1 to %d", s.Candidates, MaxChain)
	case s.Depth < s.Candidates || s.Depth > MaxChain:
		return s, fmt.Errorf("pool: chains of %d backends for %d candidates; choose %d to %d",
			s.Depth, s.Candidates, s.Candidates, MaxChain)
	case s.Drain < 0:
		return s, fmt.Errorf("pool: negative drain time %v; choose 0 or more", s.Drain)
	case s.Policy == Offer && s.Method == Modulo:
		return s, errors.New("pool: policy offer with table modulo, which moves all buckets at each change; choose rendezvous or exact")
	}
	return s, nil
}

// Generation holds the chains of all buckets at one time. It never changes.
type Generation struct {
	spec      Spec
	selection selection
	backends  []Backend // by ascending id
	alive     idSet     // backends that a chain may name
	chains    []Chain
	pasts     []past
	next      uint32 // when the past owner that left first has been gone for the drain time; 0: nobody has
}

// New makes the first generation: chains without a past. Now is any clock that never goes back, the same for all generations.
func New(spec Spec, backends []Backend, now time.Duration) (*Generation, error) {
	spec, err := spec.normal()
	if err != nil {
		return nil, err
	}
	return resume(spec, make([]Chain, spec.Buckets), backends, now)
}

// Resume makes the generation that follows chains which another process left, in a map of the kernel for example, when nothing else
// of it is known: as Next does, it keeps the owners of the buckets where it can, and those it can't in their past. When past
// owners left is not known either: the drain time begins anew.
func Resume(spec Spec, chains []Chain, backends []Backend, now time.Duration) (*Generation, error) {
	spec, err := spec.normal()
	if err != nil {
		return nil, err
	}
	if len(chains) != spec.Buckets {
		return nil, fmt.Errorf("pool of %d buckets resumes from %d chains; give it one each", spec.Buckets, len(chains))
	}
	return resume(spec, slices.Clone(chains), backends, now)
}

func resume(spec Spec, chains []Chain, backends []Backend, now time.Duration) (*Generation, error) {
	g := &Generation{spec: spec, chains: chains, pasts: make([]past, len(chains))}
	at := seconds(now)
	for i := range chains {
		if err := chains[i].check(); err != nil {
			return nil, fmt.Errorf("pool: chain of bucket %d: %w", i, err)
		}
		g.pasts[i].owners = chains[i].Length - chains[i].Candidates
		for place := range g.pasts[i].left {
			g.pasts[i].left[place] = at
		}
		for _, id := range chains[i].ids() {
			g.alive.add(id)
		}
	}
	var err error
	if g.selection, err = newSelection(spec, chains); err != nil {
		return nil, fmt.Errorf("pool of %d buckets: %w", len(chains), err)
	}
	if err := validate(backends); err != nil {
		return nil, err
	}
	return g.follow(sorted(backends), at, true)
}

// Next returns the generation for the backends as they are now; backends that are not listed are gone. A bucket whose
// candidates change gets the old ones into its past; backends that are down or gone leave all chains, and past owners leave
// when they have been gone for the drain time; every other chain stays as it is. Next returns g itself if nothing changes.
func (g *Generation) Next(backends []Backend, now time.Duration) (*Generation, error) {
	if err := validate(backends); err != nil {
		return nil, err
	}
	listed, at := sorted(backends), seconds(now)
	changed := !slices.Equal(listed, g.backends)
	if !changed && (g.next == 0 || at < g.next) {
		return g, nil
	}
	return g.follow(listed, at, changed)
}

// follow returns the generation for these backends, who are sorted; changed says that they differ from those of g.
func (g *Generation) follow(backends []Backend, now uint32, changed bool) (*Generation, error) {
	selection, err := g.selection.update(backends)
	if err != nil {
		return nil, fmt.Errorf("pool of %d buckets: %w", g.Buckets(), err)
	}
	next := &Generation{spec: g.spec, selection: selection, backends: backends, alive: alive(backends), chains: slices.Clone(g.chains)}
	if g.spec.Policy == Shadow {
		next.shadow()
		return next, nil
	}
	next.pasts = slices.Clone(g.pasts)
	next.advance(now, transition{
		changed: changed,
		lost:    !g.alive.within(&next.alive),
		joined:  next.alive.without(&g.alive),
	})
	return next, nil
}

// transition is what differs between a generation and the one before.
type transition struct {
	changed bool   // some backend, in some way
	lost    bool   // some that the chains name may be gone
	joined  *idSet // who was not alive before; nil: nobody
}

// advance brings the buckets, still those of the generation before, up to date.
func (g *Generation) advance(now uint32, is transition) {
	var oldest uint32
	drain := seconds(g.spec.Drain)
	if drain > 0 && now > drain {
		oldest = now - drain
	}
	var space [MaxChain]uint16
	for i := range g.chains {
		c := &g.chains[i]
		stale := false
		if oldest > 0 {
			left, ok := g.pasts[i].oldestLeft(c)
			stale = ok && left < oldest
		}
		if is.changed || stale {
			candidates := g.selection.candidates(i, &space)
			if stale || !c.offers(candidates) || g.selection.reserves(i, is.joined) || is.lost && !c.within(&g.alive) {
				*c, g.pasts[i] = succeed(c, &g.pasts[i], candidates, &g.alive, g.spec.Depth, now, oldest)
				g.selection.reserve(i, c, &g.alive, g.spec.Depth)
			}
		}
		if drain > 0 {
			g.expect(i, drain)
		}
	}
}

// shadow gives each bucket its owner. If that changes any bucket, all keep the owner of before as their shadow: it is the whole
// table of before the latest change, as a router's shadow VRF holds the whole previous route.
func (g *Generation) shadow() {
	var space [MaxChain]uint16
	before := make([]uint16, len(g.chains))
	moved := false
	for i := range g.chains {
		c := &g.chains[i]
		before[i] = c.candidate(0)
		shadow := c.Shadow
		*c = chainOf(g.selection.candidates(i, &space))
		c.Shadow = shadow
		moved = moved || c.candidate(0) != before[i]
	}
	for i := range g.chains {
		if moved {
			g.chains[i].Shadow = before[i]
		}
	}
}

// expect notes when a bucket's past must be looked at again.
func (g *Generation) expect(bucket int, drain uint32) {
	if left, ok := g.pasts[bucket].oldestLeft(&g.chains[bucket]); ok && (g.next == 0 || left+drain+1 < g.next) {
		g.next = left + drain + 1
	}
}

// NextAt is when Next is to be called again although no backend changes, on the clock of now, because a past owner's drain time
// is over then; false if nothing waits for that.
func (g *Generation) NextAt() (time.Duration, bool) {
	return time.Duration(g.next) * time.Second, g.next != 0
}

// Chain returns the chain of bucket, from 0 to Buckets()-1. Its length is 0 if there is nobody to offer a packet to.
func (g *Generation) Chain(bucket int) Chain { return g.chains[bucket] }

// Buckets returns the number of buckets.
func (g *Generation) Buckets() int { return len(g.chains) }

// seconds rounds up, so that no past owner leaves early.
func seconds(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }
