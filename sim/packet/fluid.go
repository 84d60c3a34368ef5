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
	stamp    []uint32  // of each link: the round that touched it
	round    uint32
	touched  []int32 // links
	affected []int32 // flows
	heap     []filling
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

// filling is a link with the rate at which it would be full.
type filling struct {
	rate float64
	link int32
}

// NewFluid returns links of the given capacities, in any unit, without flows.
func NewFluid(capacity []float64) *Fluid {
	n := len(capacity)
	f := &Fluid{capacity: capacity, members: make([][]member, n), level: make([]float64, n),
		highest:  make([]float64, n),
		residual: make([]float64, n), count: make([]int32, n), stamp: make([]uint32, n)}
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
	f.join(number, path)
	f.begin()
	f.touch(number)
	f.limited(path)
	f.share()
	return number
}

// Remove removes a flow.
func (f *Fluid) Remove(number int32) {
	f.begin()
	f.leave(number)
	f.limited(f.flows[number].path)
	f.flows[number].used = false
	f.free = append(f.free, number)
	f.share()
}

// Move puts a flow onto another path.
func (f *Fluid) Move(number int32, path []int32) {
	f.begin()
	f.leave(number)
	f.limited(f.flows[number].path)
	rate := f.flows[number].rate
	f.join(number, path)
	f.flows[number].rate = rate
	f.touch(number)
	f.limited(path)
	f.share()
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
		f.open(l)
		list, at := f.members[l], x.place[hop]
		last := list[len(list)-1]
		list[at] = last
		f.flows[last.flow].place[last.hop] = at
		f.members[l] = list[:len(list)-1]
	}
}

// begin starts a round.
func (f *Fluid) begin() {
	f.round++
	f.touched, f.affected = f.touched[:0], f.affected[:0]
}

// open makes a link part of the round.
func (f *Fluid) open(l int32) {
	if f.stamp[l] != f.round {
		f.stamp[l] = f.round
		f.touched = append(f.touched, l)
	}
}

// touch makes a flow part of the round.
func (f *Fluid) touch(number int32) {
	x := &f.flows[number]
	if x.stamp != f.round {
		x.stamp, x.previous = f.round, x.rate
		f.affected = append(f.affected, number)
		for _, l := range x.path {
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

// share computes rates again until those that were kept are right beside those that were not: each
// flow must have a full link on which no flow has more. Flows for which that ceased to hold join
// the round.
func (f *Fluid) share() {
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
	full := f.residual[l] <= slack*f.capacity[l]
	for _, m := range f.members[l] {
		x := &f.flows[m.flow]
		if x.stamp == f.round {
			continue
		}
		released := x.limit == l && (!full || f.highest[l] > x.rate*(1+slack))
		if released || x.rate > f.level[l]*(1+slack) {
			f.touch(m.flow)
		}
	}
}

// fill is water-filling of the flows of the round, beside the rates of the others: the link that is
// full first settles the rates of its flows.
func (f *Fluid) fill() {
	f.heap = f.heap[:0]
	for _, l := range f.touched {
		left, count := f.capacity[l], int32(0)
		for _, m := range f.members[l] {
			if x := &f.flows[m.flow]; x.stamp == f.round {
				count++
				x.settled = false
			} else {
				left -= x.rate
			}
		}
		f.residual[l], f.count[l], f.level[l], f.highest[l] = max(left, 0), count, math.Inf(1), 0
		if count > 0 {
			f.push(filling{f.residual[l] / float64(count), l})
		}
	}
	for len(f.heap) > 0 {
		top := f.pop()
		l := top.link
		if f.count[l] == 0 {
			continue
		}
		if now := f.residual[l] / float64(f.count[l]); now > top.rate {
			f.push(filling{now, l})
			continue
		}
		f.level[l] = top.rate
		for _, m := range f.members[l] {
			f.settle(m.flow, l, top.rate)
		}
		f.residual[l] = 0
	}
}

// settle gives a flow of the round its rate, which a link limits.
func (f *Fluid) settle(number, limit int32, rate float64) {
	x := &f.flows[number]
	if x.stamp != f.round || x.settled {
		return
	}
	x.settled, x.rate, x.limit = true, rate, limit
	for _, l := range x.path {
		f.residual[l] = max(f.residual[l]-rate, 0)
		f.highest[l] = max(f.highest[l], rate)
		f.count[l]--
	}
}

func (f *Fluid) push(x filling) {
	f.heap = append(f.heap, x)
	h := f.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].rate <= x.rate {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = x
}

func (f *Fluid) pop() filling {
	h := f.heap
	top, x := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	f.heap = h
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].rate < h[child].rate {
			child++
		}
		if h[child].rate >= x.rate {
			break
		}
		h[i] = h[child]
		i = child
	}
	if len(h) > 0 {
		h[i] = x
	}
	return top
}
