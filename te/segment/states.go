package segment

import (
	"slices"

	"sextant/te/spf"
	"sextant/te/topology"
)

// states searches the states of Algorithm 3, "at the end of a segment, with k SIDs used", without
// building their graph. The inside of a segment is not a state: the rows know what it costs. States
// are taken in the order of the least a path through them can cost, and none that cannot be better
// than the best path known.
//
// Going on from a state takes the row from its node. But a state with two SIDs left can be met from
// behind (tails.go), which takes the rows to all nodes from which one last SID leads on to the
// destination: one set of rows for all such states. As often few nodes are in question on one side
// and thousands on the other, it meets from behind as soon as that takes no more rows than it has
// taken already; so it takes at most about twice as many as the better of the two.
//
// With End.X, a list that goes as far as possible with each SID is as short as any (minimal.go):
// each SID but the last one follows a forced tree and crosses a link that is not on it. So only
// what an End.X leads to is a state. By the same argument from the far end, a tail crosses a link,
// unless that is no better than the forced tree.
type states struct {
	*search
	list     []state
	queue    spf.Heap        // of indices into list
	best     [][]uint64      // by SIDs and node, the least cost to get there with at most so many
	dirty    []topology.Node // what to reset in best
	leg      leg             // from the state at hand
	bounds   *guided         // for Forced: of what it costs to get to the destination
	ended    guided
	last     leg    // to the destination
	home     sprout // the same for Forced
	branches []branch
	forced   bool
	tails    tails
	expanded int // how many states
	limit    uint64
	// the state before the last segment of the best path; -1 while there is none
	chosen  int32
	through topology.Node // where its last segment begins
	link    topology.Edge
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
		search: s, leg: newLeg(s.Engine, &s.used), last: newLeg(s.Engine, &s.used),
		ended: newGuided(s.latency, &s.used),
		home:  newSprout(s.Engine, &s.used),
	}
}

// improve looks for a path of less cost than limit.
func (s *states) improve(limit uint64) bool {
	s.reset()
	s.limit, s.chosen = limit, -1
	kind := s.query.Model.layer()
	s.forced = kind == spf.Forced
	// one SID is the only thing better than two, at the least cost of all
	one := s.limit <= s.quick.least+2*sidCost
	switch {
	case s.forced:
		s.home.grow(s.query.To, true, func(v topology.Node, cost uint64) bool {
			ahead := s.quick.ahead[v]
			return ahead < s.limit && ahead+cost+sidCost < s.limit
		})
	case one && s.igp.To(s.query.To).Layer(kind).Latency[s.query.From] >= s.limit-sidCost:
		return false
	default:
		s.last.start(s.igp.To(s.query.To), kind, true, s.quick.ahead, s.limit)
	}
	s.finish(0, s.query.From, topology.NoEdge, 0)
	if one {
		return s.chosen >= 0
	}
	if s.forced {
		s.bounds = &s.quick
		s.quick.extend(s.limit)
	} else {
		s.quick.guess(s.latency.To(s.query.To).Dist)
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
			if s.expanded++; s.forced && s.expanded == patience {
				s.tighten()
			}
			if bound := s.bound(at.node); bound >= s.limit ||
				at.cost+bound+2*sidCost >= s.limit {
				continue
			}
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
	clear(s.tails.rows) // the rows may go
	s.tails.rows = s.tails.rows[:0]
	for len(s.best) < s.query.MaxSIDs {
		row := make([]uint64, s.graph.Nodes())
		for v := range row {
			row[v] = spf.Unreachable
		}
		s.best = append(s.best, row)
	}
}

// patience is how many states are expanded before it pays to tighten the bounds.
const patience = 8

// tighten replaces the bounds by greater ones: of ways that end with a segment to the destination,
// whatever they do before.
func (s *states) tighten() {
	if !s.tails.known {
		s.findTails()
	}
	s.ended.begin(s.query.From, s.query.To)
	s.ended.within = s.limit
	for _, v := range s.quick.order {
		if cost := s.tails.cost[v]; s.quick.bound(v) < s.limit && cost < s.limit {
			s.ended.open(v, cost, topology.NoEdge)
		}
	}
	s.ended.extend(s.limit)
	s.bounds = &s.ended
}

// expand goes on from a state by one more SID, to each node that can still be on a better path.
func (s *states) expand(index int32, at state) {
	left := s.query.MaxSIDs - int(at.sids) - 1 // after this SID
	if left < 1 {
		return
	}
	if s.forced {
		s.climb(index, at, left)
		return
	}
	// A path through a node costs at least what the leg does, what is left to go, this SID and one
	// more.
	within := s.limit - at.cost - min(2*sidCost, s.limit-at.cost)
	s.leg.start(s.igp.From(at.node), s.query.Model.layer(), false, s.quick.guessed, within)
	for v := range s.leg.reached.all {
		there := at.cost + s.leg.cost[v] + sidCost
		if there < s.best[at.sids+1][v] && v != at.node && s.useful(there, v, left) {
			s.arrive(index, v, topology.NoEdge, there, left)
		}
	}
}

// branch is a node of a forced tree, and the cost of the segment from its root.
type branch struct {
	node topology.Node
	cost uint64
}

// climb goes on to the nodes of the forced tree of the state's node, and by End.X from there. What
// a path costs at least does not fall on the way up; so it leaves a branch where that is too much.
func (s *states) climb(index int32, at state, left int) {
	row, best := s.igp.Passing(at.node, false), s.best[at.sids+1]
	s.branches = append(s.branches[:0], branch{at.node, 0})
	for len(s.branches) > 0 {
		b := s.branches[len(s.branches)-1]
		s.branches = s.branches[:len(s.branches)-1]
		bound := s.bound(b.node)
		if bound >= s.limit || at.cost+b.cost+bound+2*sidCost >= s.limit {
			continue
		}
		there := at.cost + b.cost + sidCost
		if b.node != at.node && there < best[b.node] && s.useful(there, b.node, left) {
			s.arrive(index, b.node, topology.NoEdge, there, left)
		}
		for _, a := range s.latency.Out(b.node) { // an arc costs the latency of its link
			switch {
			case a.Cost == 0 || s.used.has(a.Edge):
			// the node SID of the other end does the same as an End.X
			case row.Via[a.Node] == a.Edge:
				s.branches = append(s.branches, branch{a.Node, b.cost + a.Cost})
			case s.query.Model == ForcedAdjacency && there+a.Cost < best[a.Node] &&
				s.useful(there+a.Cost, a.Node, left):
				s.arrive(index, a.Node, a.Edge, there+a.Cost, left)
			}
		}
	}
}

// bound is at most the cost from v to the destination over free edges, or spf.Unreachable if that
// is of no interest.
func (s *states) bound(v topology.Node) uint64 {
	if s.forced {
		return s.bounds.bound(v)
	}
	return s.quick.guessed[v]
}

// useful tells whether a path that gets to v at this cost, or more, with this many SIDs left, may
// be better than the best.
func (s *states) useful(cost uint64, v topology.Node, left int) bool {
	if cost >= s.limit {
		return false
	}
	rest := s.limit - cost
	bound := s.bound(v)
	if bound >= rest-sidCost {
		return false
	}
	if left >= 2 && rest > 2*sidCost && bound < rest-2*sidCost {
		return true
	}
	return s.lastCost(v) < rest-sidCost
}

// arrive ends a path by one segment from v, and keeps v as a state if it may also be worth two or
// more.
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
	if link == topology.NoEdge && s.query.Model == ForcedAdjacency {
		return // see the comment on states
	}
	bound := s.bound(v)
	if left < 2 || bound >= s.limit || cost+bound+2*sidCost >= s.limit {
		return
	}
	s.queue.Push(spf.Item{Cost: cost + bound + 2*sidCost, Node: topology.Node(len(s.list))})
	s.list = append(s.list, state{node: v, sids: sids, cost: cost, before: index, link: link})
}

// finish ends a path by one segment from v, which was reached from a state by its node SID or by an
// End.X; or from the source.
func (s *states) finish(index int32, v topology.Node, link topology.Edge, cost uint64) {
	if last := s.lastCost(v); last < s.limit-cost && cost+last+sidCost < s.limit {
		s.limit, s.chosen, s.through, s.link = cost+last+sidCost, index, v, link
	}
}

// lastCost is that of a segment from v to the destination; spf.Unreachable if there is none that is
// free.
func (s *states) lastCost(v topology.Node) uint64 {
	if s.forced {
		return s.home.to(v)
	}
	return s.last.cost[v]
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
	edges := s.way[:0]
	from := s.query.From
	for _, st := range stops {
		s.leg.start(s.igp.From(from), s.query.Model.layer(), false, s.quick.guessed, s.limit+1)
		if st.link == topology.NoEdge {
			edges = s.leg.appendPath(edges, st.node)
		} else {
			edges = append(s.leg.appendPath(edges, s.graph.From(st.link)), st.link)
		}
		from = st.node
	}
	if s.forced {
		s.leg.start(s.igp.From(from), spf.Forced, false, nil, 0)
		edges = s.leg.appendPath(edges, s.query.To)
	} else {
		edges = s.last.appendPath(edges, from)
	}
	s.way = edges
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
	// all of its SIDs can be reached, or it would not have been found
	replay, _ := s.Replay(s.query.From, sids)
	return Path{Edges: replay.Edges, SIDs: sids, Latency: replay.Latency, Forced: replay.Forced}
}
