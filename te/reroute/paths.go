package reroute

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"sextant/te/spf"
	"sextant/te/topology"
)

// Metric says what the length of a path is.
type Metric uint8

// The metrics.
const (
	Hops Metric = iota // the number of links
	IGP                // the sum of IGP weights
)

// ParseMetric reads the name of a metric: hops or igp.
func ParseMetric(text string) (Metric, error) {
	switch text {
	case "hops":
		return Hops, nil
	case "igp":
		return IGP, nil
	}
	return 0, fmt.Errorf("%q is no metric; choose hops or igp", text)
}

// Cost returns the length of each link of a view.
func (m Metric) Cost(view topology.View) func(topology.Edge) uint64 {
	if m == IGP {
		return func(e topology.Edge) uint64 { return uint64(view.Weight(e)) }
	}
	return func(topology.Edge) uint64 { return 1 }
}

// Paths draws paths of least length. It serves one goroutine.
type Paths struct {
	cost   func(topology.Edge) uint64
	ends   []topology.Node // by edge, the node that it leads to
	table  *spf.Table
	toward []*dag // by destination
}

// dag is the shortest paths to one destination. Numbers of paths are rounded beyond 2^53, which no
// test could tell.
type dag struct {
	nodes []dagNode       // one more than there are, for the end of the last one's edges
	edges []topology.Edge // those on shortest paths, by the node that they leave
	sums  []float64       // of uneven nodes
}

// dagNode is a node with its edges toward the destination.
type dagNode struct {
	first int32 // of edges
	// first of sums: for each edge, the number of paths by it and the earlier ones; even, if all
	// edges have the same number
	sums  int32
	paths float64
}

const even int32 = -1

// NewPaths prepares drawing from the paths of a view.
func NewPaths(view topology.View, metric Metric) *Paths {
	cost := metric.Cost(view)
	p := &Paths{cost: cost, ends: make([]topology.Node, view.Edges()),
		table: spf.New(view, cost, cost), toward: make([]*dag, view.Nodes())}
	for e := range p.ends {
		p.ends[e] = view.To(topology.Edge(e))
	}
	return p
}

// SetUp switches a link on or off. Paths that are affected are computed again when they are asked
// for.
func (p *Paths) SetUp(e topology.Edge, up bool) {
	change := spf.Change{Edge: e}
	if up {
		change.Cost = p.cost(e)
	}
	if p.table.Cost(e) == change.Cost {
		return
	}
	for _, effect := range p.table.Apply(change) {
		if effect.Toward && len(effect.Touched) > 0 {
			p.toward[effect.Root] = nil
		}
	}
}

// Count returns how many shortest paths there are.
func (p *Paths) Count(from, to topology.Node) float64 {
	if from == to {
		return 1
	}
	return p.to(to).nodes[from].paths
}

// Draw appends a random shortest path to a path, each with the same probability. It is false if
// there is none.
func (p *Paths) Draw(path []topology.Edge, from, to topology.Node,
	random *rand.PCG) ([]topology.Edge, bool) {
	d := p.to(to)
	for from != to {
		first, end := d.nodes[from].first, d.nodes[from+1].first
		if first == end {
			return path, false
		}
		if end-first > 1 {
			first = d.pick(&d.nodes[from], end-first, random)
		}
		path = append(path, d.edges[first])
		from = p.ends[d.edges[first]]
	}
	return path, true
}

// all appends the shortest paths, each behind the links before.
func (p *Paths) all(paths [][]topology.Edge, before []topology.Edge,
	from, to topology.Node) [][]topology.Edge {
	if from == to {
		return append(paths, slices.Clone(before))
	}
	d := p.to(to)
	for _, e := range d.edges[d.nodes[from].first:d.nodes[from+1].first] {
		paths = p.all(paths, append(before, e), p.ends[e], to)
	}
	return paths
}

// fraction is a random number from 0 up to, but not including, 1.
func fraction(random *rand.PCG) float64 { return float64(random.Uint64()>>11) / (1 << 53) }

// pick chooses one of the edges of a node, in proportion to the paths by each.
func (d *dag) pick(v *dagNode, edges int32, random *rand.PCG) int32 {
	if v.sums == even {
		return v.first + int32(uint64(uint32(random.Uint64()))*uint64(edges)>>32)
	}
	x := fraction(random) * v.paths
	i, last := int32(0), edges-1
	for i < last {
		if middle := (i + last) / 2; d.sums[v.sums+middle] > x {
			last = middle
		} else {
			i = middle + 1
		}
	}
	return v.first + i
}

func (p *Paths) to(root topology.Node) *dag {
	if p.toward[root] == nil {
		p.toward[root] = newDAG(p.table.To(root))
	}
	return p.toward[root]
}

func newDAG(row *spf.Row) *dag {
	n := len(row.Dist)
	d := &dag{nodes: make([]dagNode, n+1)}
	order := make([]topology.Node, n)
	var next []topology.Node // by edge of d
	for v := range topology.Node(n) {
		order[v] = v
		for _, a := range row.Back(v) {
			if row.TightBack(v, a) {
				d.edges, next = append(d.edges, a.Edge), append(next, a.Node)
			}
		}
		d.nodes[v+1].first = int32(len(d.edges))
	}
	slices.SortStableFunc(order, func(a, b topology.Node) int {
		return cmp.Compare(row.Dist[a], row.Dist[b])
	})
	for _, v := range order {
		d.count(v, row.Root, next[d.nodes[v].first:d.nodes[v+1].first])
	}
	return d
}

// count adds up the paths of a node by its next nodes, which have been counted.
func (d *dag) count(v, root topology.Node, next []topology.Node) {
	node := &d.nodes[v]
	node.sums = even
	first := int32(len(d.sums))
	for i, u := range next {
		paths := d.nodes[u].paths
		if u == root {
			paths = 1
		}
		if i > 0 && paths != node.paths/float64(i) {
			node.sums = first
		}
		node.paths += paths
		d.sums = append(d.sums, node.paths)
	}
	if node.sums == even {
		d.sums = d.sums[:first]
	}
}
