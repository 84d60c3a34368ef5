package consistenthash

const (
	nearSlots  = 8         // that are ordered at once
	nearPlaces = 1<<10 - 1 // bits of a word in whose place is the place of its member
)

// Near keeps the orders of the slots around the one that was asked for last. The zero value keeps
// none.
type Near struct {
	of    *Computed
	first int                          // slot
	close uint8                        // by slot, a bit each: the words do not decide
	words [Depth + 1][nearSlots]uint64 // draws or scores of the best of each slot, highest first
}

// FirstNear is First for who asks for one slot after the other, and for the best alone that there
// is space for, Depth at most: where the processor can, the orders of eight slots are computed in
// one go.
func (c *Computed) FirstNear(slot int, near *Near, space []uint16) []uint16 {
	return c.named(c.PlacesNear(slot, near, space))
}

// PlacesNear is FirstNear with the places of members, from 0 on by ascending id, for their ids.
func (c *Computed) PlacesNear(slot int, near *Near, space []uint16) []uint16 {
	if len(c.members) > nearPlaces+1 || !vector && !halves {
		return c.copied(slot, space)
	}
	lane := slot % nearSlots
	if first := slot - lane; near.of != c || near.first != first {
		near.of, near.first = c, first
		near.close = c.order(first, true, &near.words)
	}
	if near.close>>lane&1 != 0 {
		return c.copied(slot, space)
	}
	space = space[:min(len(c.members), len(space))]
	for i := range space {
		space[i] = uint16(near.words[i][lane] & nearPlaces)
	}
	return space
}

// order writes the orders of eight slots as words, and which of them the words do not decide. If
// not deep, the best RowPlaces may be all that it writes.
func (c *Computed) order(first int, deep bool, words *[Depth + 1][nearSlots]uint64) (close uint8) {
	var inverses *float64
	if !c.equal {
		inverses = &c.inverses[0]
	}
	if !vector {
		return orderHalves(c.keys, inverses, c.logs, c.seed, first, deep, words)
	}
	return orderVector(c.keys, inverses, c.logs, c.seed, first, words)
}

func (c *Computed) copied(slot int, space []uint16) []uint16 {
	var all [Depth]uint16
	return space[:copy(space, c.places(slot, &all))]
}
