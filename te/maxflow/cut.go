package maxflow

import "sextant/te/topology"

// Cut is a smallest set whose loss separates the ends of the last flow: the reason why there are
// not more paths. Of all smallest cuts it is the one nearest to the source.
type Cut struct {
	Edges []topology.Edge // ascending
	Nodes []topology.Node // ascending; empty unless nodes must not be shared
}

// Size is the number of disjoint paths that a cut lets through.
func (c Cut) Size() int { return len(c.Edges) + len(c.Nodes) }

// Cut names a smallest cut. It is of use after Max without a limit: else the flow may not be the
// greatest.
func (n *Network) Cut() Cut {
	n.reach(-1)
	var cut Cut
	for a := 0; a < len(n.head); a += 2 {
		tail, head := n.head[a+1], n.head[a]
		if !n.reached(tail) || n.reached(head) {
			continue
		}
		if e := n.edge[a]; e != topology.NoEdge {
			cut.Edges = append(cut.Edges, e)
		} else {
			cut.Nodes = append(cut.Nodes, topology.Node(tail))
		}
	}
	return cut
}

func (n *Network) reached(v int32) bool { return n.search.mark[v] == n.search.round }

// Bridges are the edges that every path from s to t crosses, in the order in which it crosses them;
// none if t cannot be reached. With a bridge there is no second disjoint path.
func (n *Network) Bridges(s, t topology.Node) []topology.Edge {
	if n.Max(s, t, 1) == 0 {
		return nil
	}
	path := n.Paths()[0]
	n.begin(s, t)
	var bridges []topology.Edge
	for _, e := range path {
		a := n.arc(e)
		n.open[a] = false
		if !n.reach(int32(t)) {
			bridges = append(bridges, e)
		}
		n.open[a] = true
	}
	return bridges
}

// arc is the forward arc of an edge that the network has.
func (n *Network) arc(e topology.Edge) int32 {
	for _, a := range n.out(n.leave(n.view.From(e))) {
		if a&1 == 0 && n.edge[a] == e {
			return a
		}
	}
	return -1
}
