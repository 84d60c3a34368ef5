package packet

import "math"

// Fluid shares links among flows by max-min fairness (Bertsekas and Gallager, Data Networks,
// section 6.5.2): the rate of a flow is as large as can be without taking from one whose rate is
// not larger. So each flow has a link that limits it: one that is full, and on which no flow has
// more.
//
// When a flow comes, goes or moves, a round computes rates again, in ascending order: each flow of
// the round once, and only flows for which a limiting link ceased to be one.
type Fluid struct {
	links    []fluidLink
	flows    []fluidFlow
	free     []int32
	round    uint32
	planned  []int32   // links on which something is to happen in this round
	next     []float64 // of each of these, the rate at which it does
	affected []int32   // flows of the round
}

// fluidLink is a link with its flows. A flow of the round that has no rate yet is open.
type fluidLink struct {
	members  []member
	capacity float64
	load     float64 // rates of all members but open ones
	level    float64 // rate of the flows that the link limits
	limited  int32   // how many these are
	open     int32
	slot     int32 // in planned; none
}

// member is a flow on a link, and which of the flow's links this is.
type member struct{ flow, hop int32 }

// fluidHop is a link of a flow, and the flow's place in its members.
type fluidHop struct{ link, place int32 }

// fluidFlow is one flow.
type fluidFlow struct {
	path     []fluidHop
	rate     float64
	previous float64
	stamp    uint32 // the last round that it was part of
	open     bool
	limit    int32 // the link that limits it; none
}

// NewFluid returns links of the given capacities, in any unit, without flows.
func NewFluid(capacity []float64) *Fluid {
	f := &Fluid{links: make([]fluidLink, len(capacity))}
	for l := range capacity {
		f.links[l].capacity, f.links[l].slot = capacity[l], none
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
	f.fill()
	return number
}

// Remove removes a flow.
func (f *Fluid) Remove(number int32) {
	f.begin()
	f.leave(number)
	f.free = append(f.free, number)
	f.fill()
}

// Move puts a flow onto another path.
func (f *Fluid) Move(number int32, path []int32) {
	f.begin()
	rate := f.flows[number].rate
	f.leave(number)
	f.join(number, path)
	f.flows[number].previous = rate
	f.fill()
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

// begin starts a round.
func (f *Fluid) begin() {
	f.round++
	f.affected = f.affected[:0]
}

// join puts a flow onto links, and makes it part of the round.
func (f *Fluid) join(number int32, path []int32) {
	x := &f.flows[number]
	x.path, x.rate, x.limit = x.path[:0], 0, none
	for hop, l := range path {
		members := &f.links[l].members
		x.path = append(x.path, fluidHop{l, int32(len(*members))})
		*members = append(*members, member{number, int32(hop)})
	}
	f.touch(number)
}

// leave takes a flow off its links.
func (f *Fluid) leave(number int32) {
	x := &f.flows[number]
	for _, h := range x.path {
		k := &f.links[h.link]
		last := k.members[len(k.members)-1]
		k.members[h.place] = last
		f.flows[last.flow].path[last.hop].place = h.place
		k.members = k.members[:len(k.members)-1]
		if k.load -= x.rate; len(k.members) == 0 {
			k.load = 0 // without what rounding left
		}
		if x.limit == h.link {
			k.limited--
		}
		f.plan(h.link)
	}
}

// touch makes a flow part of the round, if it is not.
func (f *Fluid) touch(number int32) {
	x := &f.flows[number]
	if x.stamp == f.round {
		return
	}
	x.stamp, x.previous, x.open = f.round, x.rate, true
	f.affected = append(f.affected, number)
	for _, h := range x.path {
		k := &f.links[h.link]
		k.load -= x.rate
		k.open++
		if x.limit == h.link {
			k.limited--
		}
		f.plan(h.link)
	}
}

// slack is the part of a rate below which two count as equal.
const slack = 1e-9

// plan notes the rate at which something happens on a link, or one below: open flows fill it, it is
// more than full, or flows that it limits may have more, since it is not full at their rate.
func (f *Fluid) plan(l int32) {
	k := &f.links[l]
	at, left := math.Inf(1), k.capacity-k.load
	switch {
	case k.limited > 0:
		if k.releases() {
			at = k.level
		} else if k.open > 0 || left < -slack*k.capacity {
			at = max(left+float64(k.limited)*k.level, 0) / float64(k.open+k.limited)
		}
	case k.open > 0:
		at = max(left, 0) / float64(k.open)
	case left < -slack*k.capacity:
		at = 0
	}
	switch {
	case math.IsInf(at, 1):
		f.drop(k)
	case k.slot == none:
		k.slot = int32(len(f.planned))
		f.planned, f.next = append(f.planned, l), append(f.next, at)
	default:
		f.next[k.slot] = at
	}
}

// drop lets nothing happen on a link.
func (f *Fluid) drop(k *fluidLink) {
	if k.slot == none {
		return
	}
	last := len(f.planned) - 1
	other := f.planned[last]
	f.planned[k.slot], f.next[k.slot] = other, f.next[last]
	f.links[other].slot = k.slot
	k.slot = none
	f.planned, f.next = f.planned[:last], f.next[:last]
}

// releases tells that the flows that a link limits may have more.
func (k *fluidLink) releases() bool {
	left := k.capacity - k.load
	return left > float64(k.open)*k.level*(1+slack) && left > slack*k.capacity
}

// fill gives the flows of the round their rates, and lets those join it whose rates change. It
// works in ascending order of rates: a flow joins when its rate before is reached, so that what it
// leaves on its links is not below what others have there.
func (f *Fluid) fill() {
	for len(f.next) > 0 {
		first, least := 0, f.next[0]
		for i, at := range f.next {
			if at < least {
				first, least = i, at
			}
		}
		f.reach(f.planned[first], least)
	}
}

// reach lets happen on a link what is planned for a rate.
func (f *Fluid) reach(l int32, rate float64) {
	k := &f.links[l]
	joined := len(f.affected)
	if k.limited > 0 && k.releases() {
		for _, m := range k.members {
			if f.flows[m.flow].limit == l {
				f.touch(m.flow)
			}
		}
		if len(f.affected) > joined {
			return
		}
	}
	if level := f.above(k, rate); level > rate*(1+slack) {
		f.next[k.slot] = level
		return
	}
	for _, m := range k.members {
		if x := &f.flows[m.flow]; !x.open && x.rate > rate*(1+slack) {
			f.touch(m.flow)
		}
	}
	if len(f.affected) > joined {
		return
	}
	f.settle(l, rate)
	f.drop(k) // if rounding alone left something
}

// above is what a link gives each open flow if flows with more than a rate leave some to them.
func (f *Fluid) above(k *fluidLink, rate float64) float64 {
	for {
		left, flows := k.capacity-k.load, float64(k.open)
		for _, m := range k.members {
			if x := &f.flows[m.flow]; !x.open && x.rate > rate*(1+slack) {
				left += x.rate
				flows++
			}
		}
		if level := left / flows; level > rate*(1+slack) {
			rate = level
		} else {
			return rate
		}
	}
}

// settle gives the open flows of a link their rate.
func (f *Fluid) settle(l int32, rate float64) {
	for _, m := range f.links[l].members {
		x := &f.flows[m.flow]
		if !x.open {
			continue
		}
		x.open, x.rate, x.limit = false, rate, l
		for _, h := range x.path {
			k := &f.links[h.link]
			k.load += rate
			k.open--
			if h.link == l {
				k.limited++
				k.level = rate
			}
			f.plan(h.link)
		}
	}
}
