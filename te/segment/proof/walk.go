package proof

import (
	"math"
	"slices"

	"sextant/te/segment"
	"sextant/te/spf"
	"sextant/te/topology"
)

// never is a cost that no path has.
const never = math.MaxInt64 / 4

// hop is one SID: a node's, or with an edge that of its End.X.
type hop struct {
	node topology.Node // where it leads
	edge topology.Edge // NoEdge for a node SID
}

// route is a segment list and what its packets cross.
type route struct {
	hops  []hop
	edges []topology.Edge // in order of travel; with equal-cost branches all of them, ascending
	cost  int64           // under the costs of the search; with branches, of the dearest
}

// walker finds the cheapest segment list between two nodes for any edge costs, by the layered graph
// of Algorithm 2 without building it: best[k][v] is the least cost to stand at v after k SIDs,
// ready for the next. One goroutine uses it.
type walker struct {
	*space
	best  [][]int64
	prev  [][]origin
	lower []int64 // the least cost from each node to the target, whatever a SID can express
	toEnd []int64 // the cost from each node to the target by the target's node SID
	sweep sweep
	queue spf.Queue
	cost  []int64
	off   []bool
}

// origin is how a state of the layered graph was reached.
type origin struct {
	root topology.Node // where the last SID was taken up
	edge topology.Edge // of its End.X, or NoEdge
}

// sweep holds the costs from one root along the arcs of one SID.
type sweep struct {
	cost []int64
	via  []topology.Edge
	seen []topology.Node
}

func newWalker(s *space) *walker {
	n := s.view.Nodes()
	w := &walker{space: s, lower: make([]int64, n), toEnd: make([]int64, n)}
	w.sweep = sweep{cost: make([]int64, n), via: make([]topology.Edge, n)}
	for v := range n {
		w.sweep.cost[v] = never
	}
	for range s.sids {
		w.best = append(w.best, make([]int64, n))
		w.prev = append(w.prev, make([]origin, n))
	}
	return w
}

// cheapest finds the list of least cost over the edges that are not off. Costs must not be
// negative. Ties go to the list that is found first: fewer SIDs, then lower numbers.
func (w *walker) cheapest(s, t topology.Node, cost []int64, off []bool) (route, bool) {
	w.cost, w.off = cost, off
	w.bound(t)
	if s == t || w.lower[s] == never {
		return route{}, false
	}
	w.closing(t)
	for v := range w.best[0] {
		w.best[0][v] = never
	}
	w.best[0][s] = 0
	least, last := int64(never), end{}
	for k := 1; k <= w.sids; k++ {
		w.close(k, t, &least, &last)
		if k == w.sids {
			break
		}
		w.expand(k, least)
		if w.model == segment.ForcedAdjacency && w.best[k][t] < least {
			least, last = w.best[k][t], end{layer: k, root: topology.NoNode}
		}
	}
	if least == never {
		return route{}, false
	}
	return w.trace(s, t, last, least), true
}

// end is how the best list ends: with the node SID of the target taken up at root after layer SIDs,
// or with an End.X.
type end struct {
	layer int
	root  topology.Node
}

// close tries the target's node SID as SID number k.
func (w *walker) close(k int, t topology.Node, least *int64, last *end) {
	for v, c := range w.best[k-1] {
		if c == never || w.toEnd[v] == never || topology.Node(v) == t {
			continue
		}
		if c+w.toEnd[v] < *least {
			*least, *last = c+w.toEnd[v], end{layer: k - 1, root: topology.Node(v)}
		}
	}
}

// bound computes lower by Dijkstra's algorithm from the target.
func (w *walker) bound(t topology.Node) {
	for v := range w.lower {
		w.lower[v] = never
	}
	w.lower[t] = 0
	w.queue.Reset()
	w.queue.Push(spf.Item{Node: t})
	for w.queue.Len() > 0 {
		it := w.queue.Pop()
		if int64(it.Cost) != w.lower[it.Node] {
			continue
		}
		for _, e := range w.view.In(it.Node) {
			if !w.view.Up(e) || w.off[e] {
				continue
			}
			u, through := w.view.From(e), int64(it.Cost)+w.cost[e]
			if through < w.lower[u] {
				w.lower[u] = through
				w.queue.Push(spf.Item{Cost: uint64(through), Node: u})
			}
		}
	}
}

// closing computes toEnd.
func (w *walker) closing(t topology.Node) {
	w.run(t, w.arcsTo(t))
	copy(w.toEnd, w.sweep.cost)
	w.reset()
}

// expand computes best[k] from best[k-1]. States that can't beat what is known are left out.
func (w *walker) expand(k int, least int64) {
	copy(w.best[k], w.best[k-1])
	for v, c := range w.best[k-1] {
		fresh := c != never && (k == 1 || c < w.best[k-2][v])
		if !fresh || w.lower[v] == never || c+w.lower[v] >= least {
			continue
		}
		x := topology.Node(v)
		w.run(x, w.arcsFrom(x))
		for _, y := range w.sweep.seen {
			if y != x {
				w.offer(k, y, c+w.sweep.cost[y], origin{x, topology.NoEdge}, least)
			}
			if w.model == segment.ForcedAdjacency {
				w.cross(k, y, c+w.sweep.cost[y], x, least)
			}
		}
		w.reset()
	}
}

// cross offers what the End.X SIDs of u reach.
func (w *walker) cross(k int, u topology.Node, cost int64, root topology.Node, least int64) {
	for _, e := range w.view.Out(u) {
		if w.view.Up(e) && !w.off[e] {
			w.offer(k, w.view.To(e), cost+w.cost[e], origin{root, e}, least)
		}
	}
}

func (w *walker) offer(k int, v topology.Node, cost int64, from origin, least int64) {
	if cost < w.best[k][v] && cost+w.lower[v] < least {
		w.best[k][v], w.prev[k][v] = cost, from
	}
}

// run fills the sweep with the costs along arcs, which lead away from root or toward it. With
// equal-cost branches, a node counts only when all arcs to it are on, and costs what its dearest
// branch does.
func (w *walker) run(root topology.Node, arcs []arc) {
	s := &w.sweep
	s.cost[root] = 0
	s.seen = append(s.seen, root)
	for i := 0; i < len(arcs); {
		far, cost, via := arcs[i].far, int64(never), topology.NoEdge
		broken := false
		for ; i < len(arcs) && arcs[i].far == far; i++ {
			a := arcs[i]
			if w.off[a.edge] || s.cost[a.near] == never {
				broken = true
				continue
			}
			through := s.cost[a.near] + w.cost[a.edge]
			if cost == never || (w.model == segment.ECMP) == (through > cost) && through != cost {
				cost, via = through, a.edge
			}
		}
		if cost == never || broken && w.model == segment.ECMP {
			continue
		}
		s.cost[far], s.via[far] = cost, via
		s.seen = append(s.seen, far)
	}
}

func (w *walker) reset() {
	for _, v := range w.sweep.seen {
		w.sweep.cost[v] = never
	}
	w.sweep.seen = w.sweep.seen[:0]
}

// trace reads a list back from its end.
func (w *walker) trace(s, t topology.Node, last end, cost int64) route {
	r := route{cost: cost}
	k, v := last.layer, t
	if last.root != topology.NoNode {
		r.hops = append(r.hops, hop{t, topology.NoEdge})
		r.edges = w.behind(r.edges, last.root, t)
		v = last.root
	}
	for v != s || k > 0 {
		for k > 0 && w.best[k-1][v] == w.best[k][v] {
			k--
		}
		if k == 0 {
			break
		}
		from := w.prev[k][v]
		r.hops = append(r.hops, hop{v, from.edge})
		if from.edge != topology.NoEdge {
			r.edges = append(r.edges, from.edge)
			v = w.view.From(from.edge)
		}
		r.edges = w.behind(r.edges, from.root, v)
		v = from.root
		k--
	}
	slices.Reverse(r.hops)
	slices.Reverse(r.edges)
	if w.model == segment.ECMP {
		slices.Sort(r.edges)
		r.edges = slices.Compact(r.edges)
	}
	return r
}

// behind appends the edges by which the node SID of v leads from root, last first.
func (w *walker) behind(edges []topology.Edge, root, v topology.Node) []topology.Edge {
	arcs := w.arcsFrom(root)
	if w.model == segment.ECMP {
		return branches(edges, arcs, v)
	}
	w.run(root, arcs)
	for v != root {
		edges = append(edges, w.sweep.via[v])
		v = w.view.From(w.sweep.via[v])
	}
	w.reset()
	return edges
}

// branches appends all arcs that lead to v.
func branches(edges []topology.Edge, arcs []arc, v topology.Node) []topology.Edge {
	toward := map[topology.Node]bool{v: true}
	for _, a := range slices.Backward(arcs) {
		if toward[a.far] {
			toward[a.near] = true
			edges = append(edges, a.edge)
		}
	}
	return edges
}

// worst is what the list of a route costs along its dearest branches.
func (w *walker) worst(r route, s topology.Node, cost []int64) int64 {
	w.cost, w.off = cost, make([]bool, w.view.Edges())
	sum := int64(0)
	for _, h := range r.hops {
		w.run(s, w.arcsFrom(s))
		sum += w.sweep.cost[h.node]
		w.reset()
		s = h.node
	}
	return sum
}
