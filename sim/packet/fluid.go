package packet

import "math"

// Fluid shares links among flows by max-min fairness (Bertsekas and Gallager, Data Networks,
// section 6.5.2): the rate of a flow is as large as can be without taking from one whose rate is
// not larger. When a flow comes, goes or moves, only rates that can change are computed again:
// those of flows that share a link, directly or through others, with a rate that did.
type Fluid struct {
	capacity []float64
	members  [][]member // flows on each link
	flows    []fluidFlow
	free     []int32
	// of each link: the rate of the flows of the round that it limits; infinite if it limits none
	level    []float64
	highest  []float64 // of each link: the highest rate that the round gave
	residual []float64 // of each link, while it is filled
	count    []int32   // flows of a link whose rate is not known, while it is filled
	share    []float64 // what a link gives each of them
	kept     []kept    // of each link of the round
	stamp    []uint32  // of each link: the round that touched it
	round    uint32
	touched  []int32 // links
	affected []int32 // flows
}

// kept is what the flows of a link leave to those of the round, and bounds of their rates.
type kept struct {
	residual float64
	count    int32   // flows of the round
	most     float64 // no flow outside of the round has more
	limited  float64 // and none of those that the link limits has less
}

// member is a flow on a link, and which of the flow's links this is.
type member struct{ flow, hop int32 }

// fluidFlow is one flow.
type fluidFlow struct {
	path     []int32
	place    []int32 // in members of each link
	rate     float64
	previous float64
	stamp    uint32
	used     bool
	settled  bool
	limit    int32 // the full link on which no flow has more
}

// NewFluid returns links of the given capacities, in any unit, without flows.
func NewFluid(capacity []float64) *Fluid {
	n := len(capacity)
	return &Fluid{capacity: capacity, members: make([][]member, n), level: make([]float64, n),
		highest: make([]float64, n), residual: make([]float64, n), count: make([]int32, n),
		share: make([]float64, n),
		kept:  make([]kept, n), stamp: make([]uint32, n)}
}

// Add adds a flow over a path, and returns its number. A path crosses at least one link, and none
// twice.
func (f *Fluid) Add(path []int32) int32 {
	var number int32
	if last := len(f.free) - 1; last >= 0 {
		number = f.free[last]
		f.free = f.free[:last]
	} else {
		number = int32(len(f.flows))
		f.flows = append(f.flows, fluidFlow{})
	}
	f.join(number, path)
	f.begin()
	f.touch(number)
	f.limited(path)
	f.update()
	return number
}

// Remove removes a flow.
func (f *Fluid) Remove(number int32) {
	f.begin()
	f.leave(number)
	f.limited(f.flows[number].path)
	f.flows[number].used = false
	f.free = append(f.free, number)
	f.update()
}

// Move puts a flow onto another path.
func (f *Fluid) Move(number int32, path []int32) {
	f.begin()
	f.leave(number)
	f.limited(f.flows[number].path)
	rate := f.flows[number].rate
	f.join(number, path)
	f.touch(number)
	f.flows[number].previous = rate
	f.limited(path)
	f.update()
}

// Rate is the rate of a flow.
func (f *Fluid) Rate(number int32) float64 { return f.flows[number].rate }

// Previous is the rate that a flow had before the last call.
func (f *Fluid) Previous(number int32) float64 { return f.flows[number].previous }

// Limit is the link that limits a flow.
func (f *Fluid) Limit(number int32) int32 { return f.flows[number].limit }

// Share is what one more flow would have of a link if all its flows had the same.
func (f *Fluid) Share(l int32) float64 { return f.capacity[l] / float64(len(f.members[l])+1) }

// Changed lists the flows whose rates the last call computed again. It is valid until the next.
func (f *Fluid) Changed() []int32 { return f.affected }

func (f *Fluid) join(number int32, path []int32) {
	x := &f.flows[number]
	x.path, x.place, x.used, x.rate = append(x.path[:0], path...), x.place[:0], true, 0
	for hop, l := range path {
		x.place = append(x.place, int32(len(f.members[l])))
		f.members[l] = append(f.members[l], member{number, int32(hop)})
	}
}

func (f *Fluid) leave(number int32) {
	x := &f.flows[number]
	for hop, l := range x.path {
		list, at := f.members[l], x.place[hop]
		last := list[len(list)-1]
		list[at] = last
		f.flows[last.flow].place[last.hop] = at
		f.members[l] = list[:len(list)-1]
		f.open(l)
	}
}

// begin starts a round.
func (f *Fluid) begin() {
	f.round++
	f.touched, f.affected = f.touched[:0], f.affected[:0]
}

// open makes a link part of the round.
func (f *Fluid) open(l int32) {
	if f.stamp[l] == f.round {
		return
	}
	f.stamp[l] = f.round
	f.touched = append(f.touched, l)
	k := kept{residual: f.capacity[l], limited: math.Inf(1)}
	for _, m := range f.members[l] {
		x := &f.flows[m.flow]
		if x.stamp == f.round {
			k.count++
			continue
		}
		k.residual -= x.rate
		k.most = max(k.most, x.rate)
		if x.limit == l {
			k.limited = min(k.limited, x.rate)
		}
	}
	f.kept[l] = k
}

// touch makes a flow part of the round.
func (f *Fluid) touch(number int32) {
	x := &f.flows[number]
	if x.stamp == f.round {
		return
	}
	x.stamp, x.previous = f.round, x.rate
	f.affected = append(f.affected, number)
	for _, l := range x.path {
		if f.stamp[l] == f.round {
			f.kept[l].residual += x.rate
			f.kept[l].count++
		} else {
			f.open(l)
		}
	}
}

// limited lets the flows join the round that the links of a path limit: their rates change most
// likely.
func (f *Fluid) limited(path []int32) {
	for _, l := range path {
		for _, m := range f.members[l] {
			if f.flows[m.flow].limit == l {
				f.touch(m.flow)
			}
		}
	}
}

// update computes rates again until those that were kept are right beside those that were not: each
// flow must have a full link on which no flow has more. Flows for which that ceased to hold join
// the round.
func (f *Fluid) update() {
	for {
		f.fill()
		before := len(f.affected)
		for _, l := range f.touched[:len(f.touched):len(f.touched)] {
			f.check(l)
		}
		if len(f.affected) == before {
			return
		}
	}
}

// slack is the part of a rate below which two count as equal.
const slack = 1e-9

// check lets flows of a link join the round that were not computed again and that the link's new
// rates concern.
func (f *Fluid) check(l int32) {
	full, most := f.residual[l] <= slack*f.capacity[l], f.level[l]*(1+slack)
	releases := func(rate float64) bool { return !full || f.highest[l] > rate*(1+slack) }
	k := &f.kept[l]
	if k.most <= most && (math.IsInf(k.limited, 1) || !releases(k.limited)) {
		return
	}
	for _, m := range f.members[l] {
		x := &f.flows[m.flow]
		if x.stamp != f.round && (x.rate > most || x.limit == l && releases(x.rate)) {
			f.touch(m.flow)
		}
	}
}

// fill shares what the other flows leave among those of the round. A link that gives no flow more
// than any other link of its flows' paths settles their rates: nothing that happens elsewhere
// changes them, since what a link gives only grows while others are settled.
func (f *Fluid) fill() {
	for _, l := range f.touched {
		k := &f.kept[l]
		f.residual[l], f.count[l] = max(k.residual, 0), k.count
		f.level[l], f.highest[l] = math.Inf(1), 0
		f.share[l] = f.residual[l] / float64(k.count)
	}
	for _, number := range f.affected {
		f.flows[number].settled = false
	}
	for _, number := range f.affected {
		for !f.flows[number].settled {
			f.settle(f.least(number))
		}
	}
}

// least walks from a flow of the round to links that give less, until none of its neighbors does.
func (f *Fluid) least(number int32) int32 {
	l := f.flows[number].path[0]
	l = f.less(number, l)
	for at := int32(none); at != l; {
		at = l
		for _, m := range f.members[at] {
			if f.flows[m.flow].open(f.round) {
				l = f.less(m.flow, l)
			}
		}
	}
	return l
}

// less is a link of a flow's path that gives less than a link; this link itself if none does.
func (f *Fluid) less(number, l int32) int32 {
	for _, other := range f.flows[number].path {
		if f.share[other] < f.share[l] {
			l = other
		}
	}
	return l
}

// open reports whether a flow's rate is to be computed in a round.
func (x *fluidFlow) open(round uint32) bool { return x.stamp == round && !x.settled }

// settle gives the flows of the round that a link limits their rates.
func (f *Fluid) settle(limit int32) {
	rate := f.share[limit]
	f.level[limit] = rate
	for _, m := range f.members[limit] {
		x := &f.flows[m.flow]
		if !x.open(f.round) {
			continue
		}
		x.settled, x.rate, x.limit = true, rate, limit
		for _, l := range x.path {
			f.residual[l] = max(f.residual[l]-rate, 0)
			f.highest[l] = max(f.highest[l], rate)
			f.count[l]--
			f.share[l] = f.residual[l] / float64(f.count[l])
		}
	}
	f.residual[limit] = 0
}
