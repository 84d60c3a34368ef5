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
// can, and there are few members, rows of eight slots follow from one look at the members; if these
// weigh the same, a processor that chooses among words writes them in one go.
type Rows struct {
	of           *Computed
	word         func(id uint16) uint16
	best         int // that are in a row
	rest         Row
	mask         Row                // of the words of the best
	words        [rowMembers]uint16 // of the members, if they are few
	near, atOnce bool
	order        Near
}

// Rows are rows with a word for each of the best members, of RowPlaces at most; all other words are
// those of the rest.
func (c *Computed) Rows(best int, word func(id uint16) uint16, rest Row) *Rows {
	few := len(c.members) <= rowMembers
	r := &Rows{of: c, word: word, best: min(best, RowPlaces, len(c.members)), rest: rest,
		near: few && (vector || halves), atOnce: few && vectorWords && c.equal}
	for i := range r.best {
		r.mask[i], r.rest[i] = 0xffff, 0
	}
	if few {
		for i, m := range c.members {
			r.words[i] = word(m.ID)
		}
	}
	return r
}

// Write writes the rows of the slots from first on, which is a multiple of eight.
func (r *Rows) Write(first int, rows *[RowSlots]Row) {
	todo := ^uint64(0) // by slot, a bit each
	switch {
	case r.atOnce:
		todo = rowsVector(r.of.keys, r.of.seed, first, &r.words, &r.mask, &r.rest, rows)
	case r.near:
		todo = r.writeNear(first, rows)
	}
	var space [RowPlaces]uint16
	for i := range rows {
		if todo>>i&1 == 0 {
			continue
		}
		rows[i] = r.rest
		for place, id := range r.of.FirstNear(first+i, &r.order, space[:r.best]) {
			rows[i][place] = r.word(id)
		}
	}
}

// writeNear writes rows, and returns those that it could not decide.
func (r *Rows) writeNear(first int, rows *[RowSlots]Row) (close uint64) {
	r.order.of = nil
	for i := range RowSlots / nearSlots {
		at := i * nearSlots
		close |= uint64(r.of.order(first+at, false, &r.order.words)) << at
		for lane := range nearSlots {
			row := &rows[at+lane]
			*row = r.rest
			for place := range r.best {
				row[place] = r.words[r.order.words[place][lane]%rowMembers]
			}
		}
	}
	return close
}
