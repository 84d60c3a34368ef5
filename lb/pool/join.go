package pool

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
