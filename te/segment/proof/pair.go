package proof

import (
	"slices"

	"sextant/te/segment"
	"sextant/te/topology"
)

// Objective is what a pair of paths is to be best in.
type Objective string

// The objectives.
const (
	LeastTotal Objective = "total" // the sum of both delays
	// the delay of the slower path, then the sum; NP-hard even without segments
	LeastWorst Objective = "worst"
)

// Pair is two disjoint paths for 1+1 protection.
type Pair struct {
	Paths []segment.Path // two, the quicker first; none if no two were found
	// Value is their delay by the objective, and Bound what no pair is below, in the graph's unit
	// of delay.
	Value, Bound int64
	By           PairMethod
}

// Optimal tells whether no pair is better.
func (p Pair) Optimal() bool { return len(p.Paths) == 2 && p.Value == p.Bound }

// PairMethod is how the bound of a pair was proven.
type PairMethod string

// The methods, from the cheapest to the dearest.
const (
	BySuurballe  PairMethod = "suurballe"  // no two paths, of any length of lists, have less
	ByLagrange   PairMethod = "lagrange"   // prices on what the paths must not share
	ByPairSearch PairMethod = "search"     // all cases were tried
	ByNoPair     PairMethod = "no pair"    // there are no two disjoint paths
	ByQuickest   PairMethod = "one's best" // the quickest path alone, of the worse of two
)

// pairing is a Pair in the making. Costs are delays in units of delayUnit, with hops.
type pairing struct {
	*Prover
	s, t  topology.Node
	goal  Objective
	best  []route
	value int64 // the delay of best; never without
	bound int64
	by    PairMethod
	price []int64 // of resources, from the multipliers
	spare int64   // the sum of price
}

// Pair finds two disjoint paths from s to t of the least delay by an objective, and bounds it from
// below.
func (p *Prover) Pair(s, t topology.Node, goal Objective) Pair {
	p.begin(s, t)
	x := &pairing{Prover: p, s: s, t: t, goal: goal, value: never, by: BySuurballe,
		price: make([]int64, p.shared.count)}
	found, total := p.flow.Cheapest(s, t, 2, p.delay)
	if found < 2 {
		return Pair{By: ByNoPair}
	}
	x.raise(total, BySuurballe)
	if routes, ok := p.fit(s, t, p.flow.Paths()); ok {
		x.offer(routes)
	}
	x.offer(p.pack(s, t, p.delay, 2))
	x.quickest()
	x.restart()
	x.multiply()
	x.search()
	switch {
	case x.best == nil && x.bound == never:
		return Pair{By: ByNoPair}
	case x.best == nil:
		return Pair{Bound: x.bound, By: x.by}
	}
	return Pair{Paths: p.paths(s, x.best), Value: x.value, Bound: x.bound, By: x.by}
}

func (x *pairing) done() bool { return x.value <= x.bound }

// offer keeps two routes if they are better than what there is.
func (x *pairing) offer(routes []route) {
	if len(routes) < 2 {
		return
	}
	if value := x.worth(routes); value < x.value {
		x.value, x.best = value, slices.Clone(routes[:2])
	}
}

// worth is the delay of two routes by the objective.
func (x *pairing) worth(routes []route) int64 {
	a, b := x.latency(routes[0], x.s), x.latency(routes[1], x.s)
	if x.goal == LeastWorst {
		return max(a, b)
	}
	return a + b
}

// raise takes a lower bound on the total cost of two routes. Hops are fewer than a unit of delay,
// so that rounding down is right.
func (x *pairing) raise(total int64, by PairMethod) {
	bound := total / delayUnit
	if x.goal == LeastWorst {
		bound = (bound + 1) / 2
	}
	if bound > x.bound || by == BySuurballe {
		x.bound, x.by = bound, by
	}
}

// quickest bounds the slower of two routes by the quickest there is.
func (x *pairing) quickest() {
	if x.goal != LeastWorst {
		return
	}
	r, ok := x.walk.cheapest(x.s, x.t, x.delay, slices.Clone(x.avoid))
	if ok && r.cost/delayUnit > x.bound {
		x.bound, x.by = r.cost/delayUnit, ByQuickest
	}
}

// restart packs with delays stretched at random.
func (x *pairing) restart() {
	cost := make([]int64, x.view.Edges())
	for turn := 0; turn < x.effort.Restarts && !x.done(); turn++ {
		for e := range cost {
			cost[e] = x.delay[e] * (8 + x.random.Int64N(8))
		}
		x.offer(x.pack(x.s, x.t, cost, 2))
	}
}

// multiply raises the bound by Lagrange's method: a pair of routes costs at least twice the
// cheapest under delay plus price, less all prices. What the cheapest route takes is wanted twice,
// so its price rises; what it does not, falls.
func (x *pairing) multiply() {
	if x.model == segment.ECMP {
		return
	}
	off := slices.Clone(x.avoid)
	price := make([]int64, x.shared.count)
	step := x.value
	if x.best == nil {
		step = 4 * (x.bound + 1)
	}
	step = step * delayUnit / 16
	sinceBetter, highest := 0, int64(-1)
	for round := 0; round < x.effort.Rounds && !x.done() && step > delayUnit/64; round++ {
		cost, spare := x.priced(price)
		r, ok := x.walk.cheapest(x.s, x.t, cost, off)
		if !ok {
			x.bound, x.by = never, ByPairSearch
			return
		}
		if total := 2*r.cost - spare; total > highest {
			highest, x.spare, sinceBetter = total, spare, 0
			copy(x.price, price)
			x.raise(total, ByLagrange)
		} else if sinceBetter++; sinceBetter > 6 {
			step, sinceBetter = step/2, 0
		}
		x.offer(x.pack(x.s, x.t, cost, 2))
		x.move(price, x.shared.of(r, x.s, x.t), step)
	}
}

// priced is delay plus price of each edge, and the sum of all prices.
func (x *pairing) priced(price []int64) (cost []int64, spare int64) {
	cost = x.shared.costs(price, x.s, x.t)
	for e := range cost {
		cost[e] += x.delay[e]
	}
	for _, y := range price {
		spare += y
	}
	return cost, spare
}

// move changes prices by a step along the subgradient: 2 for what is taken less 1 for the unit
// there is.
func (x *pairing) move(price []int64, taken []int32, step int64) {
	wanted := map[int32]bool{}
	for _, i := range taken {
		if int(i) < x.shared.priced {
			wanted[i] = true
			price[i] += step / 2
		}
	}
	for i := range price {
		if price[i] > 0 && !wanted[int32(i)] {
			price[i] = max(0, price[i]-step/2)
		}
	}
}

// search settles what is left.
func (x *pairing) search() {
	if x.done() {
		return
	}
	s := x.newSplit(x.s, x.t, 2, x.delay)
	priced, _ := x.priced(x.price)
	s.hopeless = func() bool {
		if x.beaten(s.total(), max(s.routes[0].cost, s.routes[1].cost)) {
			return true
		}
		return x.spare > 0 && x.beaten(x.relaxed(s, priced)-x.spare, 0)
	}
	s.solved = func() bool {
		x.offer(s.routes)
		return x.done()
	}
	complete := s.run()
	switch {
	case !complete || x.done():
	case x.best == nil:
		x.bound, x.by = never, ByPairSearch
	default:
		x.bound, x.by = x.value, ByPairSearch
	}
}

// beaten tells whether routes of that total cost, of which the dearest costs at least worst, can't
// be better than the best.
func (x *pairing) beaten(total, worst int64) bool {
	if x.goal == LeastWorst {
		return max((total/delayUnit+1)/2, worst/delayUnit) >= x.value
	}
	return total/delayUnit >= x.value
}

// relaxed is what the routes of a case cost at least under delay and price.
func (x *pairing) relaxed(s *split, cost []int64) int64 {
	sum := int64(0)
	for i := range s.off {
		r, ok := x.walk.cheapest(x.s, x.t, cost, s.off[i])
		if !ok {
			return never
		}
		sum += r.cost
	}
	return sum
}
