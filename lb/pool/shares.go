package pool

import "sync"

// placeOfID is the place of an id among some, from 1 on; 0: it is none of them.
type placeOfID [1 << 16]uint16

// noPlaces are used again and again, all 0: it takes longer to clear them than to count.
var noPlaces = sync.Pool{New: func() any { return new(placeOfID) }}

// Shares returns how many buckets have each of some backends, whose ids differ, as their first
// candidate, in the order of the ids.
func (g *Generation) Shares(ids []uint16) []int {
	places := noPlaces.Get().(*placeOfID)
	for i, id := range ids {
		places[id] = uint16(1 + i)
	}
	counts := make([]int, 1+len(ids)) // the first is of all others
	g.each(func(_ int, c Chain) bool {
		if c.Candidates > 0 {
			counts[places[g.order.first(c)]]++
		}
		return true
	})
	for _, id := range ids {
		places[id] = 0
	}
	noPlaces.Put(places)
	return counts[1:]
}

// first returns the candidate that comes first in the order.
func (o Order) first(c Chain) uint16 {
	if len(o) > 0 {
		o.arrange(&c)
	}
	return c.IDs[0]
}
