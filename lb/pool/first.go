package pool

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"unsafe"

	"sextant/lb/consistenthash"
)

// mostComputed is below how many buckets the chains that a service begins with are not kept. To
// compute all of them again, when the service changes or all are listed, takes some 0.1 ms for ten
// backends that weigh the same, and a few at most where the processor orders eight slots at once
// (mostScores).
const mostComputed = 1 << 14

// firstChains are chains without a past where each backend may be a candidate, so that a chain is
// the begin of its bucket's order, in turn by site: those that a service begins with. Where orders
// are computed, these are too, each time they are read, and take no memory: most services of many
// never change.
type firstChains struct {
	orders            *consistenthash.Computed // nil: the chains are to be kept
	sites             *sites                   // of places of ids; nil: all are in one
	candidates, depth int
	ids               []uint16 // of the backends, ascending
	shares            atomic.Pointer[orderedShares]
}

// orderedShares are those of the backends, as [Generation.Shares], with an order.
type orderedShares struct {
	order  Order
	counts []int
}

// firstChains returns those of a generation; nil: it begins otherwise.
func (g *Generation) firstChains() *firstChains {
	s, ranked := g.selection.(*rankedSelection)
	if !ranked || slices.ContainsFunc(g.backends, func(b Backend) bool { return !b.eligible() }) {
		return nil
	}
	f := &firstChains{candidates: min(s.spec.Candidates, len(g.backends)), depth: s.spec.Depth,
		ids: make([]uint16, len(g.backends))}
	if g.Buckets() < mostComputed {
		f.orders = s.computed
	}
	places := slices.Clone(g.backends)
	for i, b := range g.backends {
		f.ids[i], places[i].ID = b.ID, uint16(i)
	}
	f.sites = sitesOf(places)
	if f.sites != nil && (f.orders == nil || len(places) > consistenthash.Depth) {
		return nil // the begin of an order need not have all sites
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
	if f.sites != nil {
		return f.inOrder(nil, sameName).at(bucket)
	}
	var space [consistenthash.Depth]uint16
	return f.of(f.orders.First(bucket, &space))
}

// It does not compile if a row is no chain; TestFirstChainsAreThoseKept compares the places.
var (
	_ [unsafe.Sizeof(consistenthash.Row{})]byte = [unsafe.Sizeof(Chain{})]byte{}
	_ [consistenthash.RowPlaces]struct{}        = [MaxChain]struct{}{}
)

// pages yields the chains of so many buckets, with other names of ids, some at a time: what was
// yielded before is lost.
func (f *firstChains) pages(
	buckets int, order Order, name func(id uint16) uint16,
) iter.Seq2[int, []Chain] {
	write := f.inOrder(order, name).write
	if f.sites == nil && len(order) == 0 {
		write = f.rows(name)
	}
	return func(yield func(first int, page []Chain) bool) {
		var page [consistenthash.RowSlots]Chain
		for first := 0; first < buckets; first += len(page) {
			write(first, &page)
			if !yield(first, page[:min(len(page), buckets-first)]) {
				return
			}
		}
	}
}

// rows writes chains that are begins of orders.
func (f *firstChains) rows(name func(id uint16) uint16) func(int, *[consistenthash.RowSlots]Chain) {
	rest := f.of(f.ids)
	rest.IDs = [MaxChain]uint16{}
	rows := f.orders.Rows(f.depth, name, *(*consistenthash.Row)(unsafe.Pointer(&rest)))
	return func(first int, page *[consistenthash.RowSlots]Chain) {
		rows.Write(first, (*[len(page)]consistenthash.Row)(unsafe.Pointer(page)))
	}
}

// firstInOrder are first chains whose members are in turn by site, and whose candidates are in
// order.
type firstInOrder struct {
	of    *firstChains
	sites *sites   // its own; nil: all are in one
	ranks []uint8  // by place; nil: no order
	names []uint16 // by place
	near  consistenthash.Near
}

func (f *firstChains) inOrder(order Order, name func(id uint16) uint16) *firstInOrder {
	w := &firstInOrder{of: f, names: f.named(name)}
	if f.sites != nil {
		w.sites = f.sites.another()
	}
	if len(order) > 0 {
		w.ranks = make([]uint8, len(f.ids))
		for place, id := range f.ids {
			w.ranks[place] = order[id]
		}
	}
	return w
}

func (w *firstInOrder) at(bucket int) Chain {
	var space [consistenthash.Depth]uint16
	places := w.of.orders.PlacesNear(bucket, &w.near, space[:])
	if w.sites != nil {
		places = w.sites.bySite(places, everyone)
	}
	c := w.of.of(places)
	if w.ranks != nil {
		slices.SortStableFunc(c.IDs[:c.Candidates],
			func(a, b uint16) int { return cmp.Compare(w.ranks[a], w.ranks[b]) })
	}
	for i, place := range c.ids() {
		c.IDs[i] = w.names[place]
	}
	return c
}

func (w *firstInOrder) write(first int, page *[consistenthash.RowSlots]Chain) {
	for i := range page {
		page[i] = w.at(first + i)
	}
}

// named are the names of the ids.
func (f *firstChains) named(name func(id uint16) uint16) []uint16 {
	named := make([]uint16, len(f.ids))
	for i, id := range f.ids {
		named[i] = name(id)
	}
	return named
}

func sameName(id uint16) uint16 { return id }

// each yields the chains of so many buckets.
func (f *firstChains) each(buckets int, order Order, yield func(bucket int, c Chain) bool) {
	for first, page := range f.pages(buckets, order, sameName) {
		for i, c := range page {
			if !yield(first+i, c) {
				return
			}
		}
	}
}

// write writes all chains, with other names of ids, and returns the shares.
func (f *firstChains) write(to []Chain, order Order, name func(id uint16) uint16) []int {
	counting := newTally(f.named(name))
	defer counting.end()
	for first, page := range f.pages(len(to), order, name) {
		copy(to[first:], page)
		for i := range page {
			counting.add(page[i].IDs[0])
		}
	}
	return f.note(order, counting)
}

// note keeps what was counted of the first candidates of all chains.
func (f *firstChains) note(order Order, t *tally) []int {
	f.shares.Store(&orderedShares{order, t.counts[1:]})
	return t.counts[1:]
}

// counted returns the shares of so many buckets.
func (f *firstChains) counted(buckets int, order Order) []int {
	if known := f.shares.Load(); known != nil && maps.Equal(known.order, order) {
		return known.counts
	}
	// What is kept meanwhile may be of another order.
	return f.write(make([]Chain, buckets), order, sameName)
}

// table keeps the chains of so many buckets.
func (f *firstChains) table(buckets int) table {
	chains := make([]Chain, buckets, WholePages(buckets))
	f.write(chains, nil, sameName)
	return tableOf(chains)
}

// WriteFirst writes all chains with other names of ids, which differ, if they are those that the
// service began with and are not kept. Else it is false, and writes nothing.
func (g *Generation) WriteFirst(to []Chain, name func(id uint16) uint16) bool {
	if g.first == nil || g.suspects != nil {
		return false
	}
	g.first.write(to[:g.Buckets()], g.order, name)
	return true
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
		g.first.each(g.Buckets(), nil, yield)
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
	if g.first != nil && g.suspects == nil {
		return func(yield func(bucket int, c Chain) bool) {
			g.first.each(g.Buckets(), g.order, yield)
		}
	}
	return func(yield func(bucket int, c Chain) bool) {
		g.each(func(bucket int, c Chain) bool { return yield(bucket, g.arranged(c)) })
	}
}

// AllChains returns the chains of all buckets, as [Generation.Chain] returns them.
func (g *Generation) AllChains() []Chain {
	chains := make([]Chain, g.Buckets())
	for bucket, c := range g.Chains() {
		chains[bucket] = c
	}
	return chains
}

func (g *Generation) arranged(c Chain) Chain {
	g.order.arrange(&c)
	c.last(g.suspects)
	return c
}
