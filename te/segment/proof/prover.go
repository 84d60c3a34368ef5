package proof

import (
	"math/rand/v2"
	"slices"

	"sextant/te/maxflow"
	"sextant/te/segment"
	"sextant/te/spf"
	"sextant/te/topology"
)

// Effort bounds the work for one pair of nodes. The zero value stands for the defaults.
type Effort struct {
	Restarts int    // searches with random costs; default 64
	Rounds   int    // improvements of prices; default 400
	Splits   int    // nodes of the search that splits on what paths share; default 4000
	Seed     uint64 // of the random costs
}

func (e Effort) withDefaults() Effort {
	if e.Restarts == 0 {
		e.Restarts = 64
	}
	if e.Rounds == 0 {
		e.Rounds = 400
	}
	if e.Splits == 0 {
		e.Splits = 4000
	}
	return e
}

// Prover proves what segment lists of one model can do between any two nodes of a network. It
// serves one goroutine; Clone makes another that shares what was computed.
type Prover struct {
	*space
	kind   segment.Disjointness
	shared *resources
	effort Effort
	walk   *walker
	relax  *walker          // of the model that prices hold for
	canUse []bool           // edges that the model can use
	avoid  []bool           // edges that no route may use although shortest paths do
	flow   *maxflow.Network // over the edges that the model can use
	delay  []int64          // of each edge: delay in units of delayUnit, and one for the hop
	random *rand.Rand
}

// delayUnit is what one unit of delay costs: more than the hops of any path, so that these decide
// between equal delays and no edge is free.
const delayUnit = 1 << 16

// New makes a prover for a query's model, disjointness, number of SIDs and edges to avoid, all of
// which must be filled in; the rest of the query does not count. The view must be one that
// segment.New takes.
func New(view topology.View, q segment.Query, effort Effort) *Prover {
	weight := func(e topology.Edge) uint64 { return uint64(view.Weight(e)) }
	table := spf.New(view, weight, func(e topology.Edge) uint64 { return uint64(view.Delay(e)) })
	s := newSpace(view, table, q.Model, q.MaxSIDs)
	p := &Prover{
		space: s, kind: q.Disjoint, shared: newResources(view, q.Disjoint),
		effort: effort.withDefaults(), canUse: s.usable(),
		avoid: make([]bool, view.Edges()), delay: make([]int64, view.Edges()),
	}
	for _, e := range q.Avoid {
		p.avoid[e], p.canUse[e] = true, false
	}
	p.flow = maxflow.NewNetwork(view, sharing(p.kind), p.canUse)
	p.walkers()
	for e := range p.delay {
		p.delay[e] = view.Delay(topology.Edge(e))*delayUnit + 1
	}
	return p
}

// sharing is what a flow must keep apart so that it bounds the paths of a kind. Shared-risk groups
// are not a matter of flows.
func sharing(kind segment.Disjointness) maxflow.Sharing {
	if kind == segment.NodeDisjoint {
		return maxflow.Nodes
	}
	return maxflow.Edges
}

// Clone returns a prover for another goroutine.
func (p *Prover) Clone() *Prover {
	c := *p
	c.flow = p.flow.Clone()
	c.walkers()
	return &c
}

func (p *Prover) walkers() {
	p.walk = newWalker(p.space)
	p.relax = p.walk
	if p.model == segment.ECMP {
		// A route takes at least what one of its branches does, and that is a route of the paper's
		// model, of the same DAGs.
		paper := *p.space
		paper.model = segment.Paper
		p.relax = newWalker(&paper)
	}
}

// begin makes the random numbers depend on the pair and the seed alone.
func (p *Prover) begin(s, t topology.Node) {
	p.random = rand.New(rand.NewPCG(p.effort.Seed, uint64(s)<<32|uint64(t)))
}

// pack finds disjoint routes one after the other, the cheapest first, up to a number of them; 0 is
// all.
func (p *Prover) pack(s, t topology.Node, cost []int64, most int) []route {
	var routes []route
	off := slices.Clone(p.avoid)
	for most == 0 || len(routes) < most {
		r, ok := p.walk.cheapest(s, t, cost, off)
		if !ok {
			break
		}
		routes = append(routes, r)
		p.shared.close(off, p.shared.of(r, s, t), s, t)
	}
	return routes
}

// fit turns paths into routes if each of them has a segment list, and no two share anything.
func (p *Prover) fit(s, t topology.Node, paths [][]topology.Edge) ([]route, bool) {
	off := make([]bool, p.view.Edges())
	taken := map[int32]bool{}
	var routes []route
	for _, path := range paths {
		for e := range off {
			off[e] = true
		}
		for _, e := range path {
			off[e] = false
		}
		r, ok := p.walk.cheapest(s, t, p.delay, off)
		if !ok {
			return nil, false
		}
		for _, i := range p.shared.of(r, s, t) {
			if taken[i] {
				return nil, false
			}
			taken[i] = true
		}
		routes = append(routes, r)
	}
	return routes, true
}

// randomCosts are costs for a restart: by turns without regard to delay, and delays stretched at
// random.
func (p *Prover) randomCosts(cost []int64, turn int) {
	for e := range cost {
		if turn%2 == 0 {
			cost[e] = 1 + p.random.Int64N(delayUnit)
		} else {
			cost[e] = 1 + p.delay[e]/delayUnit*p.random.Int64N(64)
		}
	}
}

// paths turns routes into paths, the quickest first.
func (p *Prover) paths(s topology.Node, routes []route) []segment.Path {
	paths := make([]segment.Path, len(routes))
	for i, r := range routes {
		paths[i] = segment.Path{
			Edges: r.edges, SIDs: p.list(r.hops), Latency: p.latency(r, s),
			Forced: p.forced(s, r.hops),
		}
	}
	slices.SortStableFunc(paths, func(a, b segment.Path) int { return int(a.Latency - b.Latency) })
	return paths
}

// forced tells whether packets have no choice on their way.
func (p *Prover) forced(from topology.Node, hops []hop) bool {
	for _, h := range hops {
		end := h.node
		if h.edge != topology.NoEdge {
			end = p.view.From(h.edge)
		}
		if p.table.From(from).Paths(end) > 1 {
			return false
		}
		from = h.node
	}
	return true
}

// list turns hops into SIDs. A list ends with a node SID of the destination.
func (p *Prover) list(hops []hop) []segment.SID {
	var sids []segment.SID
	for _, h := range hops {
		sid := segment.SID{Node: h.node, Link: h.edge}
		if h.edge != topology.NoEdge {
			sid.Node = p.view.From(h.edge)
		}
		sids = append(sids, sid)
	}
	if last := hops[len(hops)-1]; last.edge != topology.NoEdge {
		sids = append(sids, segment.SID{Node: last.node, Link: topology.NoEdge})
	}
	return sids
}

// latency is the delay of a route, of its worst branch if there are several.
func (p *Prover) latency(r route, s topology.Node) int64 {
	if p.model != segment.ECMP {
		sum := int64(0)
		for _, e := range r.edges {
			sum += p.view.Delay(e)
		}
		return sum
	}
	return p.walk.worst(r, s, p.delay) / delayUnit
}
