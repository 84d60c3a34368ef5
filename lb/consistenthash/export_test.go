package consistenthash

// Slots returns the number of slots.
func (t *Table) Slots() int { return len(t.owners) }

// Plainly runs a function as on a processor that compares one slot at a time.
func Plainly(run func()) {
	before, words := vector, vectorWords
	vector, vectorWords = false, false
	defer func() { vector, vectorWords = before, words }()
	run()
}

// Sought is in how many slots a closer look is needed for a member.
func (r *Ranking) Sought(id uint16) int {
	var hits [scanSlots]int32
	n := 0
	for first := 0; first < len(r.reach); first += scanSlots {
		n += r.scorer.sought(id).scan(first, r.reach[first:min(first+scanSlots, len(r.reach))],
			&hits)
	}
	return n
}

// Close reports whether a slot's draws are too close to decide, as one slot at a time and as eight
// are looked at.
func (c *Computed) Close(slot int, near *Near) (alone, atOnce bool) {
	var space [Depth]uint16
	_, apart := c.byDraw(slot, &space)
	c.FirstNear(slot, near, space[:])
	return !apart, near.close>>(slot%nearSlots)&1 != 0
}

// CloseRows tells the same of slots whose rows are written, of which there is a bit each: the draws
// of the members behind those in a row do not count. There are at most Depth members.
func (c *Computed) CloseRows(first int, rows *[RowSlots]Row) (alone, atOnce uint64) {
	r := c.Rows(RowPlaces, func(id uint16) uint16 { return id }, Row{})
	var space [Depth]uint16
	for i := range RowSlots {
		var draws [Depth + 1]uint64
		known := c.rankDraws(first+i, &space, &draws)
		if !clearlyApart(draws[:min(known, RowPlaces)+1]) {
			alone |= 1 << i
		}
	}
	return alone, rowsVector(c.keys, c.seed, first, &r.words, &r.mask, &r.rest, rows)
}

// VectorRows reports whether it writes rows of eight slots at once.
func VectorRows() bool { return vectorWords }

// Vector reports whether the processor orders eight slots at once.
func Vector() bool { return vector }
