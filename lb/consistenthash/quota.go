package consistenthash

import (
	"cmp"
	"slices"
)

// change is how many slots one id owns before and after an update.
type change struct {
	id       uint16
	old, new int
}

// changes holds one change per id that owns or may own slots, by ascending id.
type changes []change

// plan decides how many slots each of the members will own. Members are sorted, and of positive
// weight.
//
// Each gets the floor of its exact share. The slots that are left over go, one each, to members
// whose share is not whole. Every such choice is within the quota; those that cost least moves come
// first: a member that owns more than its floor already keeps a slot that would otherwise move.
// Among equals the larger fraction wins, which is nearest to proportional, then a keyed hash, so
// that no id is favoured.
func (t *Table) plan(members []Member) changes {
	total := uint64(0)
	for _, m := range members {
		total += uint64(m.Weight)
	}
	if total == 0 {
		return merge(t.quotas, []quota{{id: 0, slots: len(t.owners)}})
	}
	planned := make([]quota, len(members))
	fractions := make([]uint64, len(members))
	left := len(t.owners)
	for i, m := range members {
		share := uint64(len(t.owners)) * uint64(m.Weight)
		planned[i] = quota{id: m.ID, slots: int(share / total)}
		fractions[i] = share % total
		left -= planned[i].slots
	}
	result := merge(t.quotas, planned)
	keepers, others := t.applicants(result, members, fractions)
	result.roundUp(keepers, min(left, len(keepers)))
	result.roundUp(others, left-min(left, len(keepers)))
	return result
}

// applicant is a member whose share is not whole, and so may own one slot above its floor.
type applicant struct {
	change   int // index
	fraction uint64
	lot      uint64
}

// applicants returns who may own one slot above the floor, and apart who does already: that slot,
// or more, would move otherwise.
func (t *Table) applicants(planned changes, members []Member,
	fractions []uint64) (keepers, others []applicant) {
	keepers, others = make([]applicant, 0, len(members)), make([]applicant, 0, len(members))
	m := 0
	for i, c := range planned {
		if m == len(members) || c.id != members[m].ID {
			continue
		}
		a := applicant{change: i, fraction: fractions[m], lot: mix(t.seed ^ mix(uint64(c.id)))}
		switch {
		case a.fraction == 0:
		case c.old > c.new:
			keepers = append(keepers, a)
		default:
			others = append(others, a)
		}
		m++
	}
	return keepers, others
}

// roundUp gives one slot more to each of the n best applicants.
func (c changes) roundUp(applicants []applicant, n int) {
	if n > 0 && n < len(applicants) {
		slices.SortFunc(applicants, func(a, b applicant) int {
			if a.fraction != b.fraction {
				return cmp.Compare(b.fraction, a.fraction)
			}
			return cmp.Compare(a.lot, b.lot)
		})
	}
	for _, a := range applicants[:n] {
		c[a.change].new++
	}
}

// merge joins what each id owns with what it will own. Both are sorted by id.
func merge(old, planned []quota) changes {
	result := make(changes, 0, max(len(old), len(planned))+1)
	for len(old) > 0 || len(planned) > 0 {
		switch {
		case len(planned) == 0 || len(old) > 0 && old[0].id < planned[0].id:
			result = append(result, change{id: old[0].id, old: old[0].slots})
			old = old[1:]
		case len(old) == 0 || planned[0].id < old[0].id:
			result = append(result, change{id: planned[0].id, new: planned[0].slots})
			planned = planned[1:]
		default:
			result = append(result, change{id: old[0].id, old: old[0].slots, new: planned[0].slots})
			old, planned = old[1:], planned[1:]
		}
	}
	return result
}

// split returns who gains and who loses slots.
func (c changes) split() (gains, losses changes) {
	for _, one := range c {
		switch {
		case one.new > one.old:
			gains = append(gains, one)
		case one.new < one.old:
			losses = append(losses, one)
		}
	}
	return gains, losses
}

// quotas returns what each id owns after the changes.
func (c changes) quotas() []quota {
	result := make([]quota, 0, len(c))
	for _, one := range c {
		if one.new > 0 {
			result = append(result, quota{id: one.id, slots: one.new})
		}
	}
	return result
}
