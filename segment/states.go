package segment

import (
	"slices"

	"sextant/spf"
	"sextant/topology"
)

// states searches the states of Algorithm 3, "at the end of a segment, with k SIDs used", without building their graph. The
// inside of a segment is not a state: the rows know what it costs. States are taken in the order of the least a path through
// them can cost, and none that cannot be better than the best path known.
//
// Going on from a state takes the row from its node. But a state with two SIDs left can be met from behind (tails.go), which
// takes the rows to all nodes from which one last SID leads on to the destination: one set of rows for all such states. As
// often few nodes are in question on one side and thousands on the other, it meets from behind as soon as that takes no more
// rows than it has taken already; so it takes at most about twice as many as the better of the two.
type states struct {
	*search
	list     []state
	queue    spf.Heap        // of indices into list
	best     [][]uint64      // by SIDs and node, the least cost to get there with at most so many
	dirty    []topology.Node // what to reset in best
	bounds   []uint64
	leg      leg // from the state at hand
	last     leg // to the destination
	tails    tails
	expanded int // how many states
	limit    uint64
	chosen   int32         // the state before the last segment of the best path; -1 while there is none
	through  topology.Node // where its last segment begins
	link     topology.Edge
}

type state struct {
	node   topology.Node
	sids   int32
	cost   uint64
	before int32
	link   topology.Edge // of the End.X that led here, or NoEdge
}

func newStates(s *search) states {
	return states{
		search: s, bounds: make([]uint64, s.graph.Nodes()), leg: newLeg(s.Engine, &s.used), last: newLeg(s.Engine, &s.used),
	}
}

// improve looks for a path of less cost than limit.
func (s *states) improve(limit uint64) bool {
	s.reset()
	s.limit, s.chosen = limit, -1
	kind := s.query.Model.layer()
	s.last.start(s.igp.To(s.query.To), kind, true)
	s.finish(0, s.query.From, topology.NoEdge, 0)
	if s.limit <= s.quick.least+2*sidCost {
		return s.chosen >= 0 // one SID is the only thing better than two, at the least cost of all
	}
	free := s.latency.To(s.query.To).Dist
	for v := range topology.Node(len(s.bounds)) {
		s.bounds[v] = s.bound(v, free)
	}
	s.list = append(s.list, state{node: s.query.From, before: -1, link: topology.NoEdge})
	s.queue.Push(spf.Item{Cost: 0, Node: 0})
	for len(s.queue) > 0 {
		it := s.queue.Pop()
		if it.Cost >= s.limit {
			break
		}
		at := s.list[it.Node]
		switch {
		case it.Node > 0 && s.best[at.sids][at.node] < at.cost: // reached at less cost since
		case it.Node > 0 && int(at.sids) == s.query.MaxSIDs-2 && s.worthMeeting():
			s.meet(int32(it.Node), at)
		default:
			s.expanded++
			s.leg.start(s.igp.From(at.node), kind, false)
			s.expand(int32(it.Node), at)
		}
	}
	return s.chosen >= 0
}

func (s *states) reset() {
	for _, v := range s.dirty {
		for _, best := range s.best {
			best[v] = spf.Unreachable
		}
	}
	s.dirty, s.list, s.queue = s.dirty[:0], s.list[:0], s.queue[:0]
	s.tails.known, s.expanded = false, 0
	for len(s.best) < s.query.MaxSIDs {
		row := make([]uint64, s.graph.Nodes())
		for v := range row {
			row[v] = spf.Unreachable
		}
		s.best = append(s.best, row)
	}
}

// expand goes on from a state by one more SID, to each node that can still be on a better path.
func (s *states) expand(index int32, at state) {
	left := s.query.MaxSIDs - int(at.sids) - 1 // after this SID
	if left < 1 {
		return
	}
	adjacency := s.query.Model == ForcedAdjacency
	best := s.best[at.sids+1]
	for v, static := range s.leg.layer.Latency {
		v := topology.Node(v)
		// A path through v costs at least the static cost, what is left to go, this SID and one more.
		if static >= s.limit-at.cost || s.bounds[v] >= s.limit || at.cost+static+s.bounds[v]+2*sidCost >= s.limit {
			continue
		}
		if there := at.cost + static + sidCost; v != at.node && there < best[v] && s.useful(there, v, left) {
			if cost := s.leg.cost(v); cost != spf.Unreachable {
				s.arrive(index, v, topology.NoEdge, at.cost+cost+sidCost, left)
			}
		}
		if adjacency {
			s.cross(index, at, v, left)
		}
	}
}

// cross goes on by End.X of the links of v.
func (s *states) cross(index int32, at state, v topology.Node, left int) {
	least, best := at.cost+s.leg.layer.Latency[v]+sidCost, s.best[at.sids+1]
	for _, a := range s.latency.Out(v) { // an arc costs the latency of its link
		// On the forced tree, the node SID of the other end does the same.
		if a.Cost == 0 || least+a.Cost >= best[a.Node] || s.used.has(a.Edge) || s.leg.row.Via[a.Node] == a.Edge {
			continue
		}
		cost := s.leg.cost(v)
		if cost == spf.Unreachable {
			return
		}
		if there := at.cost + cost + a.Cost + sidCost; s.useful(there, a.Node, left) {
			s.arrive(index, a.Node, a.Edge, there, left)
		}
	}
}

// useful tells whether a path that gets to v at this cost, or more, with this many SIDs left, may be better than the best.
func (s *states) useful(cost uint64, v topology.Node, left int) bool {
	if cost >= s.limit {
		return false
	}
	rest := s.limit - cost
	if s.last.layer.Latency[v] < rest-sidCost && s.last.cost(v) < rest-sidCost {
		return true
	}
	return left >= 2 && rest > 2*sidCost && s.bounds[v] < rest-2*sidCost
}

// arrive ends a path by one segment from v, and keeps v as a state if it may also be worth two or more.
func (s *states) arrive(index int32, v topology.Node, link topology.Edge, cost uint64, left int) {
	sids := s.list[index].sids + 1
	if cost >= s.limit || cost >= s.best[sids][v] {
		return
	}
	for k := int(sids); k < s.query.MaxSIDs && cost < s.best[k][v]; k++ {
		s.best[k][v] = cost
	}
	s.dirty = append(s.dirty, v)
	s.finish(index, v, link, cost)
	if left < 2 || s.bounds[v] >= s.limit || cost+s.bounds[v]+2*sidCost >= s.limit {
		return
	}
	s.queue.Push(spf.Item{Cost: cost + s.bounds[v] + 2*sidCost, Node: topology.Node(len(s.list))})
	s.list = append(s.list, state{node: v, sids: sids, cost: cost, before: index, link: link})
}

// finish ends a path by one segment from v, which was reached from a state by its node SID or by an End.X; or from the source.
func (s *states) finish(index int32, v topology.Node, link topology.Edge, cost uint64) {
	static := s.last.layer.Latency[v]
	if static >= s.limit-cost || static+sidCost >= s.limit-cost {
		return
	}
	if last := s.last.cost(v); last != spf.Unreachable && cost+last+sidCost < s.limit {
		s.limit, s.chosen, s.through, s.link = cost+last+sidCost, index, v, link
	}
}

// stop is the end of a segment.
type stop struct {
	node topology.Node
	link topology.Edge // of the End.X that ends it, or NoEdge
}

// path is the best path found by improve.
func (s *states) path() Path {
	stops := s.stops()
	if s.query.Model == ECMP {
		return s.union(stops)
	}
	var edges []topology.Edge
	from := s.query.From
	for _, st := range stops {
		s.leg.start(s.igp.From(from), s.query.Model.layer(), false)
		if st.link == topology.NoEdge {
			edges = s.leg.appendPath(edges, st.node)
		} else {
			edges = append(s.leg.appendPath(edges, s.graph.From(st.link)), st.link)
		}
		from = st.node
	}
	edges = s.last.appendPath(edges, from)
	sids, _ := s.minimal(edges, s.query.Model)
	return s.search.path(edges, sids)
}

// stops lists the ends of the segments of the best path, but for the last.
func (s *states) stops() []stop {
	var stops []stop
	if s.through != s.query.From || s.link != topology.NoEdge {
		stops = append(stops, stop{s.through, s.link})
	}
	for i := s.chosen; i > 0; i = s.list[i].before {
		stops = append(stops, stop{s.list[i].node, s.list[i].link})
	}
	slices.Reverse(stops)
	return stops
}

// union is the path of model ECMP: all edges of the DAGs of its segments.
func (s *states) union(stops []stop) Path {
	var sids []SID
	for _, st := range stops {
		sids = append(sids, SID{st.node, topology.NoEdge})
	}
	sids = append(sids, SID{s.query.To, topology.NoEdge})
	replay, _ := s.Replay(s.query.From, sids) // all of its SIDs can be reached, or it would not have been found
	return Path{Edges: replay.Edges, SIDs: sids, Latency: replay.Latency, Forced: replay.Forced}
}
