package draw

import (
	"math"
	"math/rand/v2"
	"slices"

	"sextant/te/topology"
)

// vec is a place in the drawing; y grows downwards.
type vec struct{ x, y float64 }

func (a vec) plus(b vec) vec          { return vec{a.x + b.x, a.y + b.y} }
func (a vec) minus(b vec) vec         { return vec{a.x - b.x, a.y - b.y} }
func (a vec) times(f float64) vec     { return vec{a.x * f, a.y * f} }
func (a vec) length() float64         { return math.Hypot(a.x, a.y) }
func (a vec) across() vec             { return vec{-a.y, a.x} } // turned by a right angle
func between(a, b vec, f float64) vec { return a.plus(b.minus(a).times(f)) }
func polar(angle, length float64) vec {
	return vec{math.Cos(angle) * length, math.Sin(angle) * length}
}
func (a vec) direction(fallback vec) vec {
	if l := a.length(); l > 0 {
		return a.times(1 / l)
	}
	return fallback
}

// places gives each node a place, of any scale: that of the graph if it knows enough of them, or
// else by hops.
func places(g *topology.Graph, byHops bool) []vec {
	known := 0
	for v := range topology.Node(g.Nodes()) {
		if g.Node(v).Known {
			known++
		}
	}
	if byHops || known*2 < g.Nodes() || known == 0 {
		return hopLayout(g)
	}
	return mapLayout(g)
}

// mapLayout draws coordinates as they are, the earth's in the equirectangular projection that is
// true in the middle of the network. Nodes without coordinates stand amid their neighbors.
func mapLayout(g *topology.Graph) []vec {
	at := make([]vec, g.Nodes())
	known := make([]bool, g.Nodes())
	earth, south, north := true, math.Inf(1), math.Inf(-1)
	for v := range topology.Node(g.Nodes()) {
		if n := g.Node(v); n.Known {
			known[v] = true
			at[v] = vec{n.Place.Longitude, -n.Place.Latitude}
			earth = earth && math.Abs(n.Place.Longitude) <= 180 && math.Abs(n.Place.Latitude) <= 90
			south, north = min(south, n.Place.Latitude), max(north, n.Place.Latitude)
		}
	}
	if earth {
		narrower := math.Cos((south + north) / 2 * math.Pi / 180)
		for v := range at {
			at[v].x *= narrower
		}
	}
	settleUnknown(g, at, known)
	return at
}

// settleUnknown moves each node whose place is not known to the mean of its neighbors, from the
// known ones outwards.
func settleUnknown(g *topology.Graph, at []vec, known []bool) {
	middle, count := vec{}, 0
	for v := range at {
		if known[v] {
			middle, count = middle.plus(at[v]), count+1
		}
	}
	placed := slices.Clone(known)
	for progress := true; progress; {
		progress = false
		for v := range topology.Node(g.Nodes()) {
			if placed[v] {
				continue
			}
			sum, neighbors := vec{}, 0
			for _, e := range g.Out(v) {
				if u := g.To(e); placed[u] {
					sum, neighbors = sum.plus(at[u]), neighbors+1
				}
			}
			if neighbors > 0 {
				at[v], placed[v], progress = sum.times(1/float64(neighbors)), true, true
			}
		}
	}
	for v := range at {
		if !placed[v] {
			at[v] = middle.times(1 / float64(count))
		}
	}
}

// The numbers of hopLayout.
const (
	allPairsMost = 1500 // nodes for which all pairs of nodes are considered
	// of larger networks: each node is put at its distance from these, and from its neighbors
	pivots   = 60
	rounds   = 30
	lastStep = 0.1
	gap      = 1.0 // hops between parts of a network that is not connected
)

// hopLayout places nodes so that their distances are close to those in hops, by stochastic gradient
// descent on the stress (Zheng, Pawar and Goodman, "Graph Drawing by Stochastic Gradient Descent",
// TVCG 2018). The parts of a network that is not connected stand side by side.
func hopLayout(g *topology.Graph) []vec {
	at := make([]vec, g.Nodes())
	r := rand.New(rand.NewPCG(1, uint64(g.Nodes())))
	shelf := 2 * math.Sqrt(float64(g.Nodes()))
	corner, height := vec{}, 0.0
	for _, part := range components(g) {
		descend(at, terms(g, part), part, r)
		low, high := bounds(at, part)
		if corner.x > 0 && corner.x+high.x-low.x > shelf {
			corner, height = vec{0, corner.y + height + gap}, 0
		}
		for _, v := range part {
			at[v] = at[v].minus(low).plus(corner)
		}
		corner.x += high.x - low.x + gap
		height = max(height, high.y-low.y)
	}
	return at
}

// components lists the nodes of each part of the network, the largest part first. Directions do not
// count.
func components(g *topology.Graph) [][]topology.Node {
	seen := make([]bool, g.Nodes())
	var parts [][]topology.Node
	for v := range topology.Node(g.Nodes()) {
		if seen[v] {
			continue
		}
		seen[v] = true
		part := []topology.Node{v}
		for i := 0; i < len(part); i++ {
			for u := range neighbors(g, part[i]) {
				if !seen[u] {
					seen[u] = true
					part = append(part, u)
				}
			}
		}
		parts = append(parts, part)
	}
	slices.SortStableFunc(parts, func(a, b []topology.Node) int { return len(b) - len(a) })
	return parts
}

func neighbors(g *topology.Graph, v topology.Node) func(yield func(topology.Node) bool) {
	return func(yield func(topology.Node) bool) {
		for _, e := range g.Out(v) {
			if !yield(g.To(e)) {
				return
			}
		}
		for _, e := range g.In(v) {
			if !yield(g.From(e)) {
				return
			}
		}
	}
}

// term wants two nodes at a distance.
type term struct {
	u, v     topology.Node
	distance float64
}

// terms are the distances that the drawing of a part should have.
func terms(g *topology.Graph, part []topology.Node) []term {
	var all []term
	sources := part
	if len(part) > allPairsMost {
		sources = nil
		for i := range pivots {
			sources = append(sources, part[i*len(part)/pivots])
		}
		for _, u := range part {
			for v := range neighbors(g, u) {
				if u < v {
					all = append(all, term{u, v, 1})
				}
			}
		}
	}
	hops := make([]int32, g.Nodes())
	for _, u := range sources {
		breadthFirst(g, u, hops)
		for _, v := range part {
			if v < u || v > u && len(sources) < len(part) {
				all = append(all, term{u, v, float64(hops[v])})
			}
		}
	}
	return all
}

// breadthFirst writes the distances in hops from a node; of nodes that it doesn't reach, -1.
func breadthFirst(g *topology.Graph, from topology.Node, hops []int32) {
	for v := range hops {
		hops[v] = -1
	}
	hops[from] = 0
	queue := []topology.Node{from}
	for i := 0; i < len(queue); i++ {
		u := queue[i]
		for v := range neighbors(g, u) {
			if hops[v] < 0 {
				hops[v] = hops[u] + 1
				queue = append(queue, v)
			}
		}
	}
}

// descend moves pairs of nodes towards their distances, in random order, by steps that become
// smaller.
func descend(at []vec, all []term, part []topology.Node, r *rand.Rand) {
	spread := math.Sqrt(float64(len(part)))
	for _, v := range part {
		at[v] = vec{r.Float64() * spread, r.Float64() * spread}
	}
	longest := 1.0
	for _, t := range all {
		longest = max(longest, t.distance)
	}
	firstStep := longest * longest
	for round := range rounds {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		step := firstStep * math.Pow(lastStep/firstStep, float64(round)/(rounds-1))
		for _, t := range all {
			apart := at[t.u].minus(at[t.v])
			share := min(1, step/(t.distance*t.distance)) / 2
			move := apart.direction(polar(float64(t.u),
				1)).times(share * (apart.length() - t.distance))
			at[t.u], at[t.v] = at[t.u].minus(move), at[t.v].plus(move)
		}
	}
}

// bounds are the corners of the box around some nodes.
func bounds(at []vec, part []topology.Node) (low, high vec) {
	low, high = vec{math.Inf(1), math.Inf(1)}, vec{math.Inf(-1), math.Inf(-1)}
	for _, v := range part {
		low = vec{min(low.x, at[v].x), min(low.y, at[v].y)}
		high = vec{max(high.x, at[v].x), max(high.y, at[v].y)}
	}
	return low, high
}
