package proof_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"sextant/te/segment"
	"sextant/te/topology"
)

// randomGraph is a small multigraph: parallel links, one-way links, shared risks and unconnected
// parts occur.
func randomGraph(t *testing.T, r *rand.Rand, nodes, links int) *topology.Graph {
	t.Helper()
	b := topology.NewBuilder("random", 0)
	for v := range nodes {
		if _, err := b.AddNode(topology.NodeSpec{Name: fmt.Sprintf("n%d", v)}); err != nil {
			t.Fatal(err)
		}
	}
	for range links {
		from := topology.Node(r.IntN(nodes))
		to := topology.Node((int(from) + 1 + r.IntN(nodes-1)) % nodes)
		spec := topology.EdgeSpec{From: from, To: to, Weight: 1 + uint32(r.IntN(3)),
			Delay: int64(r.IntN(6))}
		if r.IntN(3) == 0 {
			spec.SRLGs = []uint32{uint32(r.IntN(3))}
		}
		if _, err := b.AddEdge(spec); err != nil {
			t.Fatal(err)
		}
		if r.IntN(5) > 0 {
			spec.From, spec.To = to, from
			if _, err := b.AddEdge(spec); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Build()
}

// brute knows all that lists can do, by trying everything.
type brute struct {
	g     *topology.Graph
	dist  [][]int
	count [][]int // shortest paths, by number
	model segment.Model
	sids  int
	kind  segment.Disjointness
	avoid []topology.Edge
}

const far = 1 << 20

func newBrute(g *topology.Graph, model segment.Model, sids int, kind segment.Disjointness) *brute {
	b := &brute{g: g, model: model, sids: sids, kind: kind}
	n := g.Nodes()
	for u := range n {
		b.dist = append(b.dist, slices.Repeat([]int{far}, n))
		b.count = append(b.count, make([]int, n))
		b.dist[u][u] = 0
	}
	for range n {
		for u := range n {
			for e := range topology.Edge(g.Edges()) {
				b.dist[u][g.To(e)] = min(b.dist[u][g.To(e)], b.dist[u][g.From(e)]+int(g.Weight(e)))
			}
		}
	}
	for u := range n {
		for v := range n {
			b.count[u][v] = b.paths(topology.Node(u), topology.Node(v))
		}
	}
	return b
}

// tight tells whether e is on a shortest path from u.
func (b *brute) tight(u topology.Node, e topology.Edge) bool {
	from, to := b.dist[u][b.g.From(e)], b.dist[u][b.g.To(e)]
	return from < far && from+int(b.g.Weight(e)) == to
}

func (b *brute) paths(u, v topology.Node) int {
	if u == v {
		return 1
	}
	sum := 0
	for _, e := range b.g.In(v) {
		if b.tight(u, e) {
			sum += b.paths(u, b.g.From(e))
		}
	}
	return sum
}

// way is what one list crosses, and how long that takes.
type way struct {
	edges []topology.Edge
	delay int64
}

// ways lists all that one list can do from s to t.
func (b *brute) ways(s, t topology.Node) []way {
	if b.model == segment.ECMP {
		return b.lists(s, t, way{}, b.sids)
	}
	var ways []way
	var walk func(v topology.Node, visited []topology.Node, path []topology.Edge)
	walk = func(v topology.Node, visited []topology.Node, path []topology.Edge) {
		if v == t {
			if b.length(path) <= b.sids {
				ways = append(ways, way{slices.Clone(path), b.delay(path)})
			}
			return
		}
		for _, e := range b.g.Out(v) {
			if w := b.g.To(e); !slices.Contains(visited, w) {
				walk(w, append(visited, w), append(path, e))
			}
		}
	}
	walk(s, []topology.Node{s}, nil)
	return ways
}

func (b *brute) delay(path []topology.Edge) int64 {
	sum := int64(0)
	for _, e := range path {
		sum += b.g.Delay(e)
	}
	return sum
}

// length is the least number of SIDs for a path.
func (b *brute) length(path []topology.Edge) int {
	n := len(path)
	least := make([]int, n+1) // to stand behind i edges
	adjacent := make([]int, n+1)
	for i := 1; i <= n; i++ {
		least[i], adjacent[i] = far, far
		for j := range i {
			if b.single(path[j:i]) {
				least[i] = min(least[i], 1+least[j])
			}
			if b.model == segment.ForcedAdjacency && b.single(path[j:i-1]) {
				adjacent[i] = min(adjacent[i], 1+least[j])
			}
		}
		if i == n {
			return min(least[i], adjacent[i]+1)
		}
		least[i] = min(least[i], adjacent[i])
	}
	return 0
}

// single tells whether one node SID does for these edges.
func (b *brute) single(path []topology.Edge) bool {
	if len(path) == 0 {
		return true
	}
	u, v := b.g.From(path[0]), b.g.To(path[len(path)-1])
	for _, e := range path {
		if !b.tight(u, e) {
			return false
		}
	}
	return b.model == segment.Paper || b.count[u][v] == 1
}

// lists tries all lists of node SIDs, with all their branches.
func (b *brute) lists(v, t topology.Node, so way, left int) []way {
	if left == 0 {
		return nil
	}
	var ways []way
	for x := range topology.Node(b.g.Nodes()) {
		if x == v || b.dist[v][x] == far {
			continue
		}
		next := way{slices.Clone(so.edges), so.delay + b.worst(v, x)}
		for e := range topology.Edge(b.g.Edges()) {
			if b.tight(v, e) && b.dist[v][b.g.To(e)]+b.dist[b.g.To(e)][x] == b.dist[v][x] &&
				!slices.Contains(next.edges, e) {
				next.edges = append(next.edges, e)
			}
		}
		if x == t {
			ways = append(ways, next)
		} else {
			ways = append(ways, b.lists(x, t, next, left-1)...)
		}
	}
	return ways
}

func (b *brute) worst(u, v topology.Node) int64 {
	most := int64(0)
	for _, e := range b.g.In(v) {
		if u != v && b.tight(u, e) {
			most = max(most, b.worst(u, b.g.From(e))+b.g.Delay(e))
		}
	}
	return most
}

// meet tells whether two ways share something.
func (b *brute) meet(p, q way, s, t topology.Node) bool {
	for _, e := range p.edges {
		for _, f := range q.edges {
			if b.same(e, f, s, t) {
				return true
			}
		}
	}
	return false
}

func (b *brute) same(e, f topology.Edge, s, t topology.Node) bool {
	link := e == f || b.g.Reverse(e) == f
	switch b.kind {
	case segment.EdgeDisjoint:
		return e == f
	case segment.NodeDisjoint:
		v := b.g.To(e)
		return e == f || v == b.g.To(f) && v != s && v != t
	case segment.SRLGDisjoint:
		for _, x := range b.risks(e) {
			if slices.Contains(b.risks(f), x) {
				return true
			}
		}
	}
	return link
}

func (b *brute) risks(e topology.Edge) []uint32 {
	risks := slices.Clone(b.g.Edge(e).SRLGs)
	if r := b.g.Reverse(e); r != topology.NoEdge {
		risks = append(risks, b.g.Edge(r).SRLGs...)
	}
	return risks
}

// outcome is the greatest number of disjoint ways, and of two the least total and the least maximum
// of delays.
type outcome struct {
	most       int
	total, max int64
}

func (b *brute) solve(s, t topology.Node) outcome {
	ways := slices.DeleteFunc(b.ways(s, t), func(w way) bool {
		return slices.ContainsFunc(b.avoid,
			func(e topology.Edge) bool { return slices.Contains(w.edges, e) })
	})
	o := outcome{total: far, max: far}
	var grow func(from int, chosen []way)
	grow = func(from int, chosen []way) {
		o.most = max(o.most, len(chosen))
		if len(chosen) == 2 {
			o.total = min(o.total, chosen[0].delay+chosen[1].delay)
			o.max = min(o.max, max(chosen[0].delay, chosen[1].delay))
		}
		for i := from; i < len(ways); i++ {
			if !slices.ContainsFunc(chosen, func(w way) bool { return b.meet(w, ways[i], s, t) }) {
				grow(i+1, append(chosen, ways[i]))
			}
		}
	}
	grow(0, nil)
	return o
}
