package maxflow

import (
	"math"

	"sextant/te/spf"
	"sextant/te/topology"
)

// Cheapest computes k disjoint paths from s to t of the least total cost, where cost[e] >= 0 is
// what edge e costs; nil stands for the delays of the graph. It returns as many as there are, up to
// k, and their total cost. The paths stay with the network, for Paths.
//
// Successive shortest paths over reduced costs: the first two are Suurballe's pair. The order of
// ties is fixed by the numbers of vertices and edges, so the answer is the same in each run.
func (n *Network) Cheapest(s, t topology.Node, k int, cost []int64) (found int, total int64) {
	n.begin(s, t)
	if s == t {
		return 0, 0
	}
	d := &dijkstra{network: n, cost: n.cost, potential: make([]int64, n.vertices),
		distance: make([]int64, n.vertices)}
	if cost != nil {
		d.cost = n.arcCosts(cost)
	}
	for found < k && d.run(n.leave(s), int32(t)) {
		found++
		for v := int32(t); n.search.parent[v] >= 0; v = n.head[n.search.parent[v]^1] {
			a := n.search.parent[v]
			n.push(a)
			total += d.cost[a]
		}
	}
	return found, total
}

func (p *plan) arcCosts(cost []int64) []int64 {
	arcs := make([]int64, len(p.head))
	for a := 0; a < len(arcs); a += 2 {
		if e := p.edge[a]; e != topology.NoEdge {
			arcs[a], arcs[a+1] = cost[e], -cost[e]
		}
	}
	return arcs
}

// dijkstra finds shortest paths in the residual network. Its potentials keep the reduced costs from
// being negative.
type dijkstra struct {
	network   *Network
	cost      []int64 // of arcs
	potential []int64
	distance  []int64
	queue     spf.Heap // of vertices
}

const unreached = math.MaxInt64

// run leaves the tree of shortest paths in the network's parents, and tells whether the target is
// in it.
func (d *dijkstra) run(source, target int32) bool {
	n := d.network
	for v := range d.distance {
		d.distance[v] = unreached
	}
	d.distance[source] = 0
	n.search.parent[source] = -1
	d.queue = d.queue[:0]
	d.queue.Push(spf.Item{Node: topology.Node(source)})
	for len(d.queue) > 0 {
		v := d.queue.Pop()
		if int32(v.Node) == target {
			break
		}
		if int64(v.Cost) == d.distance[v.Node] {
			d.relax(int32(v.Node))
		}
	}
	if d.distance[target] == unreached {
		return false
	}
	for v, distance := range d.distance {
		d.potential[v] += min(distance, d.distance[target])
	}
	return true
}

func (d *dijkstra) relax(v int32) {
	n := d.network
	for _, a := range n.out(v) {
		if !n.open[a] {
			continue
		}
		w := n.head[a]
		distance := d.distance[v] + d.cost[a] + d.potential[v] - d.potential[w]
		if distance < d.distance[w] {
			d.distance[w] = distance
			n.search.parent[w] = a
			d.queue.Push(spf.Item{Cost: uint64(distance), Node: topology.Node(w)})
		}
	}
}
