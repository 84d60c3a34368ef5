package spf

import "sextant/te/topology"

// LayerKind says which shortest paths a Layer adds up latency along.
type LayerKind int

// The kinds of layers.
const (
	Least  LayerKind = iota // the shortest path of least latency
	Forced                  // the shortest path, where it is the only one
	// the shortest path of greatest latency: what a packet may meet when equal-cost paths are used
	// at once
	Worst
	layerKinds
)

// Layer is a latency for each node along the shortest paths of one row. Its slices must not be
// changed.
type Layer struct {
	// Latency is the sum of each node; Unreachable when there is no such path.
	Latency []uint64
	// Via is the edge of that path next to each node, the one with the lowest number where several
	// serve; nil for Worst.
	Via []topology.Edge
}

// Layer is the layer of that kind, computed when first asked for.
func (r *Row) Layer(kind LayerKind) *Layer {
	if l := r.layers[kind].Load(); l != nil {
		return l
	}
	b := layerBuilder{Layer: &Layer{Latency: make([]uint64, len(r.Dist))}, row: r, kind: kind,
		done: make([]bool, len(r.Dist))}
	switch kind {
	case Least:
		b.Via = make([]topology.Edge, len(r.Dist))
	case Forced:
		b.Via = r.Via
	}
	for v := range r.Dist {
		b.latency(topology.Node(v))
	}
	r.layers[kind].CompareAndSwap(nil, b.Layer)
	return r.layers[kind].Load()
}

type layerBuilder struct {
	*Layer
	row  *Row
	kind LayerKind
	done []bool
}

// latency goes toward the root and remembers; distances shrink on the way, so it ends.
func (b *layerBuilder) latency(v topology.Node) uint64 {
	if !b.done[v] {
		b.done[v] = true
		b.Latency[v] = b.combine(v)
	}
	return b.Latency[v]
}

func (b *layerBuilder) combine(v topology.Node) uint64 {
	r := b.row
	if b.kind == Least {
		b.Via[v] = topology.NoEdge
	}
	switch {
	case v == r.Root:
		return 0
	case r.Dist[v] == Unreachable, b.kind == Forced && r.Via[v] == Several:
		return Unreachable
	}
	sum := Unreachable
	for _, a := range r.back.of(v) {
		if !r.tight(a.Node, v, a.Cost) {
			continue
		}
		through := b.latency(a.Node) + r.table.latency[a.Edge]
		switch {
		case sum == Unreachable, b.kind == Worst && through > sum:
			sum = through
		case b.kind == Least && (through < sum || through == sum && a.Edge < b.Via[v]):
			sum = through
		default:
			continue
		}
		if b.kind == Least {
			b.Via[v] = a.Edge
		}
	}
	return sum
}
