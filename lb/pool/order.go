package pool

import (
	"cmp"
	"maps"
	"slices"
)

// Order is the rank of backends, by id, at which new connections are offered to them: of a bucket's
// current candidates those of lower ranks come first, and those of one rank as the table has them.
// Backends that are not in it have rank 0. Nothing else depends on it: who is in a chain, and who
// is a candidate, is a function of the table, so edges with different orders find each other's
// connections.
type Order map[uint16]uint8

// Ordered returns the generation with another order, which those that follow it keep. It returns g
// itself if the order is the same.
func (g *Generation) Ordered(o Order) *Generation {
	if maps.Equal(g.order, o) || g.spec.Policy != Offer || g.spec.Method == Exact {
		return g // in an exact table the first candidate says whose slot the bucket is
	}
	next := *g
	next.order = maps.Clone(o)
	return &next
}

// arrange puts the candidates of a chain in order.
func (o Order) arrange(c *Chain) {
	if len(o) == 0 || c.Candidates < 2 {
		return
	}
	slices.SortStableFunc(c.IDs[:c.Candidates],
		func(a, b uint16) int { return cmp.Compare(o[a], o[b]) })
}

// reordered adds to a set, nil for an empty one, the ids whose ranks differ between two orders.
func reordered(ids *idSet, a, b Order) *idSet {
	for _, pair := range [][2]Order{{a, b}, {b, a}} {
		for id, rank := range pair[0] {
			if pair[1][id] != rank {
				if ids == nil {
					ids = new(idSet)
				}
				ids.add(id)
			}
		}
	}
	return ids
}
