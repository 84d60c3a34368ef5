package pool

import "slices"

// Join is the chain of a flow that is in one bucket now and was in another one before, by another
// secret or in a table of another size: the candidates of now, to whom alone new connections go,
// then the former candidates, then the others of both, as far as there is room.
func Join(now, before Chain) Chain {
	c := chainOf(now.IDs[:now.Candidates])
	c.Shadow = now.Shadow
	for _, ids := range [][]uint16{
		before.IDs[:before.Candidates],
		now.IDs[now.Candidates:now.Length], before.IDs[before.Candidates:before.Length],
	} {
		for _, id := range ids {
			c.push(id, MaxChain)
		}
	}
	return c
}

// Beside are chains as far as each flow meets them while [Join] adds former chains that have so
// many candidates: previous owners have fewer places.
func Beside(chains []Chain, candidates int) []Chain {
	beside := slices.Clone(chains)
	for i := range beside {
		c := &beside[i]
		c.Length = min(c.Length, max(c.Candidates, uint8(max(MaxChain-candidates, 0))))
		clear(c.IDs[c.Length:])
	}
	return beside
}
