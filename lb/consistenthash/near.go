package consistenthash

const (
	nearSlots  = 8         // that are ordered at once
	nearPlaces = 1<<10 - 1 // bits of a draw in whose place is the place of its member
)

// Near keeps the orders of the slots around the one that was asked for last. The zero value keeps
// none.
type Near struct {
	of    *Computed
	first int                          // slot
	close uint8                        // by slot, a bit each: the draws do not decide
	draws [Depth + 1][nearSlots]uint64 // the best of each slot, the highest first
}

// atOnce returns the keys of the members if their draws order them, and they can be ordered in
// several slots at once; else nil.
func (c *Computed) atOnce() []uint64 {
	if !c.equal || len(c.members) > nearPlaces+1 {
		return nil
	}
	keys := make([]uint64, len(c.known))
	for i := range keys {
		keys[i] = c.known[i].key
	}
	return keys
}

// FirstNear is First for who asks for one slot after the other, and for the best alone that there
// is space for, Depth at most: where the processor can, and members weigh the same, the orders of
// eight slots are computed in one go.
func (c *Computed) FirstNear(slot int, near *Near, space []uint16) []uint16 {
	if c.keys == nil || !vector {
		return c.copied(slot, space)
	}
	lane := slot % nearSlots
	if first := slot - lane; near.of != c || near.first != first {
		near.of, near.first = c, first
		near.close = orderVector(c.keys, c.seed, first, &near.draws)
	}
	if near.close>>lane&1 != 0 {
		return c.copied(slot, space)
	}
	space = space[:min(len(c.members), len(space))]
	for i := range space {
		space[i] = c.members[near.draws[i][lane]&nearPlaces].ID
	}
	return space
}

func (c *Computed) copied(slot int, space []uint16) []uint16 {
	var all [Depth]uint16
	return space[:copy(space, c.First(slot, &all))]
}
