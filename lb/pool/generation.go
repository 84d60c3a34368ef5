package pool

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"sextant/lb/consistenthash"
)

// Spec is what stays the same over all generations of a service.
type Spec struct {
	Buckets int
	// selects one of many equally good ways to spread buckets over backends; edges that should
	// agree share it
	Seed       uint64
	Policy     Policy
	Method     Method
	Candidates int // of a new connection, with policy Offer; the others have one
	Depth      int // of a chain, at most, with policy Offer; 0: MaxChain
	// how long a previous owner stays in a bucket's chain; 0: until its place is needed
	Drain time.Duration
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
	case s.Buckets < 1 || s.Buckets > consistenthash.MaxSlots:
		return s, fmt.Errorf("pool of %d buckets; choose 1 to %d", s.Buckets,
			consistenthash.MaxSlots)
	case s.Candidates < 1 || s.Candidates > MaxChain:
		return s, fmt.Errorf("pool: %d candidates per bucket; choose 1 to %d", s.Candidates,
			MaxChain)
	case s.Depth < s.Candidates || s.Depth > MaxChain:
		return s, fmt.Errorf("pool: chains of %d backends for %d candidates; choose %d to %d",
			s.Depth, s.Candidates, s.Candidates, MaxChain)
	case s.Drain < 0:
		return s, fmt.Errorf("pool: negative drain time %v; choose 0 or more", s.Drain)
	case s.Policy == Offer && s.Method == Modulo:
		return s, errors.New("pool: policy offer with table modulo, which moves all buckets at " +
			"each change; choose rendezvous or exact")
	}
	return s, nil
}

// Generation holds the chains of all buckets at one time. It never changes.
type Generation struct {
	spec      Spec
	selection selection
	backends  []Backend    // by ascending id
	order     Order        // of the candidates
	resumed   *idSet       // whom the chains name that it began with; nil: backends says all
	empty     bool         // no chain names a backend
	fresh     bool         // the chains are those that New makes of spec and backends
	suspects  *idSet       // of those that chains may name, the ones that may be dead; nil: none
	first     *firstChains // nil: the chains are in buckets
	buckets   table
	// buckets that any change may change: they look beyond the best of their order, or a candidate
	// waits
	watched []int32
	// when a member has been gone for the drain time, or a candidate has waited long enough; 0:
	// never
	next uint32
}

// New makes the first generation: chains without a past. Now is any clock that never goes back, the
// same for all generations.
func New(spec Spec, backends []Backend, now time.Duration) (*Generation, error) {
	spec, err := spec.normal()
	if err != nil {
		return nil, err
	}
	return resume(spec, nil, backends, now)
}

// Resume makes the generation that follows chains which another process left, in a map of the
// kernel for example, when nothing else of it is known: as Next does, it keeps the owners of the
// buckets where it can, and those it can't in their past. When previous owners left is not known
// either: the drain time starts again.
func Resume(spec Spec, chains []Chain, backends []Backend, now time.Duration) (*Generation, error) {
	spec, err := spec.normal()
	if err != nil {
		return nil, err
	}
	if len(chains) != spec.Buckets {
		return nil, fmt.Errorf("pool of %d buckets resumes from %d chains; give it one each",
			spec.Buckets, len(chains))
	}
	return resume(spec, chains, backends, now)
}

func resume(spec Spec, chains []Chain, backends []Backend, now time.Duration) (*Generation, error) {
	g := &Generation{spec: spec, empty: chains == nil}
	if !g.empty {
		g.resumed, g.buckets = new(idSet), newTable(spec.Buckets)
	}
	at := seconds(now)
	for i := range chains {
		c := chains[i]
		if err := c.check(); err != nil {
			return nil, fmt.Errorf("pool: chain of bucket %d: %w", i, err)
		}
		var p past
		if p.owners = c.Length - c.Candidates; p.owners > 0 {
			for place := range p.left {
				p.left[place] = at
			}
		}
		g.buckets.set(i, c, p)
		for _, id := range c.ids() {
			g.resumed.add(id)
		}
	}
	var err error
	if g.selection, err = newSelection(spec, chains); err != nil {
		return nil, fmt.Errorf("pool of %d buckets: %w", spec.Buckets, err)
	}
	if err := validate(backends); err != nil {
		return nil, err
	}
	next, err := g.follow(sorted(backends), at, true)
	if err == nil && !g.empty {
		next.buckets.intern()
	}
	return next, err
}

// alive returns whom the chains of g may name.
func (g *Generation) alive() *idSet {
	if g.resumed != nil {
		return g.resumed
	}
	return alive(g.backends)
}

// successor returns the table from which that of the next generation is made bucket by bucket.
func (g *Generation) successor() table {
	switch {
	case g.empty:
		return newTable(g.Buckets())
	case g.resumed != nil: // nobody has g, which was only made to be followed
		return g.buckets
	case g.first != nil:
		return g.first.table(g.Buckets())
	}
	return g.buckets.copied()
}

// shared is successor for a generation that has most of the table in common.
func (g *Generation) shared() table {
	if g.empty || g.first != nil {
		return g.successor()
	}
	return g.buckets.shared()
}

// Next returns the generation for the backends as they are now; backends that are not listed are
// gone. A bucket whose candidates change gets the old ones into its past; backends that are down or
// gone leave all chains, and previous owners leave when they have been gone for the drain time;
// with who comes, goes or changes its weight, those change places, too, who may have connections
// from before this edge was there; every other chain stays as it is. Next returns g itself if
// nothing changes.
//
// With table Rendezvous a chain that is full of those who had the bucket within the drain time, or
// a minute if there is none, takes nobody else: a new candidate waits, and those of them that are
// up get new connections until a place is free; if none is, the last ones go on, even if they
// drain. So a backend that withdraws cuts no connection, however many do.
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

// follow returns the generation for these backends, who are sorted; changed says that they differ
// from those of g.
func (g *Generation) follow(backends []Backend, now uint32, changed bool) (*Generation, error) {
	selection, buckets, err := g.selection.update(g.backends, backends)
	if err != nil {
		return nil, fmt.Errorf("pool of %d buckets: %w", g.Buckets(), err)
	}
	next := &Generation{
		spec: g.spec, selection: selection, backends: backends, suspects: suspects(backends),
		order: g.order,
	}
	if g.spec.Policy == Shadow {
		next.buckets = g.successor()
		next.shadow()
		return next, nil
	}
	if g.empty {
		if next.first = next.computedChains(); next.first != nil {
			next.fresh = true
			return next, nil
		}
	}
	before, after := g.alive(), alive(backends)
	is := transition{
		changed: changed, alive: after, lost: before.without(after), joined: after.without(before),
		up: up(backends), suspects: next.suspects, space: newScratch(backends),
		reranked: reranked(g.backends, backends),
	}
	is.times(g, now)
	if buckets, some := g.affected(selection, buckets, is); some {
		next.next = g.next
		if len(buckets) == 0 && g.first != nil {
			next.first = g.first
			return next, nil
		}
		next.buckets = g.shared()
		for _, bucket := range buckets {
			next.advance(int(bucket), is)
		}
		return next, nil
	}
	if g.empty {
		next.begin(is)
		next.fresh = true
		return next, nil
	}
	next.buckets = g.successor()
	for bucket := range g.Buckets() {
		next.advance(bucket, is)
	}
	if !changed { // who was not looked at is watched as before
		next.watched = slices.Compact(slices.Sorted(slices.Values(append(next.watched,
			g.watched...))))
	}
	return next, nil
}

// transition is what differs between a generation and the one before.
type transition struct {
	changed  bool   // some backend, in some way
	reranked bool   // some backend came, went or has another weight: orders differ
	alive    *idSet // whom chains may name
	up       *idSet // who may get new connections
	suspects *idSet // who may be dead; nil: nobody
	lost     *idSet // who was alive before; nil: nobody
	joined   *idSet // who was not alive before; nil: nobody
	now      uint32
	drain    uint32 // how long a previous owner stays; 0: until its place is needed
	wait     uint32 // how long a candidate waits for a place at most
	oldest   uint32 // who left before has left the chain; 0: nobody has
	admits   bool   // candidates may have to wait
	space    *scratch
}

func (is *transition) times(g *Generation, now uint32) {
	is.now, is.drain, is.wait, is.admits = now, seconds(g.spec.Drain), seconds(patience), g.admits()
	if is.drain > 0 {
		is.oldest, is.wait = now-min(now, is.drain), is.drain
	}
}

// begin gives all buckets, whose chains name no backend yet, their first ones: what advance would
// come to.
func (g *Generation) begin(is transition) {
	g.buckets = newTable(g.Buckets())
	if first := g.firstChains(); first != nil {
		ranked := g.selection.(*rankedSelection)
		for bucket := range g.Buckets() {
			g.buckets.page(bucket / pageBuckets)[bucket%pageBuckets] =
				first.of(ranked.first(bucket, is.space))
		}
		return
	}
	for bucket := range g.Buckets() {
		candidates, scarce := g.selection.candidates(bucket, is.space)
		chain := chainOf(candidates)
		g.selection.reserve(bucket, &chain, is)
		g.buckets.page(bucket / pageBuckets)[bucket%pageBuckets] = chain
		if scarce {
			g.watched = append(g.watched, int32(bucket))
		}
	}
}

// advance brings a bucket, still that of the generation before, up to date.
func (g *Generation) advance(bucket int, is transition) {
	c, p := g.buckets.at(bucket)
	stale := false
	if is.oldest > 0 {
		left, ok := p.oldestLeft(c)
		stale = ok && left < is.oldest
	}
	if is.changed || stale || p.full {
		c, p = g.renew(bucket, stale, is)
	}
	if is.drain > 0 {
		left, ok := p.oldestLeft(c)
		g.expect(left+is.drain, ok)
	} else if p.full {
		left, ok := p.firstSeen(c)
		g.expect(left+is.wait, ok)
	}
}

// renew gives a bucket its candidates.
func (g *Generation) renew(bucket int, stale bool, is transition) (*Chain, *past) {
	c, p := g.buckets.at(bucket)
	candidates, scarce := g.selection.candidates(bucket, is.space)
	waits := false
	if is.admits && !c.offers(candidates) {
		candidates, waits = admit(c, p, candidates, &is, g.spec.Depth,
			is.now-min(is.now, is.wait))
	}
	if scarce || waits {
		g.watched = append(g.watched, int32(bucket))
	}
	if stale || is.reranked || !c.offers(candidates) ||
		g.selection.reserves(bucket, is.joined, is.space) ||
		is.lost != nil && !c.within(is.alive) {
		chain, past := succeed(c, p, candidates, is.alive, g.spec.Depth, is.now, is.oldest)
		g.selection.reserve(bucket, &chain, is)
		past.full = waits
		if chain != *c || past != *p { // else the page stays common to both generations
			g.buckets.set(bucket, chain, past)
		}
	} else if p.full != waits {
		past := *p
		past.full = waits
		g.buckets.set(bucket, *c, past)
	}
	return g.buckets.at(bucket)
}

// manyChanges is for how many backends that change it is worth looking for the buckets of each.
const manyChanges = 8

// affected adds to the buckets whose candidates may differ those whose chains may for another
// reason; false: all may.
func (g *Generation) affected(s selection, buckets []int32, is transition) ([]int32, bool) {
	if buckets == nil || !is.changed || g.next != 0 && is.now >= g.next ||
		is.joined.count()+is.lost.count() > manyChanges {
		return nil, false
	}
	buckets = append(buckets, g.watched...)
	for id := range is.joined.all() {
		buckets = append(buckets, s.holding(id, is.space)...)
	}
	for id := range is.lost.all() {
		buckets = g.buckets.naming(id, buckets)
	}
	slices.Sort(buckets)
	return slices.Compact(buckets), true
}

// shadow gives each bucket its owner. If that changes any bucket, all keep the previous owner as
// their shadow: it is the whole table from before the latest change, as a router's shadow VRF holds
// the whole previous route.
func (g *Generation) shadow() {
	space := newScratch(g.backends)
	before := make([]uint16, g.Buckets())
	moved := false
	for i := range before {
		c, p := g.buckets.at(i)
		before[i] = c.candidate(0)
		candidates, _ := g.selection.candidates(i, space)
		next := chainOf(candidates)
		next.Shadow = c.Shadow
		moved = moved || next.candidate(0) != before[i]
		g.buckets.set(i, next, *p)
	}
	for i := 0; moved && i < len(before); i++ {
		c, p := g.buckets.at(i)
		next := *c
		next.Shadow = before[i]
		g.buckets.set(i, next, *p)
	}
}

// expect notes, if ok, that a bucket's past must be looked at again when a time is over.
func (g *Generation) expect(at uint32, ok bool) {
	if ok && (g.next == 0 || at+1 < g.next) {
		g.next = at + 1
	}
}

// NextAt is when Next is to be called again although no backend changes, on the clock of now,
// because a previous owner's drain time is over then, or there is room for a candidate; false if
// nothing waits for that.
func (g *Generation) NextAt() (time.Duration, bool) {
	return time.Duration(g.next) * time.Second, g.next != 0
}

// Buckets returns the number of buckets.
func (g *Generation) Buckets() int { return g.spec.Buckets }

// Differing yields ranges of buckets, from first to before last, outside of which the chains are
// those of other, a generation of as many buckets. It takes no time where generations have what did
// not change in common.
func (g *Generation) Differing(other *Generation) iter.Seq2[int, int] {
	return func(yield func(first, last int) bool) {
		if g.first != nil || other.first != nil {
			yield(0, g.Buckets())
			return
		}
		moved := reordered(differing(g.suspects, other.suspects), g.order, other.order)
		if moved == nil {
			g.buckets.differing(&other.buckets, yield)
			return
		}
		for i := range g.buckets.pages() {
			page := g.buckets.page(i)
			same := page == other.buckets.page(i) && !page.names(moved)
			if !same && !yield(i*pageBuckets, min((i+1)*pageBuckets, g.Buckets())) {
				return
			}
		}
	}
}

// seconds rounds up, so that no previous owner leaves early.
func seconds(d time.Duration) uint32 { return uint32((d + time.Second - 1) / time.Second) }
