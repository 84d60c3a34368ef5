package spf

import (
	"math"
	"slices"

	"sextant/te/topology"
)

// mender mends one row after its table's costs changed. While it works, the table's was holds the
// costs from before.
type mender struct {
	*Row
	*work
}

// concerns tells whether any of the changed edges lies on a shortest path of the row, or does now.
func (m *mender) concerns(edges []topology.Edge) bool {
	return slices.ContainsFunc(edges, func(e topology.Edge) bool {
		near, far := m.ends(e)
		was, is := m.table.was[e], m.table.cost[e]
		return m.tight(near, far, was) || is != 0 && m.Dist[near] != Unreachable &&
			m.Dist[near]+is <= m.Dist[far]
	})
}

// ends are the ends of edge e, the one nearer to the root, by the edge's direction, first.
func (m *mender) ends(e topology.Edge) (near, far topology.Node) {
	near, far = m.table.graph.From(e), m.table.graph.To(e)
	if m.back == &m.table.out {
		near, far = far, near
	}
	return near, far
}

func (m *mender) begin() {
	m.round++
	if m.round > math.MaxUint32-2 { // soon old stamps would look new
		clear(m.stamp)
		clear(m.seen)
		clear(m.changed)
		m.round = 1
	}
	m.queue.Reset()
	m.nodes, m.touched, m.fresh = m.nodes[:0], m.touched[:0], m.fresh[:0]
}

// set changes the distance of v and keeps the old one.
func (m *mender) set(v topology.Node, dist uint64) {
	if m.changed[v] != m.round {
		m.changed[v] = m.round
		m.old[v] = m.Dist[v]
		m.nodes = append(m.nodes, v)
	}
	m.Dist[v] = dist
}

// raise mends distances after edges became dearer or went off. First it finds the nodes that lost
// all their shortest paths, nearest first, so that those before are known; then it connects them
// again from outside, by Dijkstra's algorithm.
func (m *mender) raise(edges []topology.Edge) {
	for _, e := range edges {
		if near, far := m.ends(e); m.tight(near, far, m.table.was[e]) {
			m.queue.Push(Item{m.Dist[far], far})
		}
	}
	var lost []topology.Node
	for m.queue.Len() > 0 {
		v := m.queue.Pop().Node
		if m.seen[v] == m.round {
			continue
		}
		m.seen[v] = m.round
		if m.supported(v) {
			continue
		}
		m.stamp[v] = m.round
		lost = append(lost, v)
		for _, a := range m.ahead.of(v) {
			if m.tight(v, a.Node, a.Cost) {
				m.queue.Push(Item{m.Dist[a.Node], a.Node})
			}
		}
	}
	m.queue.Reset()
	for _, v := range lost {
		m.set(v, Unreachable)
	}
	for _, v := range lost {
		for _, a := range m.back.of(v) {
			if a.Cost != 0 && m.stamp[a.Node] != m.round && m.Dist[a.Node] != Unreachable {
				m.Dist[v] = min(m.Dist[v], m.Dist[a.Node]+a.Cost)
			}
		}
		if m.Dist[v] != Unreachable {
			m.queue.Push(Item{m.Dist[v], v})
		}
	}
	m.spread()
}

// supported tells whether a shortest path to v is left that does not come by a lost node.
func (m *mender) supported(v topology.Node) bool {
	return slices.ContainsFunc(m.back.of(v), func(a Arc) bool {
		return m.stamp[a.Node] != m.round && m.tight(a.Node, v, a.Cost)
	})
}

// lower mends distances after edges became cheaper or came on.
func (m *mender) lower(edges []topology.Edge) {
	for _, e := range edges {
		near, far := m.ends(e)
		if m.Dist[near] == Unreachable {
			continue
		}
		if dist := m.Dist[near] + m.table.cost[e]; dist < m.Dist[far] {
			m.set(far, dist)
			m.queue.Push(Item{dist, far})
		}
	}
	m.spread()
}

// spread is the rest of Dijkstra's algorithm.
func (m *mender) spread() {
	for m.queue.Len() > 0 {
		it := m.queue.Pop()
		if it.Cost != m.Dist[it.Node] {
			continue
		}
		for _, a := range m.ahead.of(it.Node) {
			if dist := it.Cost + a.Cost; a.Cost != 0 && dist < m.Dist[a.Node] {
				m.set(a.Node, dist)
				m.queue.Push(Item{dist, a.Node})
			}
		}
	}
}

// finish mends the forced tree, and notes the nodes that other edges lead to than before.
func (m *mender) finish(edges []topology.Edge) {
	for _, e := range edges {
		_, far := m.ends(e)
		m.fresh = append(m.fresh, far)
	}
	for _, v := range m.nodes {
		m.fresh = append(m.fresh, v)
		for _, a := range m.ahead.of(v) {
			if m.wasTight(v, a.Node, a.Edge) || m.tight(v, a.Node, a.Cost) {
				m.fresh = append(m.fresh, a.Node)
			}
		}
	}
	m.queue.Reset()
	// The nodes that were looked at in raise are not of interest any more.
	m.round++
	for i := range m.nodes {
		m.changed[m.nodes[i]] = m.round
	}
	for _, v := range m.fresh {
		if m.seen[v] == m.round {
			continue
		}
		m.seen[v] = m.round
		if m.differs(v) {
			m.touched = append(m.touched, v)
			m.queue.Push(Item{m.Dist[v], v})
		}
	}
	if len(m.touched) > 0 {
		for kind := range m.layers {
			m.layers[kind].Store(nil)
		}
		m.hops.Store(nil)
	}
	m.plant()
}

// plant settles Via, nearest first, from the touched nodes on as far as anything changes.
func (m *mender) plant() {
	for m.queue.Len() > 0 {
		it := m.queue.Pop()
		via := m.via(it.Node)
		if via == m.Via[it.Node] {
			continue
		}
		m.Via[it.Node] = via
		for _, a := range m.ahead.of(it.Node) {
			if m.tight(it.Node, a.Node, a.Cost) {
				m.queue.Push(Item{m.Dist[a.Node], a.Node})
			}
		}
	}
}

// via is what Via must hold for v when it is right for all nodes nearer to the root.
func (m *mender) via(v topology.Node) topology.Edge {
	via := topology.NoEdge
	for _, a := range m.back.of(v) {
		switch {
		case !m.tight(a.Node, v, a.Cost):
		case via != topology.NoEdge || m.Via[a.Node] == Several:
			return Several
		default:
			via = a.Edge
		}
	}
	return via
}

// differs tells whether the set of edges that lead to v by shortest paths is another than before.
func (m *mender) differs(v topology.Node) bool {
	return slices.ContainsFunc(m.back.of(v), func(a Arc) bool {
		return m.wasTight(a.Node, v, a.Edge) != m.tight(a.Node, v, a.Cost)
	})
}

// wasTight is tight before the change.
func (m *mender) wasTight(near, far topology.Node, e topology.Edge) bool {
	cost, a, b := m.table.was[e], m.distBefore(near), m.distBefore(far)
	return cost != 0 && a != Unreachable && b != Unreachable && a+cost == b
}

func (m *mender) distBefore(v topology.Node) uint64 {
	if m.changed[v] == m.round {
		return m.old[v]
	}
	return m.Dist[v]
}

func unique(edges []topology.Edge) []topology.Edge {
	slices.Sort(edges)
	return slices.Compact(edges)
}

func sorted(nodes []topology.Node) []topology.Node {
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
