package format

import (
	"fmt"
	"strings"

	"sextant/te/topology"
)

// dump writes all that a graph knows, a line a node and a line an edge.
func dump(g *topology.Graph) string {
	var out strings.Builder
	fmt.Fprintf(&out, "graph %q, delay in %s\n", g.Name(), DelayUnitName(g.DelayUnit()))
	for v := range g.Nodes() {
		n := g.Node(topology.Node(v))
		fmt.Fprintf(&out, "node %d %q", v, n.Name)
		if n.Known {
			fmt.Fprintf(&out, " at %v %v", n.Place.Longitude, n.Place.Latitude)
		}
		if n.SID.IsValid() {
			fmt.Fprintf(&out, " sid %s", n.SID)
		}
		out.WriteByte('\n')
	}
	for i := range g.Edges() {
		e := g.Edge(topology.Edge(i))
		fmt.Fprintf(&out, "edge %d %q %d->%d weight %d delay %d capacity %d", i, e.Name, e.From,
			e.To, e.Weight, e.Delay, e.CapacityKbps)
		if e.SRLGs != nil {
			fmt.Fprintf(&out, " srlgs %v", e.SRLGs)
		}
		if e.SID.IsValid() {
			fmt.Fprintf(&out, " sid %s", e.SID)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
