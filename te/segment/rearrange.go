package segment

import (
	"slices"

	"sextant/te/topology"
)

// rearranger finds two paths where the best one leaves no second: the trap that the paper notes of
// taking paths one after the other (section III.D). A way of the residual network, as in the
// algorithm of Ford and Fulkerson, shows whether any two disjoint ways exist; where it goes back
// along the best path, that path is in the way of two. So the search begins again without those
// links, and then without one link of the best path after the other.
type rearranger struct {
	*search
	round uint32
	seen  []uint32        // by place: == round if reached
	from  []step          // by place: how
	queue []int32         // of places
	into  []topology.Edge // by node: the edge of the path that leads there, or NoEdge
}

// step is how a place was reached. A place is a node twice: 2v for one on the path that was entered
// by a link that is not, and can be left by the path only, if paths must not share nodes; 2v+1
// otherwise.
type step struct {
	place int32
	back  topology.Edge // of the path, against its direction; or NoEdge
}

// rearrangements is how many links of a path are tried.
const rearrangements = 24

func newRearranger(s *search) rearranger {
	places := 2 * s.graph.Nodes()
	into := slices.Repeat([]topology.Edge{topology.NoEdge}, s.graph.Nodes())
	return rearranger{search: s, seen: make([]uint32, places), from: make([]step, places),
		into: into}
}

// rearrange returns two disjoint paths, the quicker first, and leaves what they take in use; or
// none.
func (r *rearranger) rearrange(first Path) []Path {
	r.begin()
	way := first.Edges
	if r.query.Model == ECMP {
		way = r.branch(first.Edges)
	}
	conflict, exists := r.second(way)
	if !exists {
		return nil
	}
	if pair := r.without(conflict...); len(conflict) > 0 && pair != nil {
		return pair
	}
	tries := append(slices.Clone(conflict), slices.DeleteFunc(slices.Clone(first.Edges),
		func(e topology.Edge) bool {
			return slices.Contains(conflict, e)
		})...)
	for _, e := range tries[:min(len(tries), rearrangements)] {
		if pair := r.without(e); pair != nil {
			return pair
		}
	}
	return nil
}

// without takes the best path that avoids some edges, and the best that is disjoint from it.
func (r *rearranger) without(edges ...topology.Edge) []Path {
	r.begin()
	for _, e := range edges {
		r.used.add(e)
	}
	a, stop, _ := r.next()
	if stop != "" {
		return nil
	}
	r.begin()
	r.take(&r.used, r.query.Disjoint, r.query.From, r.query.To, a.Edges)
	b, stop, _ := r.next()
	if stop != "" {
		return nil
	}
	r.take(&r.used, r.query.Disjoint, r.query.From, r.query.To, b.Edges)
	if b.Latency < a.Latency {
		a, b = b, a
	}
	return []Path{a, b}
}

// branch is one of the ways of a path with branches: any will do.
func (r *rearranger) branch(edges []topology.Edge) (way []topology.Edge) {
	before := map[topology.Node]topology.Edge{r.query.From: topology.NoEdge}
	queue := []topology.Node{r.query.From}
	for i := 0; i < len(queue); i++ {
		for _, a := range r.igp.Out(queue[i]) {
			if _, known := before[a.Node]; !known && slices.Contains(edges, a.Edge) {
				before[a.Node] = a.Edge
				queue = append(queue, a.Node)
			}
		}
	}
	for v := r.query.To; v != r.query.From; v = r.ends[before[v]].from {
		way = append(way, before[v])
	}
	return way
}

// second tells whether there are two disjoint ways, and which edges of one way neither of them goes
// by. Shared-risk groups are left out of account: then there may be none although it says so.
func (r *rearranger) second(way []topology.Edge) (unused []topology.Edge, exists bool) {
	r.round++
	if r.round == 0 { // after 2^32 rounds old stamps would look new
		clear(r.seen)
		r.round = 1
	}
	for _, e := range way {
		r.into[r.ends[e].to] = e
	}
	defer func() {
		for _, e := range way {
			r.into[r.ends[e].to] = topology.NoEdge
		}
	}()
	r.queue = r.queue[:0]
	end := 2*int32(r.query.To) + 1
	r.reach(2*int32(r.query.From)+1, step{place: -1})
	for i := 0; i < len(r.queue) && r.seen[end] != r.round; i++ {
		r.leave(r.queue[i])
	}
	if r.seen[end] != r.round {
		return nil, false
	}
	for at := end; at >= 0; at = r.from[at].place {
		if s := r.from[at]; s.place >= 0 && s.back != topology.NoEdge {
			unused = append(unused, s.back)
		}
	}
	return unused, true
}

func (r *rearranger) reach(place int32, by step) {
	if r.seen[place] != r.round {
		r.seen[place], r.from[place] = r.round, by
		r.queue = append(r.queue, place)
	}
}

// leave goes on from a place.
func (r *rearranger) leave(place int32) {
	v := topology.Node(place / 2)
	along := r.into[v]
	on := along != topology.NoEdge
	if on && v != r.query.To {
		r.reach(2*int32(r.ends[along].from)+1, step{place, along})
	}
	if place%2 == 0 {
		return
	}
	for _, a := range r.igp.Out(v) {
		taken := r.into[a.Node]
		onPath := taken != topology.NoEdge
		switch {
		case a.Cost == 0 || r.used.has(a.Edge) || onPath && taken == a.Edge:
		case on && r.query.Disjoint != EdgeDisjoint && r.query.Disjoint != NodeDisjoint &&
			r.graph.Reverse(along) == a.Edge:
		case onPath && r.query.Disjoint == NodeDisjoint && a.Node != r.query.To:
			r.reach(2*int32(a.Node), step{place, topology.NoEdge})
		default:
			r.reach(2*int32(a.Node)+1, step{place, topology.NoEdge})
		}
	}
}
