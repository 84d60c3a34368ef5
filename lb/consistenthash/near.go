package consistenthash

// nearSlots is how many slots are ordered at once.
const nearSlots = 8

// Near keeps the orders of the slots around the one that was asked for last. The zero value keeps
// none.
type Near struct {
	of    *Computed
	first int   // slot
	close uint8 // by slot, a bit each: the draws do not decide
	// by slot, four ids in each number, the best in its last bits
	ids [Depth / 4][nearSlots]uint64
}

// handful are up to Depth members of equal weight, by their places.
type handful struct {
	keys [Depth]uint64
	ids  [16]uint64
}

// atOnce returns the members if their draws order them, and they can be ordered at once; else nil.
func (c *Computed) atOnce() *handful {
	if !c.equal || len(c.members) == 0 || len(c.members) > Depth {
		return nil
	}
	few := new(handful)
	for i, m := range c.members {
		few.keys[i], few.ids[i] = c.known[i].key, uint64(m.ID)
	}
	return few
}

// FirstNear is First for who asks for one slot after the other: where the processor can, and there
// are few members of equal weight, the orders of eight slots are computed in one go.
func (c *Computed) FirstNear(slot int, near *Near, space *[Depth]uint16) []uint16 {
	if c.few == nil || !vector {
		return c.First(slot, space)
	}
	lane := slot % nearSlots
	if first := slot - lane; near.of != c || near.first != first {
		near.of, near.first = c, first
		near.close = orderVector(c.few, c.seed, len(c.members), first, &near.ids)
	}
	if near.close>>lane&1 != 0 {
		return c.byScore(slot, space)
	}
	for i := range near.ids {
		four := near.ids[i][lane]
		space[4*i], space[4*i+1] = uint16(four), uint16(four>>16)
		space[4*i+2], space[4*i+3] = uint16(four>>32), uint16(four>>48)
	}
	return space[:len(c.members)]
}
