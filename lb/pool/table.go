package pool

import "slices"

// table holds the chains of all buckets, and their past, in pages. Generations share the pages that
// do not differ, so that a change costs what it changes; and all tables share noPast.
type table struct {
	chains []*chainPage
	pasts  []*pastPage
	// a bit per page: it is another generation's too, and must not be written; nil: none is
	shares []uint64
}

const pageBuckets = 8

type (
	chainPage [pageBuckets]Chain
	pastPage  [pageBuckets]past
)

// noPast is the page of buckets that nothing is remembered of: it is never written.
var noPast = new(pastPage)

// newTable makes a table of empty chains.
func newTable(buckets int) table {
	pages := (buckets + pageBuckets - 1) / pageBuckets
	t := table{chains: make([]*chainPage, pages), pasts: make([]*pastPage, pages)}
	chains := make([]chainPage, pages)
	for i := range pages {
		t.chains[i], t.pasts[i] = &chains[i], noPast
	}
	return t
}

// copied returns a table with the same content of which nothing is shared.
func (t *table) copied() table {
	copied := newTable(len(t.chains) * pageBuckets)
	for i := range t.chains {
		*copied.chains[i] = *t.chains[i]
		if t.pasts[i] != noPast {
			page := *t.pasts[i]
			copied.pasts[i] = &page
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
	s := table{chains: slices.Clone(t.chains), pasts: slices.Clone(t.pasts),
		shares: make([]uint64, (len(t.chains)+63)/64)}
	for i := range s.shares {
		s.shares[i] = ^uint64(0)
	}
	return s
}

// at returns a bucket for reading.
func (t *table) at(bucket int) (*Chain, *past) {
	return &t.chains[bucket/pageBuckets][bucket%pageBuckets],
		&t.pasts[bucket/pageBuckets][bucket%pageBuckets]
}

// set writes a bucket.
func (t *table) set(bucket int, c Chain, p past) {
	page, place := bucket/pageBuckets, bucket%pageBuckets
	if t.shares != nil && t.shares[page/64]&(1<<(page%64)) != 0 {
		chains := *t.chains[page]
		t.chains[page] = &chains
		if t.pasts[page] != noPast {
			pasts := *t.pasts[page]
			t.pasts[page] = &pasts
		}
		t.shares[page/64] &^= 1 << (page % 64)
	}
	t.chains[page][place] = c
	if t.pasts[page] == noPast {
		if p == (past{}) {
			return
		}
		t.pasts[page] = new(pastPage)
	}
	t.pasts[page][place] = p
}

// names reports whether a chain of the page names one of the ids; nil stands for none.
func (page *chainPage) names(ids *idSet) bool {
	return ids != nil && slices.ContainsFunc(page[:], func(c Chain) bool { return c.names(ids) })
}

// naming adds the buckets whose chains name an id.
func (t *table) naming(id uint16, buckets []int32) []int32 {
	for i, page := range t.chains {
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
