package consistenthash

import "slices"

// Depth is how many members of a slot's order are known at most without looking at all.
const Depth = rankingDepth

// Computed is a Ranking that keeps nothing: each order is computed when it is asked for. With few
// members that takes less time than a Ranking saves, and no memory. Its slots are below LargeTable.
type Computed struct {
	seed     uint64
	members  []Member  // of positive weight, by ascending id
	keys     []uint64  // of the members, as in scored
	inverses []float64 // likewise
	equal    bool      // all weigh the same
	logs     *[1<<logBits + 1]uint32
}

// Compute makes the orders of the members. Members of weight 0 are left out.
func Compute(seed uint64, members []Member) (*Computed, error) {
	sorted, err := normalize(members)
	if err != nil {
		return nil, err
	}
	c := &Computed{seed: mix(seed), members: sorted, keys: make([]uint64, len(sorted)),
		inverses: make([]float64, len(sorted)), logs: logTable()}
	for i, m := range sorted {
		s := m.scored()
		c.keys[i], c.inverses[i] = s.key, s.inverse
	}
	c.equal = !slices.ContainsFunc(sorted,
		func(m Member) bool { return m.Weight != sorted[0].Weight })
	return c, nil
}

// Same reports whether both are of the same members and seed, and so have the same orders.
func (c *Computed) Same(other *Computed) bool {
	return c.seed == other.seed && slices.Equal(c.members, other.members)
}

// First writes the best members of a slot to space, best first, and returns them: all, or Depth.
func (c *Computed) First(slot int, space *[Depth]uint16) []uint16 {
	return c.named(c.places(slot, space))
}

// named are the members at some places, by id, instead of these.
func (c *Computed) named(places []uint16) []uint16 {
	for i, place := range places {
		places[i] = c.members[place].ID
	}
	return places
}

// places is First with the places of members, which are in the order of their ids.
func (c *Computed) places(slot int, space *[Depth]uint16) []uint16 {
	if c.equal {
		if known, ok := c.byDraw(slot, space); ok {
			return space[:known]
		}
	}
	return c.byScore(slot, space)
}

// closeDraws is by which part of itself a draw must exceed another so that its score is lower for
// sure: 2^-24 of it is a difference of 5 in the logarithm's units.
const closeDraws = 24

// byDraw orders members of equal weight by their draws, without a logarithm. It is false if two of
// them are so close that rounding may decide.
func (c *Computed) byDraw(slot int, space *[Depth]uint16) (known int, ok bool) {
	var draws [Depth + 1]uint64 // the last is the best of those behind
	if len(c.keys) <= Depth {
		known = c.rankDraws(slot, space, &draws)
		return known, clearlyApart(draws[:known+1])
	}
	for i := range c.members {
		draw := drawOf(c.seed, slot, c.keys[i])
		if draw <= draws[Depth] {
			continue
		}
		at := known
		if known < Depth {
			known++
		}
		for ; at > 0 && draw > draws[at-1]; at-- {
			draws[at] = draws[at-1]
			if at < Depth {
				space[at] = space[at-1]
			}
		}
		draws[at] = draw
		if at < Depth {
			space[at] = uint16(i)
		}
	}
	return known, known == Depth && clearlyApart(draws[:known+1])
}

const (
	placeBits = 15 // of a draw that is ordered with the place of its member
	fewDraws  = 6
)

// clearlyApart reports whether draws, the highest first, are not so close that rounding may decide,
// or what is in place of their last bits.
func clearlyApart(draws []uint64) bool {
	for i := range len(draws) - 1 {
		if draws[i]-draws[i+1] <= draws[i]>>closeDraws+placeBits+1 {
			return false
		}
	}
	return true
}

// rankDraws orders all members, of whom there are few. In place of its last bits a draw has the
// place of its member: those that differ by less are as good as equal.
func (c *Computed) rankDraws(slot int, space *[Depth]uint16, draws *[Depth + 1]uint64) int {
	ordered := (*[Depth]uint64)(draws[:])
	for i := range c.keys {
		ordered[i] = drawOf(c.seed, slot, c.keys[i])&^placeBits | uint64(i)
	}
	if len(c.keys) <= fewDraws {
		sortSix(ordered)
	} else {
		sortTwelve(ordered)
	}
	for i := range c.keys {
		space[i] = uint16(ordered[i] & placeBits)
	}
	return len(c.keys)
}

func (c *Computed) byScore(slot int, space *[Depth]uint16) []uint16 {
	var best [Depth]standing
	known := 0
	for i := range c.members {
		here := c.standing(slot, i)
		here.id = uint16(i)
		if known == Depth && !here.before(best[Depth-1]) {
			continue
		}
		known = min(known+1, Depth)
		at := known - 1
		for ; at > 0 && here.before(best[at-1]); at-- {
			best[at], space[at] = best[at-1], space[at-1]
		}
		best[at], space[at] = here, here.id
	}
	return space[:known]
}

// InOrder returns some members in the slot's order.
func (c *Computed) InOrder(slot int, ids []uint16) []uint16 {
	some := make([]standing, len(ids))
	for i, id := range ids {
		member, _ := slices.BinarySearchFunc(c.members, id,
			func(m Member, id uint16) int { return int(m.ID) - int(id) })
		some[i] = c.standing(slot, member)
	}
	return inOrder(some)
}

// All returns all members in the slot's order.
func (c *Computed) All(slot int) []uint16 {
	all := make([]standing, len(c.members))
	for i := range all {
		all[i] = c.standing(slot, i)
	}
	return inOrder(all)
}

func (c *Computed) standing(slot, member int) standing {
	m := scored{c.keys[member], c.inverses[member]}
	return m.standing(drawOf(c.seed, slot, m.key), c.logs, c.members[member].ID)
}

// inOrder returns the ids, best first.
func inOrder(all []standing) []uint16 {
	slices.SortFunc(all, func(a, b standing) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	ids := make([]uint16, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	return ids
}
