package consistenthash

// Slots returns the number of slots.
func (t *Table) Slots() int { return len(t.owners) }

// Plainly runs a function as on a processor that compares one slot at a time.
func Plainly(run func()) {
	before := vector
	vector = false
	defer func() { vector = before }()
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

// Vector reports whether the processor orders eight slots at once.
func Vector() bool { return vector }
