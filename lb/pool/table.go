package pool

import "slices"

// table holds the chains of all buckets, and their past, in pages. Generations share the pages that
// do not differ, so that a change costs what it changes. The pages of a table that was made at once
// are one piece of memory, in which the garbage collector has nothing to look at.
type table struct {
	whole  []chainPage  // all pages, in one piece; nil: they are in chains
	chains []*chainPage // nil: they are in whole
	pasts  []*pastPage  // nil: nothing is remembered of any bucket
	// a bit per page: it is another generation's too, and must not be written; nil: none is
	shares []uint64
	with   *tableName // whose pages they are; nil: nobody's
	name   *tableName
}

// tableName tells tables apart: it is the table's alone, and does not keep it.
type tableName [1]byte

const pageBuckets = 8

type (
	chainPage [pageBuckets]Chain
	pastPage  [pageBuckets]past
)

// noPast is the page of buckets that nothing is remembered of: it is never written.
var noPast = new(pastPage)

// newTable makes a table of empty chains.
func newTable(buckets int) table {
	return table{whole: make([]chainPage, (buckets+pageBuckets-1)/pageBuckets),
		name: new(tableName)}
}

// pages is how many there are.
func (t *table) pages() int { return max(len(t.whole), len(t.chains)) }

// page returns a page of chains.
func (t *table) page(i int) *chainPage {
	if t.chains == nil {
		return &t.whole[i]
	}
	return t.chains[i]
}

// past returns what is remembered of the buckets of a page.
func (t *table) past(i int) *pastPage {
	if t.pasts == nil {
		return noPast
	}
	return t.pasts[i]
}

// setPast replaces a page of what is remembered.
func (t *table) setPast(i int, page *pastPage) {
	if t.pasts == nil {
		t.pasts = slices.Repeat([]*pastPage{noPast}, t.pages())
	}
	t.pasts[i] = page
}

// copied returns a table with the same content of which nothing is shared.
func (t *table) copied() table {
	copied := newTable(t.pages() * pageBuckets)
	for i := range copied.whole {
		copied.whole[i] = *t.page(i)
		if page := t.past(i); page != noPast {
			copied.setPast(i, new(*page))
		}
	}
	return copied
}

// intern keeps pasts that are equal once: when chains are resumed nearly all are. What is shared so
// is not written any more: the next table copies it first.
func (t *table) intern() {
	known := map[pastPage]*pastPage{}
	for i, page := range t.pasts {
		if page == noPast {
			continue
		}
		if same := known[*page]; same != nil {
			t.pasts[i] = same
		} else {
			known[*page] = page
		}
	}
}

// shared returns a table with the same content; what it changes it copies first.
func (t *table) shared() table {
	s := table{chains: make([]*chainPage, t.pages()), pasts: slices.Clone(t.pasts),
		shares: make([]uint64, (t.pages()+63)/64), with: t.name, name: new(tableName)}
	for i := range s.chains {
		s.chains[i] = t.page(i)
	}
	for i := range s.shares {
		s.shares[i] = ^uint64(0)
	}
	return s
}

// at returns a bucket for reading.
func (t *table) at(bucket int) (*Chain, *past) {
	page, place := bucket/pageBuckets, bucket%pageBuckets
	return &t.page(page)[place], &t.past(page)[place]
}

// set writes a bucket.
func (t *table) set(bucket int, c Chain, p past) {
	page, place := bucket/pageBuckets, bucket%pageBuckets
	if t.shares != nil && t.shares[page/64]&(1<<(page%64)) != 0 {
		t.chains[page] = new(*t.chains[page])
		if before := t.past(page); before != noPast {
			t.pasts[page] = new(*before)
		}
		t.shares[page/64] &^= 1 << (page % 64)
	}
	t.page(page)[place] = c
	if t.past(page) == noPast {
		if p == (past{}) {
			return
		}
		t.setPast(page, new(pastPage))
	}
	t.pasts[page][place] = p
}

// differing yields the buckets whose chains differ from those of a table of as many.
func (t *table) differing(other *table, yield func(first, last int) bool) {
	child := t.with != nil && t.with == other.name
	for i := 0; i < t.pages(); i++ {
		if child && i%64 == 0 && t.shares[i/64] == ^uint64(0) {
			i += 63
			continue
		}
		page, was := t.page(i), other.page(i)
		if page == was {
			continue
		}
		for j := range page {
			if b := i*pageBuckets + j; page[j] != was[j] && !yield(b, b+1) {
				return
			}
		}
	}
}

// names reports whether a chain of the page names one of the ids; nil stands for none.
func (page *chainPage) names(ids *idSet) bool {
	return ids != nil && slices.ContainsFunc(page[:], func(c Chain) bool { return c.names(ids) })
}

// naming adds the buckets whose chains name an id.
func (t *table) naming(id uint16, buckets []int32) []int32 {
	for i := range t.pages() {
		page := t.page(i)
		for j := range page {
			ids := &page[j].IDs // 0 from the end on
			if ids[0] == id || ids[1] == id || ids[2] == id || ids[3] == id || ids[4] == id ||
				ids[5] == id {
				buckets = append(buckets, int32(i*pageBuckets+j))
			}
		}
	}
	return buckets
}
