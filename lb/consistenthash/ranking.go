package consistenthash

import (
	"slices"
	"sort"
)

// rankingDepth is how many members of each slot's order a Ranking holds ready; rankingKeep is how
// many are enough before it looks at all members again, so that a member that leaves costs
// one pass over its slots and rarely more.
const (
	rankingDepth = 12
	rankingKeep  = 8
)

// Ranking is an order of the members for each slot: weighted rendezvous hashing (Thaler and
// Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998; weights as in Schindelhauer
// and Schomaker, "Weighted Distributed Hash Tables", 2005). A member comes first in its share of
// the slots, up to chance: about 1/sqrt(slots of the member). A change moves the fewest slots
// possible. Other than a Table, a Ranking depends on its members and seed alone, not on the past:
// all nodes that know the same members have the same order. It never changes.
type Ranking struct {
	seed    uint64
	slots   int
	members []Member     // of positive weight, by ascending id
	scorer  *scorer      // of the members
	pages   []*orderPage // shared with the ranking before, where nothing differs
	reach   []uint16     // by slot: what its bound's score is at most, see reachOf
	lent    bool         // reach is the ranking's before, too
	worst   float64      // of a large table, in place of reach: no bound's score exceeds it
	index   *slotIndex
}

// orderPage holds the orders of neighbouring slots.
type orderPage [pageSlots]order

const pageSlots = 8

// order is what is known of a slot.
type order struct {
	bound standing // an unknown member stands behind this, a known one before it
	ids   [rankingDepth]uint16
	known uint8 // ids in use, best first
}

func (o *order) first() []uint16 { return o.ids[:o.known] }

// Rank makes the orders of slots slots for the members. Members of weight 0 are left out.
func Rank(slots int, seed uint64, members []Member) (*Ranking, error) {
	if err := checkSlots(slots); err != nil {
		return nil, err
	}
	sorted, err := normalize(members)
	if err != nil {
		return nil, err
	}
	r := &Ranking{seed: seed, slots: slots, members: sorted, scorer: newScorer(seed, slots, sorted)}
	all := make([]orderPage, (slots+pageSlots-1)/pageSlots)
	for i := range all {
		r.pages = append(r.pages, &all[i])
	}
	if r.scorer.prefers.large() {
		r.fillLarge()
	} else {
		r.reach = make([]uint16, len(all)*pageSlots)
		r.fillAll()
	}
	r.index = newSlotIndex(r)
	return r, nil
}

// at returns the order of a slot, for reading.
func (r *Ranking) at(slot int) *order { return &r.pages[slot/pageSlots][slot%pageSlots] }

// own returns the order of a slot for writing. Before is the ranking that r was copied from.
func (r *Ranking) own(slot int, before *Ranking) *order {
	if page := slot / pageSlots; r.pages[page] == before.pages[page] {
		copied := *before.pages[page]
		r.pages[page] = &copied
	}
	return r.at(slot)
}

// manyChanges is how many members may differ so that it is worth looking for the slots of each.
const manyChanges = 16

// Update returns the ranking of the members: the same that Rank would make, in less time if few
// members changed. It returns r itself if none did. Changed are the slots whose order may differ,
// some perhaps twice; nil if that is any.
func (r *Ranking) Update(members []Member) (next *Ranking, changed []int32, err error) {
	sorted, err := normalize(members)
	if err != nil {
		return nil, nil, err
	}
	if slices.Equal(sorted, r.members) {
		return r, []int32{}, nil
	}
	left, joined := difference(r.members, sorted)
	if len(joined) > max(len(sorted)/4, 1) { // it would be as much work
		next, err = Rank(r.slots, r.seed, sorted)
		return next, nil, err
	}
	next = &Ranking{
		seed: r.seed, slots: r.slots, members: sorted,
		scorer: newScorer(r.seed, r.slots, sorted),
		pages:  slices.Clone(r.pages), reach: r.reach, lent: true, worst: r.worst,
		index: r.index.following(joined),
	}
	defer func() { next.index.renew(next) }()
	changed = []int32{}
	many := len(left)+len(joined) > manyChanges
	switch {
	case many:
		next.removeAll(left, r)
	case len(left) == 1 && len(joined) == 1 && left[0].ID == joined[0].ID &&
		left[0].key() == joined[0].key():
		return next, next.reweigh(joined[0], left[0].Weight, r), nil
	default:
		for _, m := range left {
			changed = next.remove(m.ID, r, changed)
		}
	}
	for _, m := range joined {
		changed = next.insert(m.ID, r, changed)
	}
	if many {
		changed = nil
	}
	return next, changed, nil
}

// difference returns those in before that are not in after with the same weight and key, and those
// in after that are not in before. Both are sorted by id.
func difference(before, after []Member) (left, joined []Member) {
	for i, j := 0, 0; i < len(before) || j < len(after); {
		switch {
		case j == len(after) || i < len(before) && before[i].ID < after[j].ID:
			left = append(left, before[i])
			i++
		case i == len(before) || after[j].ID < before[i].ID:
			joined = append(joined, after[j])
			j++
		default:
			if before[i] != after[j] {
				left, joined = append(left, before[i]), append(joined, after[j])
			}
			i, j = i+1, j+1
		}
	}
	return left, joined
}

// First returns the best members of a slot, best first: all, or at least 8. The caller must not
// change the slice.
func (r *Ranking) First(slot int) []uint16 { return r.at(slot).first() }

// Has says whether there is a member of positive weight with this id.
func (r *Ranking) Has(id uint16) bool {
	_, ok := slices.BinarySearchFunc(r.members, id,
		func(m Member, id uint16) int { return int(m.ID) - int(id) })
	return ok
}

// Holding returns the slots in whose First a member is, in ascending order; nil if it is none.
func (r *Ranking) Holding(id uint16) (slots []int32) {
	if !r.Has(id) {
		return nil
	}
	if known, ok := r.index.lookUp(id); ok {
		for _, slot := range known {
			if slices.Contains(r.at(int(slot)).first(), id) {
				slots = append(slots, slot)
			}
		}
		return slots
	}
	return r.within(id)
}

// All returns all members in the slot's order. It looks at each of them: First is for every day.
func (r *Ranking) All(slot int) []uint16 {
	all := make([]standing, len(r.members))
	for i, m := range r.members {
		all[i] = r.scorer.standing(slot, m.ID)
	}
	return inOrder(all)
}

// InOrder returns some members in the slot's order.
func (r *Ranking) InOrder(slot int, ids []uint16) []uint16 {
	some := make([]standing, len(ids))
	for i, id := range ids {
		some[i] = r.scorer.standing(slot, id)
	}
	return inOrder(some)
}

// remove takes a member of the ranking before out of all slots. Slots of which too little is known
// then are filled anew.
func (r *Ranking) remove(id uint16, before *Ranking, changed []int32) []int32 {
	slots := before.Holding(id)
	for _, slot := range slots {
		r.removeFrom(int(slot), id, before)
	}
	return append(changed, slots...)
}

func (r *Ranking) removeFrom(slot int, id uint16, before *Ranking) {
	o := r.own(slot, before)
	place := slices.Index(o.first(), id)
	if place < 0 {
		return // filled anew
	}
	copy(o.ids[place:], o.ids[place+1:o.known])
	o.known--
	if o.known < rankingKeep && o.bound != everybody {
		r.fill(slot, o)
		r.index.refilled = append(r.index.refilled, int32(slot))
	}
}

// reweigh gives the only member whose weight differs its new places. One that weighs less comes in
// nowhere, so the slots in which it was known are enough.
func (r *Ranking) reweigh(m Member, was uint32, before *Ranking) (changed []int32) {
	lighter := m.Weight < was
	if lighter {
		changed = before.Holding(m.ID)
	} else {
		changed = r.within(m.ID)
	}
	for _, s := range changed {
		slot := int(s)
		bound, here := r.at(slot).bound, r.scorer.standing(slot, m.ID)
		if lighter || before.scorer.standing(slot, m.ID).before(bound) {
			r.removeFrom(slot, m.ID, before)
		}
		if here.before(bound) {
			r.insertInto(slot, here, before)
		}
	}
	return changed
}

// removeAll takes many members out of all slots in one pass.
func (r *Ranking) removeAll(left []Member, before *Ranking) {
	var gone [1 << 16]bool
	for _, m := range left {
		gone[m.ID] = true
	}
	for slot := range r.slots {
		if !slices.ContainsFunc(r.at(slot).first(), func(id uint16) bool { return gone[id] }) {
			continue
		}
		o := r.own(slot, before)
		o.known = uint8(len(slices.DeleteFunc(o.first(), func(id uint16) bool { return gone[id] })))
		if o.known < rankingKeep && o.bound != everybody {
			r.fill(slot, o)
			r.index.refilled = append(r.index.refilled, int32(slot))
		}
	}
}

// insert puts a member into all slots.
func (r *Ranking) insert(id uint16, before *Ranking, changed []int32) []int32 {
	slots := r.within(id)
	for _, slot := range slots {
		r.insertInto(int(slot), r.scorer.standing(int(slot), id), before)
	}
	return append(changed, slots...)
}

func (r *Ranking) insertInto(slot int, here standing, before *Ranking) {
	o := r.own(slot, before)
	if slices.Contains(o.first(), here.id) {
		return // filled anew
	}
	place := sort.Search(int(o.known), func(i int) bool {
		return here.before(r.scorer.standing(slot, o.ids[i]))
	})
	r.insertAt(slot, o, place, here)
}

func (r *Ranking) insertAt(slot int, o *order, place int, here standing) {
	if place == rankingDepth {
		o.bound = here
		return
	}
	if o.known == rankingDepth {
		o.bound = r.scorer.standing(slot, o.ids[rankingDepth-1])
	} else {
		o.known++
	}
	copy(o.ids[place+1:o.known], o.ids[place:])
	o.ids[place] = here.id
}
