package proof

import (
	"slices"

	"sextant/te/topology"
)

// split searches for a number of disjoint routes by splitting on what two of them share: either one
// of them may keep it, and the others do without; or none of those that are still alike takes it.
// Each case is bounded by the routes' costs apart.
type split struct {
	*Prover
	s, t topology.Node
	left int // cases that may still be looked at
	off  [][]bool
	// routes of one class have the same edges off, so it does not matter which of them is which
	class  []int
	routes []route
	cost   []int64

	hopeless func() bool // whether no solution of this case is wanted
	solved   func() bool // called when the routes share nothing; true ends the search
}

func (p *Prover) newSplit(s, t topology.Node, count int, cost []int64) *split {
	x := &split{Prover: p, s: s, t: t, left: p.effort.Splits, cost: cost, class: make([]int, count),
		routes: make([]route, count)}
	for range count {
		x.off = append(x.off, slices.Clone(p.avoid))
	}
	return x
}

// run searches. It is complete if it was not cut short by the budget.
func (x *split) run() (complete bool) {
	first, ok := x.walk.cheapest(x.s, x.t, x.cost, x.off[0])
	if !ok {
		return true
	}
	for i := range x.routes {
		x.routes[i] = first
	}
	x.visit()
	return x.left > 0
}

// visit looks at a case and all below it; true ends the search.
func (x *split) visit() bool {
	x.left--
	if x.left <= 0 {
		return true
	}
	if x.hopeless() {
		return false
	}
	i, resource, shared := x.conflict()
	if !shared {
		return x.solved()
	}
	return x.keep(i, resource) || x.drop(i, resource)
}

// keep is the case that route i takes the resource: no other does.
func (x *split) keep(i int, resource int32) bool {
	class := x.class[i]
	x.class[i] = slices.Max(x.class) + 1
	var others []int
	for j := range x.routes {
		if j != i {
			others = append(others, j)
		}
	}
	end := x.exclude(others, resource)
	x.class[i] = class
	return end
}

// drop is the case that neither route i nor any like it takes the resource.
func (x *split) drop(i int, resource int32) bool {
	var alike []int
	for j, class := range x.class {
		if class == x.class[i] {
			alike = append(alike, j)
		}
	}
	return x.exclude(alike, resource)
}

// exclude visits the case in which some routes do without a resource, and takes it back.
func (x *split) exclude(who []int, resource int32) bool {
	routes := slices.Clone(x.routes)
	closed := make([][]topology.Edge, len(who))
	feasible := true
	for n, j := range who {
		closed[n] = x.shared.close(x.off[j], []int32{resource}, x.s, x.t)
		if feasible && len(closed[n]) > 0 && x.takes(j, resource) {
			x.routes[j], feasible = x.walk.cheapest(x.s, x.t, x.cost, x.off[j])
		}
	}
	end := feasible && x.visit()
	for n, j := range who {
		for _, e := range closed[n] {
			x.off[j][e] = false
		}
	}
	if !end {
		x.routes = routes
	}
	return end
}

func (x *split) takes(j int, resource int32) bool {
	return slices.Contains(x.shared.of(x.routes[j], x.s, x.t), resource)
}

// conflict names a resource that several routes take, and one of them: the resource that most of
// them take.
func (x *split) conflict() (who int, resource int32, shared bool) {
	users := map[int32]int{}
	most := 1
	for i, r := range x.routes {
		for _, taken := range x.shared.of(r, x.s, x.t) {
			users[taken]++
			if users[taken] > most {
				most, who, resource = users[taken], i, taken
			}
		}
	}
	return who, resource, most > 1
}

// total is the cost of all routes.
func (x *split) total() int64 {
	sum := int64(0)
	for _, r := range x.routes {
		sum += r.cost
	}
	return sum
}
