package consistenthash

// filling is a slot whose best members are being found.
type filling struct {
	best  [rankingDepth]standing
	known int
	bound standing // as of an order
}

// add enters a member that stands before the bound.
func (f *filling) add(here standing) {
	if f.known < rankingDepth {
		f.known++
	} else {
		last := f.best[rankingDepth-1]
		if !here.before(last) {
			f.bound = here
			return
		}
		f.bound = last
	}
	i := f.known - 1
	for ; i > 0 && here.before(f.best[i-1]); i-- {
		f.best[i] = f.best[i-1]
	}
	f.best[i] = here
}

// begin finds the best of some members.
func (f *filling) begin(s *scorer, slot int, members []Member) {
	f.known, f.bound = 0, everybody
	for _, m := range members {
		if here := s.standing(slot, m.ID); here.before(f.bound) {
			f.add(here)
		}
	}
}

// end writes what was found.
func (f *filling) end(o *order) {
	for i, here := range f.best[:f.known] {
		o.ids[i] = here.id
	}
	o.known, o.bound = uint8(f.known), f.bound
}

// fill finds the best members of a slot among all.
func (r *Ranking) fill(slot int, o *order) {
	r.findBest(slot, o)
	r.widen(slot, o.bound.score)
}

func (r *Ranking) findBest(slot int, o *order) {
	var f filling
	f.begin(r.scorer, slot, r.members)
	f.end(o)
}

// firstMembers are as many as are entered in all slots one by one. The others are looked for as
// those that join, since few of them come in.
const firstMembers = 8 * rankingDepth

// fillAll finds the best members of all slots of a new ranking.
func (r *Ranking) fillAll() {
	first := r.members[:min(firstMembers, len(r.members))]
	others := make([]sought, 0, len(r.members)-len(first))
	for _, m := range r.members[len(first):] {
		others = append(others, r.scorer.sought(m.ID))
	}
	block := make([]filling, min(scanSlots, r.slots))
	var hits [scanSlots]int32
	for at := 0; at < r.slots; at += scanSlots {
		here := block[:min(scanSlots, r.slots-at)]
		reach := r.reach[at:min(at+scanSlots, len(r.reach))]
		for i := range here {
			here[i].begin(r.scorer, at+i, first)
			reach[i] = reachOf(here[i].bound.score)
		}
		for i, who := range others {
			id := r.members[len(first)+i].ID
			for _, slot := range hits[:who.scan(at, reach, &hits)] {
				place := int(slot) - at
				if place >= len(here) {
					continue
				}
				s := r.scorer.standing(int(slot), id)
				if f := &here[place]; s.before(f.bound) {
					f.add(s)
					reach[place] = reachOf(f.bound.score)
				}
			}
		}
		for i := range here {
			here[i].end(r.at(at + i))
		}
	}
}
