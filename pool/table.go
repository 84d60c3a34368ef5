package pool

import "slices"

// table holds the chains of all buckets, and their past, in pages. Generations share the pages that do not differ, so that a change
// costs what it changes.
type table struct {
	chains []*chainPage
	pasts  []*pastPage
	shares []uint64 // a bit per page: it is another generation's too, and must not be written; nil: none is
}

const pageBuckets = 8

type (
	chainPage [pageBuckets]Chain
	pastPage  [pageBuckets]past
)

// newTable makes a table of empty chains.
func newTable(buckets int) table {
	pages := (buckets + pageBuckets - 1) / pageBuckets
	t := table{chains: make([]*chainPage, pages), pasts: make([]*pastPage, pages)}
	chains, pasts := make([]chainPage, pages), make([]pastPage, pages)
	for i := range pages {
		t.chains[i], t.pasts[i] = &chains[i], &pasts[i]
	}
	return t
}

// copied returns a table with the same content of which nothing is shared.
func (t *table) copied() table {
	copied := newTable(len(t.chains) * pageBuckets)
	for i := range t.chains {
		*copied.chains[i], *copied.pasts[i] = *t.chains[i], *t.pasts[i]
	}
	return copied
}

// shared returns a table with the same content; what it changes it copies first.
func (t *table) shared() table {
	s := table{chains: slices.Clone(t.chains), pasts: slices.Clone(t.pasts), shares: make([]uint64, (len(t.chains)+63)/64)}
	for i := range s.shares {
		s.shares[i] = ^uint64(0)
	}
	return s
}

// at returns a bucket for reading.
func (t *table) at(bucket int) (*Chain, *past) {
	return &t.chains[bucket/pageBuckets][bucket%pageBuckets], &t.pasts[bucket/pageBuckets][bucket%pageBuckets]
}

// own returns a bucket for writing.
func (t *table) own(bucket int) (*Chain, *past) {
	page := bucket / pageBuckets
	if t.shares != nil && t.shares[page/64]&(1<<(page%64)) != 0 {
		chains, pasts := *t.chains[page], *t.pasts[page]
		t.chains[page], t.pasts[page] = &chains, &pasts
		t.shares[page/64] &^= 1 << (page % 64)
	}
	return t.at(bucket)
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
			if ids[0] == id || ids[1] == id || ids[2] == id || ids[3] == id || ids[4] == id || ids[5] == id {
				buckets = append(buckets, int32(i*pageBuckets+j))
			}
		}
	}
	return buckets
}
