package segment

import (
	"fmt"

	"sextant/te/spf"
	"sextant/te/topology"
)

// Change gives an edge another weight in the IGP; 0 takes it down, any other brings it up if it was
// down.
type Change struct {
	Edge   topology.Edge
	Weight uint32
}

// LinkDown is the failure of the link that an edge belongs to, in both directions.
func (e *Engine) LinkDown(edge topology.Edge) []Change {
	changes := []Change{{edge, 0}}
	if r := e.graph.Reverse(edge); r != topology.NoEdge {
		changes = append(changes, Change{r, 0})
	}
	return changes
}

// NodeDown is the failure of a node: of all its links.
func (e *Engine) NodeDown(v topology.Node) []Change {
	var changes []Change
	for _, edges := range [][]topology.Edge{e.graph.Out(v), e.graph.In(v)} {
		for _, edge := range edges {
			changes = append(changes, Change{edge, 0})
		}
	}
	return changes
}

// Restored undoes changes: the edges get the weights that the graph gives them.
func (e *Engine) Restored(changes []Change) []Change {
	back := make([]Change, len(changes))
	for i, c := range changes {
		back[i] = Change{c.Edge, e.graph.Weight(c.Edge)}
	}
	return back
}

// Update is what changes did to the shortest paths that the engine knows.
type Update struct {
	Changes []Change
	Rows    []spf.Effect // by IGP weight; rows in which nothing changed are not listed
}

// Apply changes the state of the IGP, and mends the rows that the engine has computed. No query may
// run meanwhile.
func (e *Engine) Apply(changes ...Change) (Update, error) {
	var igp, latency []spf.Change
	for _, c := range changes {
		if c.Edge < 0 || int(c.Edge) >= e.graph.Edges() {
			return Update{}, fmt.Errorf("change the weight of an edge: there is no edge %d; %s "+
				"has edges 0 to %d",
				c.Edge, e.graph.Name(), e.graph.Edges()-1)
		}
		cost := uint64(0)
		if c.Weight > 0 {
			cost = e.cost(c.Edge)
		}
		igp = append(igp, spf.Change{Edge: c.Edge, Cost: uint64(c.Weight)})
		latency = append(latency, spf.Change{Edge: c.Edge, Cost: cost})
	}
	e.latency.Apply(latency...)
	return Update{Changes: changes, Rows: e.igp.Apply(igp...)}, nil
}
