package maxflow

import (
	"slices"

	"sextant/te/topology"
)

// Sharing says what two paths must not have in common.
type Sharing uint8

const (
	// Edges: no directed edge twice. The greatest number is the same for links in both directions,
	// because two paths that cross a link in opposite directions can exchange their ends and leave
	// it; the paths that this package returns never do.
	Edges Sharing = iota
	// Nodes: no node twice besides the ends, and no edge twice.
	Nodes
)

// Network is a view of a graph prepared for flows of unit capacity. It holds the flow that was
// computed last, so it serves one goroutine; Clone makes another.
type Network struct {
	*plan
	open []bool // of each arc: whether it can take a unit in the residual network
	used []int32
	from topology.Node // of the last flow
	to   topology.Node

	search scratch
}

// plan is the part of a Network that no flow changes. Arc 2i is an edge, or the inside of a node;
// arc 2i+1 is the way back. A node v has the vertex v; where nodes may not be shared, it is entered
// at v and left at n+v.
type plan struct {
	view     topology.View
	sharing  Sharing
	vertices int
	head     []int32         // of each arc
	edge     []topology.Edge // of each arc; NoEdge inside a node
	cost     []int64
	first    []int32 // arcs that leave vertex v: arcs[first[v]:first[v+1]], by ascending number
	arcs     []int32
}

// NewNetwork prepares the edges of a view that are up and, unless allowed is nil, have allowed[e].
func NewNetwork(view topology.View, sharing Sharing, allowed []bool) *Network {
	p := &plan{view: view, sharing: sharing, vertices: view.Nodes()}
	if sharing == Nodes {
		p.vertices *= 2
	}
	var tails []int32
	add := func(tail, head int32, e topology.Edge, cost int64) {
		tails = append(tails, tail, head)
		p.head = append(p.head, head, tail)
		p.edge = append(p.edge, e, e)
		p.cost = append(p.cost, cost, -cost)
	}
	for e := range topology.Edge(view.Edges()) {
		if view.Up(e) && (allowed == nil || allowed[e]) {
			add(p.leave(view.From(e)), int32(view.To(e)), e, view.Delay(e))
		}
	}
	if sharing == Nodes {
		for v := range topology.Node(view.Nodes()) {
			add(int32(v), p.leave(v), topology.NoEdge, 0)
		}
	}
	p.index(tails)
	return p.network()
}

func (p *plan) network() *Network {
	n := &Network{plan: p, open: make([]bool, len(p.head)), search: newScratch(p.vertices)}
	for a := range n.open {
		n.open[a] = a&1 == 0
	}
	return n
}

// Clone returns a network without flow over the same edges, for another goroutine.
func (n *Network) Clone() *Network { return n.plan.network() }

// leave is the vertex at which paths leave v.
func (p *plan) leave(v topology.Node) int32 {
	if p.sharing == Nodes {
		return int32(p.view.Nodes()) + int32(v)
	}
	return int32(v)
}

func (p *plan) index(tails []int32) {
	p.first = make([]int32, p.vertices+1)
	for _, tail := range tails {
		p.first[tail+1]++
	}
	for v := range p.vertices {
		p.first[v+1] += p.first[v]
	}
	next := slices.Clone(p.first)
	p.arcs = make([]int32, len(tails))
	for a, tail := range tails {
		p.arcs[next[tail]] = int32(a)
		next[tail]++
	}
}

// out lists the arcs that leave a vertex.
func (p *plan) out(v int32) []int32 { return p.arcs[p.first[v]:p.first[v+1]] }

// scratch is the memory of a search. A vertex is reached in this search when its mark is the
// current round.
type scratch struct {
	round  int32
	mark   []int32
	parent []int32 // the arc by which it was reached
	queue  []int32
}

func newScratch(vertices int) scratch {
	return scratch{mark: make([]int32, vertices), parent: make([]int32, vertices)}
}

func (s *scratch) begin(v int32) {
	s.round++
	s.mark[v], s.parent[v] = s.round, -1
	s.queue = append(s.queue[:0], v)
}

// Max is the greatest number of disjoint paths from s to t, or limit if there are more; a limit of
// 0 means all. It is 0 when s is t. The paths stay with the network, for Paths and Cut, until the
// next call. It takes O(edges) per path.
func (n *Network) Max(s, t topology.Node, limit int) int {
	n.begin(s, t)
	if s == t {
		return 0
	}
	found := 0
	for limit == 0 || found < limit {
		if !n.augment() {
			break
		}
		found++
	}
	return found
}

// begin takes the last flow out.
func (n *Network) begin(s, t topology.Node) {
	for _, a := range n.used {
		n.open[a] = a&1 == 0
		n.open[a^1] = a&1 == 1
	}
	n.used = n.used[:0]
	n.from, n.to = s, t
}

// augment adds a path by breadth-first search in the residual network.
func (n *Network) augment() bool {
	target := int32(n.to)
	if !n.reach(target) {
		return false
	}
	for v := target; n.search.parent[v] >= 0; v = n.head[n.search.parent[v]^1] {
		n.push(n.search.parent[v])
	}
	return true
}

func (n *Network) push(arc int32) {
	n.open[arc], n.open[arc^1] = false, true
	n.used = append(n.used, arc)
}

// reach marks what the residual network leads to from the source, and stops at the target.
func (n *Network) reach(target int32) bool {
	s := &n.search
	s.begin(n.leave(n.from))
	for i := 0; i < len(s.queue); i++ {
		for _, a := range n.out(s.queue[i]) {
			w := n.head[a]
			if !n.open[a] || s.mark[w] == s.round {
				continue
			}
			s.mark[w], s.parent[w] = s.round, a
			if w == target {
				return true
			}
			s.queue = append(s.queue, w)
		}
	}
	return false
}

// Paths are the paths of the last flow, by ascending number of their first edge. No path visits a
// node twice, and none uses the opposite direction of a link of another.
func (n *Network) Paths() [][]topology.Edge {
	flow := n.flow()
	var paths [][]topology.Edge
	for _, e := range n.view.Out(n.from) {
		if !flow[e] {
			continue
		}
		if path := n.follow(e, flow); path != nil {
			paths = append(paths, path)
		}
	}
	return paths
}

// flow is the set of edges that carry a unit, without links that carry one in each direction.
func (n *Network) flow() map[topology.Edge]bool {
	flow := map[topology.Edge]bool{}
	for _, a := range n.used {
		if e := n.edge[a]; e != topology.NoEdge && !n.open[a&^1] {
			flow[e] = true
		}
	}
	for e := range flow {
		if r := n.view.Reverse(e); r != topology.NoEdge && flow[r] {
			delete(flow, e)
			delete(flow, r)
		}
	}
	return flow
}

// follow walks from an edge to the target, takes the edges out of the flow, and cuts out the loops
// of the walk. It returns nil if the walk comes back to the source, which only a flow around a
// cycle does.
func (n *Network) follow(e topology.Edge, flow map[topology.Edge]bool) []topology.Edge {
	path := []topology.Edge{}
	for {
		delete(flow, e)
		path = append(path, e)
		v := n.view.To(e)
		if v == n.to {
			return path
		}
		if v == n.from {
			return nil
		}
		if i := slices.IndexFunc(path,
			func(p topology.Edge) bool { return n.view.From(p) == v }); i >= 0 {
			path = path[:i]
		}
		next := slices.IndexFunc(n.view.Out(v), func(o topology.Edge) bool { return flow[o] })
		e = n.view.Out(v)[next]
	}
}
