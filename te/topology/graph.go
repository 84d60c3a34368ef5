package topology

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"
)

// Node is the number of a node of one Graph, from 0 on, in the order in which the nodes were added.
type Node int32

// Edge is the number of a directed edge of one Graph, from 0 on, in the order in which the edges
// were added.
type Edge int32

// NoNode and NoEdge stand for "none".
const (
	NoNode Node = -1
	NoEdge Edge = -1
)

// MaxDelay and MaxCapacityKbps bound the attributes of an edge, so that sums over paths of millions
// of edges fit an int64.
const (
	MaxDelay        = 1 << 40
	MaxCapacityKbps = 1 << 40
)

// Point is a place on the earth, in degrees; or on a plane, in any unit, if that is where the
// source draws its nodes.
type Point struct {
	Longitude, Latitude float64
}

// NodeSpec is what is known of one node.
type NodeSpec struct {
	Name  string
	Place Point        // of no meaning unless Known
	Known bool         // whether Place is known
	SID   netip.Prefix // the node's locator; invalid when the graph does not say
	// NoTransit tells that paths begin or end at the node, and do not lead through it.
	NoTransit bool
}

// EdgeSpec is what is known of one directed edge.
type EdgeSpec struct {
	Name         string
	From, To     Node
	Weight       uint32     // the IGP metric, at least 1
	Delay        int64      // in units of the graph's DelayUnit, at least 0
	CapacityKbps int64      // kbit/s; 0 when unknown
	SRLGs        []uint32   // shared-risk link groups, in ascending order
	SID          netip.Addr // of its End.X; invalid when the graph does not say
}

// Graph is an immutable directed multigraph in flat arrays. The zero Graph is empty. It is safe for
// use by many goroutines.
type Graph struct {
	name      string
	delayUnit time.Duration
	nodes     []NodeSpec
	edges     []EdgeSpec
	reverse   []Edge
	out, in   adjacency
	byName    map[string]Node
}

// adjacency lists the edges of node v in edges[first[v]:first[v+1]], in ascending order of their
// numbers.
type adjacency struct {
	first []int32
	edges []Edge
}

// Name is what the graph is called, for instance the name of its file without the ending.
func (g *Graph) Name() string { return g.name }

// DelayUnit is the duration of one unit of delay; 0 when the source does not state it.
func (g *Graph) DelayUnit() time.Duration { return g.delayUnit }

// WithDelayUnit is the same graph with another unit of delay, for sources that do not state theirs.
// The numbers stay.
func (g *Graph) WithDelayUnit(unit time.Duration) *Graph {
	other := *g
	other.delayUnit = unit
	return &other
}

// WithDelays is the same graph with other delays, at least 0, in a unit that is not stated: for
// searches of what is least in something else.
func (g *Graph) WithDelays(of func(Edge) int64) *Graph {
	other := *g
	other.delayUnit, other.edges = 0, slices.Clone(g.edges)
	for e := range other.edges {
		other.edges[e].Delay = of(Edge(e))
	}
	return &other
}

// Nodes is the number of nodes.
func (g *Graph) Nodes() int { return len(g.nodes) }

// Edges is the number of directed edges; a link in both directions is two.
func (g *Graph) Edges() int { return len(g.edges) }

// Node returns what is known of node v.
func (g *Graph) Node(v Node) NodeSpec { return g.nodes[v] }

// Edge returns what is known of edge e. The caller must not change its SRLGs.
func (g *Graph) Edge(e Edge) EdgeSpec { return g.edges[e] }

// From and To are the ends of edge e.
func (g *Graph) From(e Edge) Node { return g.edges[e].From }

// To is the node that edge e leads to.
func (g *Graph) To(e Edge) Node { return g.edges[e].To }

// Weight is the IGP metric of edge e.
func (g *Graph) Weight(e Edge) uint32 { return g.edges[e].Weight }

// Delay is the delay of edge e in units of DelayUnit.
func (g *Graph) Delay(e Edge) int64 { return g.edges[e].Delay }

// Reverse is the other direction of the link that edge e belongs to, or NoEdge when the link has
// one direction only. Of parallel links the i-th edge from u to v and the i-th from v to u are one
// link.
func (g *Graph) Reverse(e Edge) Edge { return g.reverse[e] }

// Out lists the edges that leave v, in ascending order. The caller must not change the slice.
func (g *Graph) Out(v Node) []Edge { return g.out.edges[g.out.first[v]:g.out.first[v+1]] }

// In lists the edges that enter v, in ascending order. The caller must not change the slice.
func (g *Graph) In(v Node) []Edge { return g.in.edges[g.in.first[v]:g.in.first[v+1]] }

// Lookup finds a node by its name.
func (g *Graph) Lookup(name string) (Node, bool) {
	v, ok := g.byName[name]
	return v, ok
}

// Barred lists the edges that paths from a node must not cross: those that leave other nodes which
// are not for transit.
func (g *Graph) Barred(from Node) (edges []Edge) {
	for v := range Node(g.Nodes()) {
		if v != from && g.Node(v).NoTransit {
			edges = append(edges, g.Out(v)...)
		}
	}
	return edges
}

// Links yields each link once: the edge with the lower number, and its other direction or NoEdge.
func (g *Graph) Links() iter.Seq2[Edge, Edge] {
	return func(yield func(Edge, Edge) bool) {
		for e, r := range g.reverse {
			if r != NoEdge && r < Edge(e) {
				continue
			}
			if !yield(Edge(e), r) {
				return
			}
		}
	}
}

// Builder collects the nodes and edges of a Graph.
type Builder struct {
	name      string
	delayUnit time.Duration
	nodes     []NodeSpec
	edges     []EdgeSpec
	byName    map[string]Node
}

// NewBuilder starts a graph. A delayUnit of 0 says that the unit is not known.
func NewBuilder(name string, delayUnit time.Duration) *Builder {
	return &Builder{name: name, delayUnit: delayUnit, byName: map[string]Node{}}
}

// MaxName is how many bytes the name of a node or an edge can have.
const MaxName = 1024

// AddNode adds a node. Its name must not be empty, not longer than MaxName and not be taken.
func (b *Builder) AddNode(n NodeSpec) (Node, error) {
	if n.Name == "" {
		return NoNode, fmt.Errorf("node %d has no name; give it one", len(b.nodes))
	}
	if len(n.Name) > MaxName {
		return NoNode, fmt.Errorf("the name of node %d, %.40q..., has %d bytes; at most %d can "+
			"be told apart on a page",
			len(b.nodes), n.Name, len(n.Name), MaxName)
	}
	if _, taken := b.byName[n.Name]; taken {
		return NoNode, fmt.Errorf("node %q exists twice; names must differ", n.Name)
	}
	v := Node(len(b.nodes))
	b.byName[n.Name] = v
	b.nodes = append(b.nodes, n)
	return v, nil
}

// AddEdge adds a directed edge. Both ends must have been added, and differ; the weight must be at
// least 1, delay and capacity at least 0 and within their bounds.
func (b *Builder) AddEdge(e EdgeSpec) (Edge, error) {
	for _, v := range []Node{e.From, e.To} {
		if v < 0 || int(v) >= len(b.nodes) {
			return NoEdge, fmt.Errorf("edge %q ends at node %d, but there are %d nodes, numbered "+
				"from 0", e.Name, v, len(b.nodes))
		}
	}
	switch {
	case len(e.Name) > MaxName:
		return NoEdge, fmt.Errorf("the name of edge %d, %.40q..., has %d bytes; it can have %d",
			len(b.edges), e.Name,
			len(e.Name), MaxName)
	case e.From == e.To:
		return NoEdge, fmt.Errorf("edge %q leads from %s to itself; leave it out", e.Name,
			b.nodes[e.From].Name)
	case e.Weight == 0:
		return NoEdge, fmt.Errorf("edge %q from %s to %s has weight 0; an IGP metric is at least 1",
			e.Name, b.nodes[e.From].Name,
			b.nodes[e.To].Name)
	case e.Delay < 0 || e.Delay > MaxDelay:
		return NoEdge,
			fmt.Errorf("edge %q from %s to %s has the delay %d; it lies between 0 and %d", e.Name,
				b.nodes[e.From].Name,
				b.nodes[e.To].Name, e.Delay, int64(MaxDelay))
	case e.CapacityKbps < 0 || e.CapacityKbps > MaxCapacityKbps:
		return NoEdge, fmt.Errorf("edge %q from %s to %s has the capacity %d kbit/s; it lies "+
			"between 0 and %d", e.Name,
			b.nodes[e.From].Name, b.nodes[e.To].Name, e.CapacityKbps, int64(MaxCapacityKbps))
	}
	b.edges = append(b.edges, e)
	return Edge(len(b.edges) - 1), nil
}

// Nodes is the number of nodes that were added.
func (b *Builder) Nodes() int { return len(b.nodes) }

// Lookup finds a node that was added, by its name.
func (b *Builder) Lookup(name string) (Node, bool) {
	v, ok := b.byName[name]
	return v, ok
}

// Build ends the graph. The builder must not be used afterwards.
func (b *Builder) Build() *Graph {
	g := &Graph{name: b.name, delayUnit: b.delayUnit, nodes: b.nodes, edges: b.edges,
		byName: b.byName}
	g.out = adjacent(len(g.nodes), g.edges, func(e EdgeSpec) Node { return e.From })
	g.in = adjacent(len(g.nodes), g.edges, func(e EdgeSpec) Node { return e.To })
	g.reverse = pair(g)
	return g
}

func adjacent(nodes int, edges []EdgeSpec, end func(EdgeSpec) Node) adjacency {
	a := adjacency{first: make([]int32, nodes+1), edges: make([]Edge, len(edges))}
	for _, e := range edges {
		a.first[end(e)+1]++
	}
	for v := range nodes {
		a.first[v+1] += a.first[v]
	}
	next := append([]int32(nil), a.first...)
	for i, e := range edges {
		v := end(e)
		a.edges[next[v]] = Edge(i)
		next[v]++
	}
	return a
}

// pair matches the i-th edge from u to v with the i-th from v to u.
func pair(g *Graph) []Edge {
	type ends struct{ from, to Node }
	waiting := map[ends][]Edge{}
	reverse := make([]Edge, len(g.edges))
	for i, e := range g.edges {
		back := ends{e.To, e.From}
		if queue := waiting[back]; len(queue) > 0 {
			reverse[i], reverse[queue[0]] = queue[0], Edge(i)
			waiting[back] = queue[1:]
			continue
		}
		reverse[i] = NoEdge
		waiting[ends{e.From, e.To}] = append(waiting[ends{e.From, e.To}], Edge(i))
	}
	return reverse
}
