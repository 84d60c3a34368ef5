package inspect

import (
	"slices"

	"sextant/te/topology"
)

// Range is the least and the most of something.
type Range struct {
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// rangeOf is 0 to 0 for nothing.
func rangeOf[T any](items int, value func(T) int64, item func(int) T) Range {
	var r Range
	for i := range items {
		v := value(item(i))
		if i == 0 || v < r.Min {
			r.Min = v
		}
		if i == 0 || v > r.Max {
			r.Max = v
		}
	}
	return r
}

// Summary is a topology in numbers.
type Summary struct {
	Nodes        int   `json:"nodes"`
	Links        int   `json:"links"` // both directions of a link are one
	Edges        int   `json:"edges"`
	Degree       Range `json:"degree"` // edges that leave a node
	Weight       Range `json:"weight"`
	Delay        Range `json:"delay"` // in the graph's unit
	CapacityKbps Range `json:"capacityKbps"`
	Places       int   `json:"places"` // nodes with coordinates
}

// Summarize counts and measures a topology.
func Summarize(g *topology.Graph) Summary {
	edge := func(i int) topology.Edge { return topology.Edge(i) }
	s := Summary{
		Nodes: g.Nodes(), Edges: g.Edges(),
		Degree: rangeOf(g.Nodes(), func(v topology.Node) int64 { return int64(len(g.Out(v))) },
			func(i int) topology.Node { return topology.Node(i) }),
		Weight: rangeOf(g.Edges(), func(e topology.Edge) int64 { return int64(g.Weight(e)) },
			edge),
		Delay: rangeOf(g.Edges(), g.Delay, edge),
		CapacityKbps: rangeOf(g.Edges(),
			func(e topology.Edge) int64 { return g.Edge(e).CapacityKbps }, edge),
	}
	for range g.Links() {
		s.Links++
	}
	for v := range topology.Node(g.Nodes()) {
		if g.Node(v).Known {
			s.Places++
		}
	}
	return s
}

// Parallel lists the links that have the same ends as a link before them. A link is named by its
// edge with the lower number.
func Parallel(g *topology.Graph) []topology.Edge {
	seen := map[[2]topology.Node]bool{}
	return linksWith(g, func(e, _ topology.Edge) bool {
		ends := [2]topology.Node{min(g.From(e), g.To(e)), max(g.From(e), g.To(e))}
		again := seen[ends]
		seen[ends] = true
		return again
	})
}

// OneWay lists the links that have one direction only.
func OneWay(g *topology.Graph) []topology.Edge {
	return linksWith(g, func(_, r topology.Edge) bool { return r == topology.NoEdge })
}

// Asymmetric lists the links whose directions differ in weight or delay.
func Asymmetric(g *topology.Graph) []topology.Edge {
	return linksWith(g, func(e, r topology.Edge) bool {
		return r != topology.NoEdge && (g.Weight(e) != g.Weight(r) || g.Delay(e) != g.Delay(r))
	})
}

// WithoutDelay lists the links with a direction whose delay is 0.
func WithoutDelay(g *topology.Graph) []topology.Edge {
	return linksWith(g, func(e, r topology.Edge) bool {
		return g.Delay(e) == 0 || r != topology.NoEdge && g.Delay(r) == 0
	})
}

// WithoutCapacity lists the links with a direction whose capacity is not known.
func WithoutCapacity(g *topology.Graph) []topology.Edge {
	return linksWith(g, func(e, r topology.Edge) bool {
		return g.Edge(e).CapacityKbps == 0 || r != topology.NoEdge && g.Edge(r).CapacityKbps == 0
	})
}

func linksWith(g *topology.Graph, holds func(e, r topology.Edge) bool) []topology.Edge {
	var links []topology.Edge
	for e, r := range g.Links() {
		if holds(e, r) {
			links = append(links, e)
		}
	}
	return links
}

// Parts groups the nodes so that those of a group reach one another along the directions of edges:
// the strongly connected components, by Kosaraju's algorithm. The largest group comes first; a
// network that is connected is one group.
func Parts(g *topology.Graph) [][]topology.Node {
	order := finishOrder(g)
	seen := make([]bool, g.Nodes())
	var parts [][]topology.Node
	for _, root := range slices.Backward(order) {
		if seen[root] {
			continue
		}
		seen[root] = true
		part := []topology.Node{root}
		for i := 0; i < len(part); i++ {
			for _, e := range g.In(part[i]) {
				if u := g.From(e); !seen[u] {
					seen[u] = true
					part = append(part, u)
				}
			}
		}
		slices.Sort(part)
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b []topology.Node) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return int(a[0] - b[0])
	})
	return parts
}

// finishOrder lists the nodes in the order in which a depth-first search leaves them.
func finishOrder(g *topology.Graph) []topology.Node {
	var order, stack []topology.Node
	seen := make([]bool, g.Nodes())
	next := make([]int, g.Nodes()) // the edge of each node that comes next
	for root := range topology.Node(g.Nodes()) {
		if seen[root] {
			continue
		}
		seen[root] = true
		stack = append(stack, root)
		for len(stack) > 0 {
			u := stack[len(stack)-1]
			if next[u] == len(g.Out(u)) {
				order = append(order, u)
				stack = stack[:len(stack)-1]
				continue
			}
			v := g.To(g.Out(u)[next[u]])
			next[u]++
			if !seen[v] {
				seen[v] = true
				stack = append(stack, v)
			}
		}
	}
	return order
}

// Bridges lists the links whose loss parts nodes that were connected before, whatever the
// directions of edges: no two disjoint paths cross one. It is Tarjan's algorithm ("A Note on
// Finding the Bridges of a Graph", 1974).
func Bridges(g *topology.Graph) []topology.Edge {
	b := newBridgeSearch(g)
	for root := range topology.Node(g.Nodes()) {
		if b.entered[root] == 0 {
			b.search(root)
		}
	}
	slices.Sort(b.bridges)
	return b.bridges
}

type bridgeSearch struct {
	g       *topology.Graph
	links   [][]topology.Edge // of each node, by their lower edges
	entered []int             // when each node was entered, from 1
	// the earliest node that is reached from below it without the link to its parent
	low     []int
	clock   int
	bridges []topology.Edge
}

func newBridgeSearch(g *topology.Graph) *bridgeSearch {
	b := &bridgeSearch{
		g: g, links: make([][]topology.Edge, g.Nodes()), entered: make([]int, g.Nodes()),
		low: make([]int, g.Nodes()),
	}
	for e := range g.Links() {
		b.links[g.From(e)] = append(b.links[g.From(e)], e)
		b.links[g.To(e)] = append(b.links[g.To(e)], e)
	}
	return b
}

func (b *bridgeSearch) enter(v topology.Node) {
	b.clock++
	b.entered[v], b.low[v] = b.clock, b.clock
}

func (b *bridgeSearch) search(root topology.Node) {
	type visit struct {
		node topology.Node
		by   topology.Edge
		next int
	}
	b.enter(root)
	stack := []visit{{root, topology.NoEdge, 0}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		u := top.node
		if top.next < len(b.links[u]) {
			e := b.links[u][top.next]
			top.next++
			v := b.g.From(e) ^ b.g.To(e) ^ u // the other end
			switch {
			case e == top.by:
			case b.entered[v] > 0:
				b.low[u] = min(b.low[u], b.entered[v])
			default:
				b.enter(v)
				stack = append(stack, visit{v, e, 0})
			}
			continue
		}
		by := top.by
		stack = stack[:len(stack)-1]
		if len(stack) == 0 {
			return
		}
		parent := stack[len(stack)-1].node
		b.low[parent] = min(b.low[parent], b.low[u])
		if b.low[u] > b.entered[parent] {
			b.bridges = append(b.bridges, by)
		}
	}
}
