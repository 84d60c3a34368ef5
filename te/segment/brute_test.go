package segment_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sextant/te/segment"
	"sextant/te/topology"
)

// brute answers queries by listing everything: all simple paths, all shortest paths, all lists. It
// shares no code with the product and knows its graph as a list of edges.
type brute struct {
	g     *topology.Graph
	on    func(topology.Edge) bool
	weigh func(topology.Edge) int64
	short map[[2]topology.Node][][]topology.Edge // all shortest paths, filled when asked for
}

func newBrute(v topology.View) *brute {
	return &brute{g: v.Graph, on: v.Up,
		weigh: func(e topology.Edge) int64 { return int64(v.Weight(e)) },
		short: map[[2]topology.Node][][]topology.Edge{}}
}

// simple lists all simple paths over the edges allowed.
func (b *brute) simple(from, to topology.Node, allowed func(topology.Edge) bool) [][]topology.Edge {
	var all [][]topology.Edge
	var walk func(at topology.Node, visited []topology.Node, taken []topology.Edge)
	walk = func(at topology.Node, visited []topology.Node, taken []topology.Edge) {
		if at == to {
			all = append(all, slices.Clone(taken))
			return
		}
		for e := range topology.Edge(b.g.Edges()) {
			if b.g.From(e) == at && b.on(e) && allowed(e) && !slices.Contains(visited, b.g.To(e)) {
				walk(b.g.To(e), append(slices.Clone(visited), b.g.To(e)), append(taken, e))
			}
		}
	}
	walk(from, []topology.Node{from}, nil)
	return all
}

// shortest lists all shortest paths.
func (b *brute) shortest(from, to topology.Node) [][]topology.Edge {
	key := [2]topology.Node{from, to}
	if known, ok := b.short[key]; ok {
		return known
	}
	var best [][]topology.Edge
	least := int64(-1)
	for _, p := range b.simple(from, to, func(topology.Edge) bool { return true }) {
		weight := int64(0)
		for _, e := range p {
			weight += b.weigh(e)
		}
		if least < 0 || weight < least {
			best, least = nil, weight
		}
		if weight == least {
			best = append(best, p)
		}
	}
	b.short[key] = best
	return best
}

// segment tells whether a part of a path can be one node segment.
func (b *brute) segment(part []topology.Edge, model segment.Model) bool {
	if len(part) == 0 {
		return true
	}
	all := b.shortest(b.g.From(part[0]), b.g.To(part[len(part)-1]))
	if model == segment.Paper {
		return slices.ContainsFunc(all,
			func(p []topology.Edge) bool { return slices.Equal(p, part) })
	}
	return len(all) == 1 && slices.Equal(all[0], part)
}

// sids is the least number of SIDs of any list for a path; 0 if there is none.
func (b *brute) sids(path []topology.Edge, model segment.Model) int {
	const none = 1 << 20
	best := make([]int, len(path)+1) // by how far along the path, before the last node SID
	for to := 1; to <= len(path); to++ {
		best[to] = none
		for from := range to {
			if b.segment(path[from:to], model) || model == segment.ForcedAdjacency &&
				b.segment(path[from:to-1], model) {
				best[to] = min(best[to], best[from]+1)
			}
		}
	}
	least := none
	for from := range len(path) + 1 {
		if b.segment(path[from:], model) {
			// A zero-length last segment is needed only behind an End.X; behind a node SID the part
			// before would do.
			least = min(least, best[from]+1)
			if from == len(path) && best[from] < none && b.endsByNode(path, model, best) {
				least = min(least, best[from])
			}
		}
	}
	if least >= none {
		return 0
	}
	return least
}

// endsByNode tells whether one of the shortest lists to the end of the path ends in a node SID.
func (b *brute) endsByNode(path []topology.Edge, model segment.Model, best []int) bool {
	for from := range len(path) {
		if best[from]+1 == best[len(path)] && b.segment(path[from:], model) {
			return true
		}
	}
	return false
}

// cost is what paths are compared by.
type cost struct {
	latency    int64
	hops, sids int
}

func (c cost) compare(d cost) int {
	return cmp.Or(cmp.Compare(c.latency, d.latency), cmp.Compare(c.hops, d.hops),
		cmp.Compare(c.sids, d.sids))
}

func (b *brute) costOf(path []topology.Edge) cost {
	c := cost{hops: len(path)}
	for _, e := range path {
		c.latency += b.g.Delay(e)
	}
	return c
}

// best is the least cost of a path over the edges that are free, in at most so many SIDs.
func (b *brute) best(q segment.Query, free func(topology.Edge) bool) (best cost, found bool) {
	if q.Model == segment.ECMP {
		return b.bestUnion(q, free)
	}
	for _, p := range b.simple(q.From, q.To, free) {
		c := b.costOf(p)
		c.sids = b.sids(p, q.Model)
		if c.sids > 0 && c.sids <= q.MaxSIDs && (!found || c.compare(best) < 0) {
			best, found = c, true
		}
	}
	return best, found
}

// bestUnion goes through all lists of nodes.
func (b *brute) bestUnion(q segment.Query, free func(topology.Edge) bool) (best cost, found bool) {
	var extend func(at topology.Node, so cost)
	extend = func(at topology.Node, so cost) {
		if at == q.To && so.sids > 0 && (!found || so.compare(best) < 0) {
			best, found = so, true
		}
		if so.sids == q.MaxSIDs {
			return
		}
		for next := range topology.Node(b.g.Nodes()) {
			paths := b.shortest(at, next)
			if next == at || len(paths) == 0 || slices.ContainsFunc(paths,
				func(p []topology.Edge) bool {
					return slices.ContainsFunc(p, func(e topology.Edge) bool { return !free(e) })
				}) {
				continue
			}
			var worst cost
			for _, p := range paths {
				if c := b.costOf(p); c.compare(worst) > 0 {
					worst = c
				}
			}
			extend(next, cost{so.latency + worst.latency, so.hops + worst.hops, so.sids + 1})
		}
	}
	extend(q.From, cost{})
	return best, found
}

// conflicts tells whether a path that is disjoint from the edges taken may cross an edge.
func (b *brute) conflicts(q segment.Query, taken []topology.Edge, e topology.Edge) bool {
	inner := func(v topology.Node) bool { return v != q.From && v != q.To }
	return slices.ContainsFunc(taken, func(t topology.Edge) bool {
		sameLink := t == e || b.g.Reverse(t) == e
		switch q.Disjoint {
		case segment.EdgeDisjoint:
			return t == e
		case segment.LinkDisjoint:
			return sameLink
		case segment.NodeDisjoint:
			return t == e || inner(b.g.From(t)) && b.g.To(e) == b.g.From(t) || inner(b.g.To(t)) &&
				b.g.To(e) == b.g.To(t)
		}
		if sameLink {
			return true
		}
		return slices.ContainsFunc(b.risks(t),
			func(group uint32) bool { return slices.Contains(b.risks(e), group) })
	})
}

// risks are the groups of a link, whichever direction they were given to.
func (b *brute) risks(e topology.Edge) []uint32 {
	groups := slices.Clone(b.g.Edge(e).SRLGs)
	if back := b.g.Reverse(e); back != topology.NoEdge {
		groups = append(groups, b.g.Edge(back).SRLGs...)
	}
	return groups
}

// networksPerCheck networks are drawn from each seed, so that a test sees thousands.
const networksPerCheck = 20

func seeded(t *rapid.T) *rand.Rand {
	return rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
}

// multigraph draws a network with parallel and one-way links, shared-risk groups, and few different
// weights and delays. It is drawn evenly from a seed, as a shrinker's love of small numbers makes
// dull networks.
func multigraph(t *rapid.T, rnd *rand.Rand) *topology.Graph {
	b := topology.NewBuilder("drawn", 0)
	nodes := 3 + rnd.IntN(4)
	for v := range nodes {
		if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprint("n", v)}); err != nil {
			t.Fatal(err)
		}
	}
	add := func(from, to int, weight, delay int, groups []uint32) {
		spec := topology.EdgeSpec{From: topology.Node(from), To: topology.Node(to),
			Weight: uint32(weight), Delay: int64(delay), SRLGs: groups}
		if _, err := b.AddEdge(spec); err != nil {
			t.Fatal(err)
		}
	}
	weights, delays := 1+rnd.IntN(4), 1+rnd.IntN(5)
	for range nodes + rnd.IntN(6) {
		from := rnd.IntN(nodes)
		to := (from + 1 + rnd.IntN(nodes-1)) % nodes
		weight, delay := 1+rnd.IntN(weights), rnd.IntN(delays)
		var groups []uint32
		if group := rnd.Uint32N(8); group < 3 {
			groups = []uint32{group}
		}
		add(from, to, weight, delay, groups)
		switch rnd.IntN(6) {
		case 0: // one way
		case 1:
			add(to, from, 1+rnd.IntN(weights), rnd.IntN(delays), nil)
		default:
			add(to, from, weight, delay, groups)
		}
	}
	return b.Build()
}

func query(g *topology.Graph, rnd *rand.Rand) segment.Query {
	from := rnd.IntN(g.Nodes())
	to := (from + 1 + rnd.IntN(g.Nodes()-1)) % g.Nodes()
	disjoint := []segment.Disjointness{segment.EdgeDisjoint, segment.LinkDisjoint,
		segment.NodeDisjoint, segment.SRLGDisjoint}
	return segment.Query{
		From: topology.Node(from), To: topology.Node(to), MaxSIDs: 1 + rnd.IntN(5),
		Model: segment.Models()[rnd.IntN(4)], Disjoint: disjoint[rnd.IntN(4)],
	}
}

func engine(t testing.TB, v topology.View) *segment.Engine {
	t.Helper()
	e, err := segment.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestPathsAreBest compares each path of an answer with the best there is given those before it,
// and the end of the answer with there being none.
func TestPathsAreBest(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		rnd := seeded(r)
		for range networksPerCheck {
			g := multigraph(r, rnd)
			checkAnswer(r, engine(t, g.All()), newBrute(g.All()), query(g, rnd))
		}
	})
}

func checkAnswer(t *rapid.T, e *segment.Engine, b *brute, q segment.Query) {
	a, err := e.Disjoint(q)
	if err != nil {
		t.Fatal(err)
	}
	if a.Rearranged {
		checkRearranged(t, e, a)
		q.Greedy = true
		if a, err = e.Disjoint(q); err != nil {
			t.Fatal(err)
		}
	}
	var taken []topology.Edge
	free := func(edge topology.Edge) bool { return !b.conflicts(q, taken, edge) }
	for i, p := range a.Paths {
		want, found := b.best(q, free)
		got := cost{p.Latency, len(p.Edges), len(p.SIDs)}
		if q.Model == segment.ECMP {
			got.hops = want.hops // not said of a union
		}
		if !found || got != want {
			t.Fatalf("%v: path %d is %+v and costs %+v, best is %+v, %v", q, i, p, got, want, found)
		}
		checkVerdict(t, e, q, p)
		taken = append(taken, p.Edges...)
	}
	if best, found := b.best(q, free); found {
		t.Fatalf("%v: %d paths found, %v is left for another one", q, len(a.Paths), best)
	}
	if open := len(b.simple(q.From, q.To, free)) > 0; open != (a.Stop == segment.ListTooLong) ||
		!open != (a.Stop == segment.NoWay) {
		t.Fatalf("%v: a way is left: %v, but the search stopped for %q", q, open, a.Stop)
	}
	overlaps, err := e.Overlaps(a)
	if err != nil || len(overlaps) > 0 && q.Model != segment.Paper {
		t.Fatalf("%v: %v overlap at %v, %v", q, a.Paths, overlaps, err)
	}
}

// checkRearranged checks an answer whose first path is not the best: with it alone there would be
// one path.
func checkRearranged(t *rapid.T, e *segment.Engine, a segment.Answer) {
	overlaps, err := e.Overlaps(a)
	if err != nil || len(overlaps) > 0 && a.Query.Model != segment.Paper {
		t.Fatalf("%v: %v overlap at %v, %v", a.Query, a.Paths, overlaps, err)
	}
	for i, p := range a.Paths {
		checkVerdict(t, e, a.Query, p)
		for _, other := range a.Paths[:i] {
			if len(p.SIDs) > a.Query.MaxSIDs || slices.ContainsFunc(p.Edges,
				func(edge topology.Edge) bool { return slices.Contains(other.Edges, edge) }) {
				t.Fatalf("%v: %+v is too long, or meets %+v", a.Query, p, other)
			}
		}
	}
	greedy := a.Query
	greedy.Greedy = true
	if one, err := e.Disjoint(greedy); err != nil || len(one.Paths) != 1 ||
		one.Paths[0].Latency != a.Least || len(a.Paths) < 2 {
		t.Fatalf("%v: rearranged to %v from %v, %v", a.Query, a.Paths, one.Paths, err)
	}
}

func checkVerdict(t *rapid.T, e *segment.Engine, q segment.Query, p segment.Path) {
	v, err := e.Verify(q.From, p)
	if err != nil || len(v.Missing) > 0 || v.Forced != p.Forced {
		t.Fatalf("%v: %+v replays as %+v, %v", q, p, v, err)
	}
	if q.Model != segment.Paper && (len(v.Left) > 0 || v.Latency != p.Latency) {
		t.Fatalf("%v: %+v leaves its way: %+v", q, p, v)
	}
	if !p.Forced && (q.Model == segment.Forced || q.Model == segment.ForcedAdjacency) {
		t.Fatalf("%v: %+v is loose", q, p)
	}
	if last := p.SIDs[len(p.SIDs)-1]; last.Node != q.To || last.Link != topology.NoEdge {
		t.Fatalf("%v: %+v does not end in a SID of the destination", q, p)
	}
}

// TestListsAreMinimal segments every simple path of a network.
func TestListsAreMinimal(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		g := multigraph(r, seeded(r))
		e, b := engine(t, g.All()), newBrute(g.All())
		for _, p := range b.simple(0, 1, func(topology.Edge) bool { return true }) {
			for _, m := range []segment.Model{segment.Paper, segment.Forced,
				segment.ForcedAdjacency} {
				sids, err := e.Segment(p, m)
				if want := b.sids(p, m); len(sids) != want || (err == nil) != (want > 0) {
					r.Fatalf("%v in model %s: %v, %v; the shortest list has %d SIDs", p, m, sids,
						err, want)
				}
				if err != nil {
					continue
				}
				path := segment.Path{Edges: p, SIDs: sids}
				if v, err := e.Verify(0, path); err != nil || len(v.Missing) > 0 ||
					m != segment.Paper && (!v.Forced || len(v.Left) > 0) {
					r.Fatalf("%v in model %s: %v replays as %+v, %v", p, m, sids, v, err)
				}
			}
		}
	})
}
