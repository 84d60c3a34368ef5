package packet

import (
	"math"

	"sextant/te/topology"
)

// unreachable is the distance of a node from which there is no path.
const unreachable = math.MaxInt32

// routing knows the shortest paths of a network: distances to the nodes that are asked for, and the
// next hops that follow.
type routing struct {
	n        *Network
	down     []bool    // links
	distance [][]int32 // by destination; nil: not computed
	hops     [][]hops  // next hops by destination; nil: not computed
}

// hops are the next hops from one node, a part of a slice that those of all nodes share.
type hops struct {
	links []int32
}

func newRouting(n *Network) *routing {
	return &routing{n: n, down: make([]bool, len(n.links)), distance: make([][]int32, len(n.out)),
		hops: make([][]hops, len(n.out))}
}

// forget drops what was computed, because links failed or returned.
func (r *routing) forget() {
	clear(r.distance)
	clear(r.hops)
}

// to is the distance of all nodes to a destination, in the weights of the topology.
func (r *routing) to(destination Node) []int32 {
	if d := r.distance[destination]; d != nil {
		return d
	}
	d := make([]int32, len(r.n.out))
	for i := range d {
		d[i] = unreachable
	}
	d[destination] = 0
	g := r.n.Graph
	heap := spfHeap{{0, destination}}
	for len(heap) > 0 {
		cost, v := heap.pop()
		if cost > d[v] || v != destination && !r.n.relay[v] {
			continue
		}
		for _, e := range g.In(topology.Node(v)) {
			u := Node(g.From(e))
			if c := cost + int32(g.Weight(e)); !r.down[e] && c < d[u] {
				d[u] = c
				heap.push(reached{c, u})
			}
		}
	}
	r.distance[destination] = d
	return d
}

// next lists the links that lead from a node to a destination on shortest paths.
func (r *routing) next(v, destination Node) []int32 {
	table := r.hops[destination]
	if table == nil {
		table = r.table(destination)
	}
	return table[v].links
}

func (r *routing) table(destination Node) []hops {
	d, table := r.to(destination), make([]hops, len(r.n.out))
	var all []int32
	for v, out := range r.n.out {
		first := len(all)
		for _, l := range out {
			to := r.n.links[l].to
			onward := to == destination || r.n.relay[to]
			if d[v] != unreachable && onward && !r.down[l] && d[to] != unreachable &&
				d[v] == d[to]+int32(r.n.Graph.Weight(topology.Edge(l))) {
				all = append(all, l)
			}
		}
		table[v].links = all[first:len(all):len(all)]
	}
	r.hops[destination] = table
	return table
}

// walk appends the links of a shortest path to a route; at each node, choose picks one of the next
// hops. It reports whether there is a path.
func (r *routing) walk(route []int32, from, to Node,
	choose func(at Node, among int) int) ([]int32, bool) {
	for v := from; v != to; {
		next := r.next(v, to)
		if len(next) == 0 {
			return route, false
		}
		l := next[0]
		if len(next) > 1 {
			l = next[choose(v, len(next))]
		}
		route = append(route, l)
		v = r.n.links[l].to
	}
	return route, true
}

// all lists shortest paths from one host to another, at most limit of them, in the order of their
// links.
func (r *routing) all(from, to Node, limit int) [][]int32 {
	var found [][]int32
	var path []int32
	var visit func(v Node)
	visit = func(v Node) {
		if len(found) == limit {
			return
		}
		if v == to {
			found = append(found, append([]int32(nil), path...))
			return
		}
		for _, l := range r.next(v, to) {
			path = append(path, l)
			visit(r.n.links[l].to)
			path = path[:len(path)-1]
		}
	}
	visit(from)
	return found
}

// mix is the finalizer of splitmix64, a bijection that spreads every bit.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// hashed picks by a hash of a label and the node, as ECMP switches with hash seeds of their own do.
func hashed(label uint64) func(Node, int) int {
	return func(at Node, among int) int {
		return int(mix(label+uint64(at)*0x9e3779b97f4a7c15) >> 32 * uint64(among) >> 32)
	}
}

// reached is a node with the cost at which it was reached.
type reached struct {
	cost int32
	node Node
}

type spfHeap []reached

func (h *spfHeap) push(x reached) {
	*h = append(*h, x)
	for i := len(*h) - 1; i > 0; {
		up := (i - 1) / 2
		if (*h)[up].cost <= (*h)[i].cost {
			break
		}
		(*h)[up], (*h)[i] = (*h)[i], (*h)[up]
		i = up
	}
}

func (h *spfHeap) pop() (int32, Node) {
	top, last := (*h)[0], len(*h)-1
	(*h)[0] = (*h)[last]
	*h = (*h)[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if (*h)[child].cost < (*h)[least].cost {
				least = child
			}
		}
		if least == i {
			return top.cost, top.node
		}
		(*h)[i], (*h)[least] = (*h)[least], (*h)[i]
		i = least
	}
}
