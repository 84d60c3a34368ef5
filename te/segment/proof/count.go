package proof

import (
	"slices"

	"sextant/te/maxflow"
	"sextant/te/segment"
	"sextant/te/topology"
)

// Method is how a bound was proven.
type Method string

// The methods, from the cheapest to the dearest.
const (
	ByCut    Method = "cut"    // a cut of that size separates the nodes
	ByRisk   Method = "risk"   // one shared-risk group separates the nodes
	ByPrices Method = "prices" // prices on links and nodes that no larger set can pay
	BySearch Method = "search" // all cases were tried
)

// Count is how many disjoint paths there are between two nodes.
type Count struct {
	Paths []segment.Path // the most that were found, the quickest first
	Bound int            // there are no more than that
	By    Method         // how the bound was proven
	// a smallest cut in the edges that the model can use, whatever the length of lists
	Cut maxflow.Cut
}

// Optimal tells whether no larger set exists.
func (c Count) Optimal() bool { return len(c.Paths) == c.Bound }

// counting is a Count in the making.
type counting struct {
	*Prover
	s, t  topology.Node
	best  []route
	bound int
	by    Method
}

// Count finds as many disjoint paths from s to t as it can, and bounds their number.
func (p *Prover) Count(s, t topology.Node) Count {
	p.begin(s, t)
	c := &counting{Prover: p, s: s, t: t, by: ByCut}
	c.bound = p.flow.Max(s, t, 0)
	cut := p.flow.Cut()
	if p.kind == segment.SRLGDisjoint && c.bound > 1 {
		c.risk()
	}
	c.offer(p.pack(s, t, p.delay, 0))
	if !c.done() {
		c.cheapestFlow()
	}
	c.restart(p.effort.Restarts)
	c.price()
	return Count{Paths: p.paths(s, c.best), Bound: c.bound, By: c.by, Cut: cut}
}

func (c *counting) done() bool { return len(c.best) >= c.bound }

func (c *counting) offer(routes []route) {
	if len(routes) > len(c.best) {
		c.best = routes
	}
}

func (c *counting) lower(bound int, by Method) {
	if bound < c.bound {
		c.bound, c.by = bound, by
	}
}

// risk looks for a shared-risk group without which t can't be reached.
func (c *counting) risk() {
	off := slices.Clone(c.avoid)
	for i := c.shared.priced; i < c.shared.count; i++ {
		closed := c.shared.close(off, []int32{int32(i)}, c.s, c.t)
		if _, ok := c.relax.cheapest(c.s, c.t, c.delay, off); !ok {
			c.lower(1, ByRisk)
			return
		}
		for _, e := range closed {
			off[e] = false
		}
	}
}

// cheapestFlow tries the paths of a flow of least delay: where lists for them exist, nothing is
// better in any way.
func (c *counting) cheapestFlow() {
	c.flow.Cheapest(c.s, c.t, c.bound, c.delay)
	if routes, ok := c.fit(c.s, c.t, c.flow.Paths()); ok {
		c.offer(routes)
	}
}

func (c *counting) restart(times int) {
	cost := make([]int64, c.view.Edges())
	for turn := 0; turn < times && !c.done(); turn++ {
		c.randomCosts(cost, turn)
		c.offer(c.pack(c.s, c.t, cost, 0))
	}
}

// price lowers the bound by prices, which at the same time are costs that lead around what is
// scarce; and settles what is left by search.
func (c *counting) price() {
	if c.done() {
		return
	}
	y := c.newPricing(c.s, c.t)
	var tightest prices
	for round := 0; round < c.effort.Rounds && !c.done(); round++ {
		now, _, ok := y.round()
		if !ok {
			c.lower(0, BySearch)
			return
		}
		if tightest.of == nil || float64(now.total)/float64(now.least) < float64(
			tightest.total)/float64(tightest.least) {
			tightest = now
			c.lower(now.bound(), ByPrices)
		}
		if round%packEvery == 0 {
			c.offer(c.pack(c.s, c.t, c.shared.costs(now.of, c.s, c.t), 0))
		}
	}
	c.search(tightest)
}

// packEvery is how many improvements of prices make another attempt to pack paths worthwhile.
const packEvery = 10

// search tries for one path more than there are until there is none, or the budget is spent.
func (c *counting) search(y prices) {
	for !c.done() {
		count := len(c.best) + 1
		x := c.newSplit(c.s, c.t, count, c.shared.costs(y.of, c.s, c.t))
		x.hopeless = func() bool { return c.model != segment.ECMP && x.total() > y.total }
		x.solved = func() bool {
			c.best = slices.Clone(x.routes)
			return true
		}
		complete := x.run()
		if len(c.best) == count {
			continue
		}
		if complete {
			c.lower(count-1, BySearch)
		}
		return
	}
}
