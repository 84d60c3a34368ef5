package pool

import "sync"

// placeOfID is the place of an id among some, from 1 on; 0: it is none of them.
type placeOfID [1 << 16]uint16

// noPlaces are used again and again, all 0: it takes longer to clear them than to count.
var noPlaces = sync.Pool{New: func() any { return new(placeOfID) }}

// tally counts how often each of some ids, which differ, is there.
type tally struct {
	places *placeOfID
	ids    []uint16
	counts []int // in the order of the ids; the first is of all others
}

func newTally(ids []uint16) *tally {
	t := &tally{noPlaces.Get().(*placeOfID), ids, make([]int, 1+len(ids))}
	for i, id := range ids {
		t.places[id] = uint16(1 + i)
	}
	return t
}

func (t *tally) add(id uint16) { t.counts[t.places[id]]++ }

// end gives the places back.
func (t *tally) end() {
	for _, id := range t.ids {
		t.places[id] = 0
	}
	noPlaces.Put(t.places)
}

// Shares returns how many buckets have each of some backends, whose ids differ, as their first
// candidate, in the order of the ids.
func (g *Generation) Shares(ids []uint16) []int {
	counting := newTally(ids)
	defer counting.end()
	if g.first != nil {
		for i, n := range g.first.counted(g.Buckets(), g.order) {
			counting.counts[counting.places[g.first.ids[i]]] += n
		}
		return counting.counts[1:]
	}
	g.each(func(_ int, c Chain) bool {
		if c.Candidates > 0 {
			counting.add(g.order.first(c))
		}
		return true
	})
	return counting.counts[1:]
}

// first returns the candidate that comes first in the order.
func (o Order) first(c Chain) uint16 {
	if len(o) > 0 {
		o.arrange(&c)
	}
	return c.IDs[0]
}
