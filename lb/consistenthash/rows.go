package consistenthash

const (
	// RowPlaces is for how many members a row has words.
	RowPlaces = 6
	// RowSlots is of how many slots rows are written at once.
	RowSlots   = 64
	rowMembers = 32 // up to how many a processor writes rows of several slots at once
)

// Row is what follows from the begin of a slot's order: a word for each of the best members, the
// best first, then words that are the same for all slots.
type Row [8]uint16

// Rows writes the orders of a Computed as rows, for who asks for many slots: where the processor
// can, and there are few members, which weigh the same, eight rows are written in one go.
type Rows struct {
	of     *Computed
	word   func(id uint16) uint16
	best   int // that are in a row
	rest   Row
	mask   Row                // of the words of the best
	words  [rowMembers]uint16 // of the members
	atOnce bool
	near   Near
}

// Rows are rows with a word for each of the best members, of RowPlaces at most; all other words are
// those of the rest.
func (c *Computed) Rows(best int, word func(id uint16) uint16, rest Row) *Rows {
	r := &Rows{of: c, word: word, best: min(best, RowPlaces, len(c.members)), rest: rest,
		atOnce: vectorWords && c.equal && len(c.members) <= rowMembers}
	for i := range r.best {
		r.mask[i], r.rest[i] = 0xffff, 0
	}
	if r.atOnce {
		for i, m := range c.members {
			r.words[i] = word(m.ID)
		}
	}
	return r
}

// Write writes the rows of the slots from first on, which is a multiple of eight.
func (r *Rows) Write(first int, rows *[RowSlots]Row) {
	todo := ^uint64(0) // by slot, a bit each
	if r.atOnce {
		todo = rowsVector(r.of.keys, r.of.seed, first, &r.words, &r.mask, &r.rest, rows)
	}
	var space [RowPlaces]uint16
	for i := range rows {
		if todo>>i&1 == 0 {
			continue
		}
		rows[i] = r.rest
		for place, id := range r.of.FirstNear(first+i, &r.near, space[:r.best]) {
			rows[i][place] = r.word(id)
		}
	}
}
