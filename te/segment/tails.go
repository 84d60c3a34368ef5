package segment

import (
	"sextant/te/spf"
	"sextant/te/topology"
)

// tails are the ends of paths: for each node, what it costs to get from there to the destination
// when one SID says to go to that node, or to cross one of its links, and one more to go to the
// destination.
type tails struct {
	known bool
	cost  []uint64        // by node, without what it costs to get to the node
	link  []topology.Edge // the link to cross, or NoEdge
	// of nodes by the least cost of a path through their tail: those not in order yet
	queue  spf.Heap
	sorted []spf.Item
	legs   []leg      // along these rows, but for Forced
	begun  int        // how many nodes in order were looked at
	rows   []*spf.Row // to the nodes in order, where they were needed
}

// worthMeeting tells whether the rows that are still to be had for meet are not more than the
// states expanded so far.
func (s *states) worthMeeting() bool {
	if !s.tails.known {
		s.findTails()
	}
	t := &s.tails
	if s.limit == spf.Unreachable { // all may be of use
		return len(t.sorted)+len(t.queue)-t.begun <= s.expanded
	}
	for len(t.queue) > 0 && t.queue[0].Cost < s.limit {
		t.sorted = append(t.sorted, t.queue.Pop())
	}
	useful := len(t.sorted)
	for useful > 0 && t.sorted[useful-1].Cost >= s.limit {
		useful--
	}
	return useful-t.begun <= s.expanded
}

// meet ends paths from a state with two SIDs left, by all tails that can be of use.
func (s *states) meet(index int32, at state) {
	for i := 0; ; i++ {
		if i == len(s.tails.sorted) {
			if len(s.tails.queue) == 0 {
				return
			}
			s.tails.sorted = append(s.tails.sorted, s.tails.queue.Pop())
		}
		it := s.tails.sorted[i]
		if it.Cost >= s.limit {
			return
		}
		// From the state to the tail it costs at least what the two differ in their distance from
		// either end.
		c := it.Node
		cost := at.cost + s.tails.cost[c] + 2*sidCost
		if cost+max(beyond(s.bound(at.node), s.bound(c)),
			beyond(s.quick.ahead[c], s.quick.ahead[at.node])) >= s.limit {
			continue
		}
		between := s.between(at.node, i)
		if between == spf.Unreachable || cost+between >= s.limit {
			continue
		}
		s.limit, s.chosen, s.through, s.link = cost+between, index, c, s.tails.link[c]
		if s.link != topology.NoEdge {
			s.through = s.ends[s.link].to
		}
	}
}

// beyond is how much more a is than b, if it is.
func beyond(a, b uint64) uint64 {
	if a == spf.Unreachable || a < b {
		return 0
	}
	return a - b
}

// between is the cost of a segment from v to the i-th node in order.
func (s *states) between(v topology.Node, i int) uint64 {
	t := &s.tails
	for ; t.begun <= i; t.begun++ {
		t.rows = append(t.rows, nil)
		if !s.forced && t.begun == len(t.legs) {
			t.legs = append(t.legs, newLeg(s.Engine, &s.used))
		}
	}
	first := t.rows[i] == nil
	switch root := t.sorted[i].Node; {
	case s.forced && first:
		t.rows[i] = s.igp.Passing(root, true)
	case first:
		t.rows[i] = s.igp.To(root)
		t.legs[i].start(t.rows[i], s.query.Model.layer(), true, s.quick.ahead,
			s.limit-s.tails.cost[root])
	}
	if s.forced {
		return s.forcedCost(v, t.rows[i])
	}
	return t.legs[i].cost[v]
}

// forcedCost is the cost of the forced segment from v to the root of a row; spf.Unreachable if
// there is none that is free.
func (s *states) forcedCost(v topology.Node, row *spf.Row) (cost uint64) {
	for v != row.Root {
		via := row.Via[v]
		if via < 0 || s.used.has(via) { // none, or several
			return spf.Unreachable
		}
		cost += s.cost(via)
		v = s.ends[via].to
	}
	return cost
}

// findTails works out the tails that a path better than the limit can have.
func (s *states) findTails() {
	t := &s.tails
	if t.cost == nil {
		t.cost, t.link = make([]uint64, s.graph.Nodes()), make([]topology.Edge, s.graph.Nodes())
	}
	t.known, t.begun, t.queue, t.sorted = true, 0, t.queue[:0], t.sorted[:0]
	if !s.forced {
		for v := range s.last.reached.all {
			t.cost[v], t.link[v] = s.last.cost[v], topology.NoEdge
			s.addTail(v)
		}
		return
	}
	for _, v := range s.quick.order {
		t.cost[v], t.link[v] = spf.Unreachable, topology.NoEdge
		if bound := s.bound(v); bound >= s.limit || s.quick.ahead[v]+bound+2*sidCost >= s.limit {
			continue
		}
		t.cost[v] = s.lastCost(v)
		if s.query.Model == ForcedAdjacency {
			s.crossTail(v)
		}
		if s.query.Model != ForcedAdjacency || t.link[v] != topology.NoEdge {
			s.addTail(v)
		}
	}
}

// addTail queues a tail if a path through it can be better than the limit.
func (s *states) addTail(v topology.Node) {
	ahead, cost := s.quick.ahead[v], s.tails.cost[v]
	if cost != spf.Unreachable && ahead+cost+3*sidCost < s.limit {
		s.tails.queue.Push(spf.Item{Cost: ahead + cost + 3*sidCost, Node: v})
	}
}

// crossTail looks for a link of v that makes a better tail.
func (s *states) crossTail(v topology.Node) {
	t := &s.tails
	for _, a := range s.igp.Out(v) {
		if a.Cost == 0 || s.used.has(a.Edge) || s.lastCost(a.Node) >= t.cost[v] {
			continue
		}
		if last := s.lastCost(a.Node); last != spf.Unreachable &&
			last+s.Engine.cost(a.Edge) < t.cost[v] {
			t.cost[v], t.link[v] = last+s.Engine.cost(a.Edge), a.Edge
		}
	}
}
