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
