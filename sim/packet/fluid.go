package packet

import "math"

// Fluid shares links among flows by max-min fairness (Bertsekas and Gallager, Data Networks,
// section 6.5.2): the rate of a flow is as large as can be without taking from one whose rate is
// not larger. When a flow comes, goes or moves, only rates that can change are computed again, in a
// round: those of flows that share a link, directly or through others, with a rate that did.
type Fluid struct {
	links    []fluidLink
	flows    []fluidFlow
	free     []int32
	round    uint32
	touched  []int32 // links of the round
	affected []int32 // flows of the round
}

// fluidLink is a link with its flows.
type fluidLink struct {
	capacity float64
	load     float64 // rates of its flows outside of the round
	members  []member
	most     float64 // no flow has more
	least    float64 // no flow that the link limits has less
	// of the round
	stamp    uint32 // its number
	flows    int32  // how many
	open     int32  // of these, those without a rate yet
	residual float64
	share    float64 // what it gives each of those
	level    float64 // the rate of the flows that it limits; infinite if it limits none
	highest  float64 // of the rates
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
	settled  bool
	limit    int32 // the full link on which no flow has more
}

// NewFluid returns links of the given capacities, in any unit, without flows.
func NewFluid(capacity []float64) *Fluid {
	f := &Fluid{links: make([]fluidLink, len(capacity))}
	for l := range capacity {
		f.links[l].capacity, f.links[l].least = capacity[l], math.Inf(1)
	}
	return f
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
	f.begin()
	f.join(number, path)
	f.update()
	return number
}

// Remove removes a flow.
func (f *Fluid) Remove(number int32) {
	f.begin()
	f.leave(number)
	f.free = append(f.free, number)
	f.update()
}

// Move puts a flow onto another path.
func (f *Fluid) Move(number int32, path []int32) {
	f.begin()
	f.leave(number)
	rate := f.flows[number].rate
	f.join(number, path)
	f.flows[number].previous = rate
	f.update()
}

// Rate is the rate of a flow.
func (f *Fluid) Rate(number int32) float64 { return f.flows[number].rate }

// Previous is the rate that a flow had before the last call.
func (f *Fluid) Previous(number int32) float64 { return f.flows[number].previous }

// Limit is the link that limits a flow.
func (f *Fluid) Limit(number int32) int32 { return f.flows[number].limit }

// Share is what one more flow would have of a link if all its flows had the same.
func (f *Fluid) Share(l int32) float64 {
	return f.links[l].capacity / float64(len(f.links[l].members)+1)
}

// Changed lists the flows whose rates the last call computed again. It is valid until the next.
func (f *Fluid) Changed() []int32 { return f.affected }

// join puts a flow onto links, and makes it part of the round.
func (f *Fluid) join(number int32, path []int32) {
	x := &f.flows[number]
	x.path, x.place, x.rate = append(x.path[:0], path...), x.place[:0], 0
	for hop, l := range path {
		members := &f.links[l].members
		x.place = append(x.place, int32(len(*members)))
		*members = append(*members, member{number, int32(hop)})
	}
	f.touch(number)
	f.limited(path)
}

// leave takes a flow off its links.
func (f *Fluid) leave(number int32) {
	x := &f.flows[number]
	for hop, l := range x.path {
		k := &f.links[l]
		at, last := x.place[hop], k.members[len(k.members)-1]
		k.members[at] = last
		f.flows[last.flow].place[last.hop] = at
		k.members = k.members[:len(k.members)-1]
		if k.load -= x.rate; len(k.members) == 0 {
			k.load, k.most, k.least = 0, 0, math.Inf(1) // without what rounding left
		}
		f.open(l)
	}
	f.limited(x.path)
}

// begin starts a round.
func (f *Fluid) begin() {
	f.round++
	f.touched, f.affected = f.touched[:0], f.affected[:0]
}

// open makes a link part of the round.
func (f *Fluid) open(l int32) {
	if k := &f.links[l]; k.stamp != f.round {
		k.stamp, k.flows = f.round, 0
		f.touched = append(f.touched, l)
	}
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
		f.open(l)
		f.links[l].load -= x.rate
		f.links[l].flows++
	}
}

// limited lets the flows join the round that the links of a path limit: their rates change most
// likely.
func (f *Fluid) limited(path []int32) {
	for _, l := range path {
		for _, m := range f.links[l].members {
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
	for before := -1; before != len(f.affected); {
		f.fill()
		before = len(f.affected)
		for _, l := range f.touched[:len(f.touched):len(f.touched)] {
			f.check(l)
		}
	}
	for _, number := range f.affected {
		x := &f.flows[number]
		for _, l := range x.path {
			k := &f.links[l]
			k.load += x.rate
			k.most = max(k.most, x.rate)
		}
		f.links[x.limit].least = min(f.links[x.limit].least, x.rate)
	}
}

// slack is the part of a rate below which two count as equal.
const slack = 1e-9

// check lets flows of a link join the round that were not computed again and that the link's new
// rates concern.
func (f *Fluid) check(l int32) {
	k := &f.links[l]
	full, most := k.residual <= slack*k.capacity, k.level*(1+slack)
	releases := func(rate float64) bool { return !full || k.highest > rate*(1+slack) }
	if k.most <= most && (math.IsInf(k.least, 1) || !releases(k.least)) {
		return
	}
	k.load, k.most, k.least = 0, 0, math.Inf(1) // anew, so that rounding does not add up
	for _, m := range k.members {
		x := &f.flows[m.flow]
		if x.stamp == f.round {
			continue
		}
		k.load += x.rate
		k.most = max(k.most, x.rate)
		if x.limit == l {
			k.least = min(k.least, x.rate)
		}
	}
	if k.most <= most && !releases(k.least) {
		return
	}
	for _, m := range k.members {
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
		k := &f.links[l]
		k.residual, k.open = max(k.capacity-k.load, 0), k.flows
		k.level, k.highest = math.Inf(1), 0
		k.share = k.residual / float64(k.open)
	}
	for _, number := range f.affected {
		f.flows[number].settled = false
	}
	for _, number := range f.affected {
		for !f.flows[number].settled {
			f.settle(f.lowest(number))
		}
	}
}

// lowest walks from a flow of the round to links that give less, until none of its neighbors does.
func (f *Fluid) lowest(number int32) int32 {
	l := f.lower(number, f.flows[number].path[0])
	for at := none; at != l; {
		at = l
		for _, m := range f.links[at].members {
			if f.flows[m.flow].open(f.round) {
				l = f.lower(m.flow, l)
			}
		}
	}
	return l
}

// lower is a link of a flow's path that gives less than a link; this link itself if none does.
func (f *Fluid) lower(number, l int32) int32 {
	least := f.links[l].share
	for _, other := range f.flows[number].path {
		if share := f.links[other].share; share < least {
			l, least = other, share
		}
	}
	return l
}

// open reports whether a flow's rate is to be computed in a round.
func (x *fluidFlow) open(round uint32) bool { return x.stamp == round && !x.settled }

// settle gives the flows of the round that a link limits their rates.
func (f *Fluid) settle(limit int32) {
	rate := f.links[limit].share
	f.links[limit].level = rate
	for _, m := range f.links[limit].members {
		x := &f.flows[m.flow]
		if !x.open(f.round) {
			continue
		}
		x.settled, x.rate, x.limit = true, rate, limit
		for _, l := range x.path {
			k := &f.links[l]
			k.residual = max(k.residual-rate, 0)
			k.highest = max(k.highest, rate)
			k.open--
			k.share = k.residual / float64(k.open)
		}
	}
	f.links[limit].residual = 0
}
