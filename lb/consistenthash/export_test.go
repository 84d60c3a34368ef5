package consistenthash

import "testing"

// Slots returns the number of slots.
func (t *Table) Slots() int { return len(t.owners) }

// EachWay runs a test in each way in which the processor can look at slots: as many at once as it
// can, with halves of numbers, and one.
func EachWay(t *testing.T, run func(t *testing.T)) {
	eight, four, words := vector, halves, vectorWords
	ways := map[string]bool{"at once": eight, "by halves": four, "one by one": true}
	for way, has := range ways {
		if !has {
			continue
		}
		t.Run(way, func(t *testing.T) {
			t.Cleanup(func() { vector, halves, vectorWords = eight, four, words })
			vector, vectorWords = eight && way == "at once", words && way == "at once"
			halves = way == "by halves"
			run(t)
		})
	}
}

// OneByOne reports whether one slot is looked at after the other.
func OneByOne() bool { return !vector && !halves }

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

// CloseRows tells the same of slots whose rows are written, of which there is a bit each: the draws
// of the members behind those in a row do not count. There are at most Depth members.
func (c *Computed) CloseRows(first int, rows *[RowSlots]Row) (alone, atOnce uint64) {
	r := c.Rows(RowPlaces, func(id uint16) uint16 { return id }, Row{})
	var space [Depth]uint16
	for i := range RowSlots {
		var draws [Depth + 1]uint64
		known := c.rankDraws(first+i, &space, &draws)
		if !clearlyApart(draws[:min(known, RowPlaces)+1]) {
			alone |= 1 << i
		}
	}
	if !vectorWords {
		return alone, r.writeNear(first, rows)
	}
	return alone, rowsVector(c.keys, c.seed, first, &r.words, &r.mask, &r.rest, rows)
}
