package elephant

import (
	"fmt"
	"slices"

	"sextant/packet/lists"
	"sextant/te/edgecoloring"
	"sextant/te/topology"
)

// clos is a folded Clos network that was found in a graph.
type clos struct {
	graph  *topology.Graph
	colors *edgecoloring.Clos
	leaves []int             // place of each node among the leaves, from 1; 0: it is none
	pods   []int             // of leaves
	upper  [][]topology.Node // aggregation switches, by pod and place
	core   [][]topology.Node // core switches, by group and place
	links  map[[2]topology.Node]topology.Edge
	// links up and down, by leaf and aggregation switch, and by pod, group and core switch
	edge, middle [][][2]topology.Edge
}

// newClos finds the pods of a folded Clos network between leaves; the error says what differs from
// one.
func newClos(g *topology.Graph, leaves []topology.Node, cost func(topology.Edge) uint64) (*clos,
	error) {
	c := &clos{graph: g, leaves: make([]int, g.Nodes()), pods: make([]int, len(leaves)),
		links: map[[2]topology.Node]topology.Edge{}}
	if len(leaves) == 0 {
		return nil, fmt.Errorf("no hosts are at any router")
	}
	for i, v := range leaves {
		c.leaves[v] = i + 1
	}
	for e := range topology.Edge(g.Edges()) {
		ends := [2]topology.Node{g.From(e), g.To(e)}
		if _, twice := c.links[ends]; twice {
			return nil, c.differs("several links lead from %s to %s", ends[0], ends[1])
		}
		c.links[ends] = e
	}
	if err := c.findPods(leaves); err != nil {
		return nil, err
	}
	if err := c.findCore(); err != nil {
		return nil, err
	}
	if err := c.findLinks(leaves, cost); err != nil {
		return nil, err
	}
	cores := 0
	if len(c.core) > 0 {
		cores = len(c.core[0])
	}
	var err error
	c.colors, err = edgecoloring.NewClos(c.pods, len(c.upper[0]), cores)
	return c, err
}

func (c *clos) differs(format string, nodes ...topology.Node) error {
	names := lists.Map(nodes, func(v topology.Node) any { return c.graph.Node(v).Name })
	return fmt.Errorf("the network is no folded Clos network: "+format, names...)
}

// neighbours are where links lead from a node; what has one link alone, as hosts have, is left out.
func (c *clos) neighbours(v topology.Node) []topology.Node {
	var list []topology.Node
	for _, e := range c.graph.Out(v) {
		if u := c.graph.To(e); len(c.graph.Out(u)) > 1 {
			list = append(list, u)
		}
	}
	slices.Sort(list)
	return list
}

// findPods puts leaves with the same aggregation switches into one pod.
func (c *clos) findPods(leaves []topology.Node) error {
	pod := map[topology.Node]int{} // of aggregation switches
	for i, leaf := range leaves {
		switches := c.neighbours(leaf)
		if len(switches) == 0 {
			return c.differs("no link leads on from %s", leaf)
		}
		for _, v := range switches {
			if c.leaves[v] != 0 {
				return c.differs("%s and %s both have hosts, and are linked", leaf, v)
			}
		}
		at, known := pod[switches[0]]
		if !known {
			at = len(c.upper)
			c.upper = append(c.upper, switches)
			for _, v := range switches {
				if _, taken := pod[v]; taken {
					return c.differs("%s has only some of the neighbours of %s", leaf, v)
				}
				pod[v] = at
			}
		}
		if !slices.Equal(switches, c.upper[at]) {
			return c.differs("%s has other neighbours than the rest of its pod", leaf)
		}
		if len(switches) != len(c.upper[0]) {
			return c.differs("%s has not as many links as %s", leaf, leaves[0])
		}
		c.pods[i] = at
	}
	return nil
}

// findCore orders the aggregation switches of each pod by the group of core switches that they are
// linked to.
func (c *clos) findCore() error {
	if len(c.upper) == 1 {
		return nil
	}
	group := map[topology.Node]int{} // of core switches
	for at, switches := range c.upper {
		ordered := make([]topology.Node, len(switches))
		for i := range ordered {
			ordered[i] = topology.NoNode
		}
		for i, v := range switches {
			core := slices.DeleteFunc(c.neighbours(v), func(u topology.Node) bool {
				return c.leaves[u] != 0
			})
			if len(core) == 0 {
				return c.differs("no link leads from %s to a core switch", v)
			}
			if at == 0 {
				for _, u := range core {
					if _, taken := group[u]; taken {
						return c.differs("%s is linked to two switches of a pod", u)
					}
					group[u] = i
				}
				c.core = append(c.core, core)
			}
			place, known := group[core[0]]
			if !known || !slices.Equal(core, c.core[place]) || ordered[place] != topology.NoNode ||
				len(core) != len(c.core[0]) {
				return c.differs("%s has not the core switches of one switch in each pod", v)
			}
			ordered[place] = v
		}
		c.upper[at] = ordered
	}
	return nil
}

// findLinks finds the links of the network. It wants all up from one layer, and all down to one, to
// cost the same, so that the paths of the coloring are shortest ones.
func (c *clos) findLinks(leaves []topology.Node, cost func(topology.Edge) uint64) (err error) {
	var first [2][2]topology.Edge // by layer, up and down
	layer := func(number int, rows *[][][2]topology.Edge, low topology.Node, up []topology.Node) {
		row := make([][2]topology.Edge, len(up))
		for i, high := range up {
			for way, ends := range [2][2]topology.Node{{low, high}, {high, low}} {
				e, ok := c.links[ends]
				if !ok {
					err = c.differs("no link leads from %s to %s", ends[0], ends[1])
					return
				}
				if len(*rows) == 0 && i == 0 {
					first[number][way] = e
				}
				if other := first[number][way]; cost(other) != cost(e) {
					err = c.differs("the links from %s to %s and from %s to %s differ in weight",
						ends[0], ends[1], c.graph.From(other), c.graph.To(other))
					return
				}
				row[i][way] = e
			}
		}
		*rows = append(*rows, row)
	}
	for i, leaf := range leaves {
		layer(0, &c.edge, leaf, c.upper[c.pods[i]])
	}
	for _, switches := range c.upper {
		for group, core := range c.core {
			layer(1, &c.middle, switches[group], core)
		}
	}
	return err
}

// path appends the way of a flow of the coloring.
func (c *clos) path(path []topology.Edge, f edgecoloring.Flow, ends Ends) []topology.Edge {
	p := c.colors.Path(f)
	if p.Aggregation < 0 {
		return path
	}
	src, dst := c.leaves[ends.From]-1, c.leaves[ends.To]-1
	path = append(path, c.edge[src][p.Aggregation][0])
	if p.Core >= 0 {
		up := c.middle[c.pods[src]*len(c.core)+p.Aggregation][p.Core]
		down := c.middle[c.pods[dst]*len(c.core)+p.Aggregation][p.Core]
		path = append(path, up[0], down[1])
	}
	return append(path, c.edge[dst][p.Aggregation][1])
}
