package proof

import (
	"slices"

	"sextant/te/segment"
	"sextant/te/topology"
)

// resources say what paths must not share. Each resource has one unit, and an edge takes some:
// itself or its link, the node it leads to, its shared-risk groups. Two paths are disjoint when
// they take nothing in common.
type resources struct {
	count  int
	nodes  int       // the first resource that stands for a node; 0 if none does
	priced int       // resources below this number may have a price; see newResources
	takes  [][]int32 // of each edge
	edges  [][]topology.Edge
}

// newResources numbers the resources. What a path takes several times it shares with nobody, so a
// price on that would be paid too often: of shared-risk groups, which come last, no price may be
// asked.
func newResources(view topology.View, kind segment.Disjointness) *resources {
	r := &resources{takes: make([][]int32, view.Edges()), count: view.Edges()}
	groups := map[uint32]int32{}
	for e := range topology.Edge(view.Edges()) {
		own := e
		if back := view.Reverse(e); kind != segment.EdgeDisjoint && kind != segment.NodeDisjoint &&
			back != topology.NoEdge {
			own = min(own, back)
		}
		r.takes[e] = []int32{int32(own)}
	}
	if kind == segment.NodeDisjoint {
		r.nodes = r.count
		for e := range topology.Edge(view.Edges()) {
			r.takes[e] = append(r.takes[e], int32(r.count)+int32(view.To(e)))
		}
		r.count += view.Nodes()
	}
	r.priced = r.count
	if kind == segment.SRLGDisjoint {
		for e := range topology.Edge(view.Edges()) {
			r.takes[e] = append(r.takes[e], r.groups(view, e, groups)...)
		}
	}
	r.edges = make([][]topology.Edge, r.count)
	for e, takes := range r.takes {
		for _, i := range takes {
			r.edges[i] = append(r.edges[i], topology.Edge(e))
		}
	}
	return r
}

// groups numbers the shared-risk groups of a link; those of its other direction fail with it.
func (r *resources) groups(view topology.View, e topology.Edge, known map[uint32]int32) []int32 {
	risks := slices.Clone(view.Edge(e).SRLGs)
	if back := view.Reverse(e); back != topology.NoEdge {
		risks = append(risks, view.Edge(back).SRLGs...)
	}
	slices.Sort(risks)
	var numbers []int32
	for _, risk := range slices.Compact(risks) {
		if _, ok := known[risk]; !ok {
			known[risk] = int32(r.count)
			r.count++
		}
		numbers = append(numbers, known[risk])
	}
	return numbers
}

// isEnd tells whether a resource stands for a node between which paths run, which they may share.
func (r *resources) isEnd(i int32, s, t topology.Node) bool {
	return r.nodes > 0 && (i == int32(r.nodes)+int32(s) || i == int32(r.nodes)+int32(t))
}

// close switches off the edges that take a resource of the route, and returns those that were on
// before.
func (r *resources) close(off []bool, taken []int32, s, t topology.Node) (closed []topology.Edge) {
	for _, i := range taken {
		if r.isEnd(i, s, t) {
			continue
		}
		for _, e := range r.edges[i] {
			if !off[e] {
				off[e] = true
				closed = append(closed, e)
			}
		}
	}
	return closed
}

// of lists what a route takes, ascending, each once, without the ends.
func (r *resources) of(path route, s, t topology.Node) []int32 {
	var taken []int32
	for _, e := range path.edges {
		for _, i := range r.takes[e] {
			if !r.isEnd(i, s, t) {
				taken = append(taken, i)
			}
		}
	}
	slices.Sort(taken)
	return slices.Compact(taken)
}

// costs turns prices of resources into costs of edges.
func (r *resources) costs(price []int64, s, t topology.Node) []int64 {
	cost := make([]int64, len(r.takes))
	for e, takes := range r.takes {
		for _, i := range takes {
			if int(i) < r.priced && !r.isEnd(i, s, t) {
				cost[e] += price[i]
			}
		}
	}
	return cost
}
