package pool

import (
	"iter"
	"slices"
	"sync/atomic"

	"sextant/lb/consistenthash"
)

// mostComputed is below how many buckets the chains that a service begins with are not kept. To
// compute all of them again, when the service changes or all are listed, takes some 0.2 ms for ten
// backends that weigh the same, and some 5 at most (mostScores).
const mostComputed = 1 << 14

// firstChains are chains without a past where each backend may be a candidate, so that a chain is
// the begin of its bucket's order: those that a service begins with. Where orders are computed,
// these are too, each time they are read, and take no memory: most services of many never change.
type firstChains struct {
	orders            *consistenthash.Computed // nil: the chains are to be kept
	candidates, depth int
	ids               []uint16              // of the backends
	shares            atomic.Pointer[[]int] // of theirs, as [Generation.Shares]; nil: not counted
}

// firstChains returns those of a generation; nil: it begins otherwise.
func (g *Generation) firstChains() *firstChains {
	s, ranked := g.selection.(*rankedSelection)
	if !ranked || sitesOf(g.backends) != nil ||
		slices.ContainsFunc(g.backends, func(b Backend) bool { return !b.eligible() }) {
		return nil
	}
	f := &firstChains{candidates: min(s.spec.Candidates, len(g.backends)), depth: s.spec.Depth,
		ids: make([]uint16, len(g.backends))}
	if g.Buckets() < mostComputed {
		f.orders = s.computed
	}
	for i, b := range g.backends {
		f.ids[i] = b.ID
	}
	return f
}

// computedChains are the first ones, if they are computed each time they are read; else nil.
func (g *Generation) computedChains() *firstChains {
	if f := g.firstChains(); f != nil && f.orders != nil {
		return f
	}
	return nil
}

// of is the chain of a bucket whose order begins so.
func (f *firstChains) of(order []uint16) Chain {
	order = order[:min(f.depth, len(order))]
	c := Chain{Length: uint8(len(order)), Candidates: uint8(f.candidates)}
	if len(order) == MaxChain { // nearly always: it takes no call
		c.IDs = [MaxChain]uint16(order)
	} else {
		copy(c.IDs[:], order)
	}
	return c
}

func (f *firstChains) at(bucket int) Chain {
	var space [consistenthash.Depth]uint16
	return f.of(f.orders.First(bucket, &space))
}

// each yields the chains of so many buckets.
func (f *firstChains) each(buckets int, yield func(bucket int, c Chain) bool) {
	var near consistenthash.Near
	var space [MaxChain]uint16
	counting := newTally(f.ids)
	defer counting.end()
	for bucket := range buckets {
		c := f.of(f.orders.FirstNear(bucket, &near, space[:f.depth]))
		counting.add(c.IDs[0])
		if !yield(bucket, c) {
			return
		}
	}
	f.note(counting)
}

// note keeps what was counted of the first candidates of all chains.
func (f *firstChains) note(t *tally) {
	shares := t.counts[1:]
	f.shares.Store(&shares)
}

// counted returns the shares of so many buckets.
func (f *firstChains) counted(buckets int) []int {
	if f.shares.Load() == nil {
		f.each(buckets, func(int, Chain) bool { return true })
	}
	return *f.shares.Load()
}

// table keeps the chains of so many buckets.
func (f *firstChains) table(buckets int) table {
	t := newTable(buckets)
	f.each(buckets, func(bucket int, c Chain) bool {
		t.page(bucket / pageBuckets)[bucket%pageBuckets] = c
		return true
	})
	return t
}

// at returns a bucket for reading, without the order of the candidates and that of the suspects.
func (g *Generation) at(bucket int) (Chain, *past) {
	if g.first != nil {
		return g.first.at(bucket), &noPast[0]
	}
	c, p := g.buckets.at(bucket)
	return *c, p
}

// each yields the chains of all buckets, as at returns them.
func (g *Generation) each(yield func(bucket int, c Chain) bool) {
	if g.first != nil {
		g.first.each(g.Buckets(), yield)
		return
	}
	for bucket := range g.Buckets() {
		if c, _ := g.buckets.at(bucket); !yield(bucket, *c) {
			return
		}
	}
}

// Chain returns the chain of bucket, from 0 to Buckets()-1: candidates in their order, then the
// others, suspects last. Its length is 0 if there is nobody to offer a packet to. Who reads many
// takes [Generation.Chains].
func (g *Generation) Chain(bucket int) Chain {
	c, _ := g.at(bucket)
	return g.arranged(c)
}

// Chains yields all buckets and their chains, as [Generation.Chain] returns them.
func (g *Generation) Chains() iter.Seq2[int, Chain] {
	if len(g.order) == 0 && g.suspects == nil {
		return g.each
	}
	return func(yield func(bucket int, c Chain) bool) {
		g.each(func(bucket int, c Chain) bool { return yield(bucket, g.arranged(c)) })
	}
}

func (g *Generation) arranged(c Chain) Chain {
	g.order.arrange(&c)
	c.last(g.suspects)
	return c
}
