package segment

import (
	"fmt"

	"sextant/te/topology"
)

// DefaultMaxSIDs is the length limit of a list unless a query says otherwise. With four SIDs, End.X
// among them, the number of disjoint paths comes within 3 % of what max flow allows for lists of
// any length on the Rocketfuel networks.
const DefaultMaxSIDs = 4

// Query asks for disjoint paths. Its zero values stand for the defaults.
type Query struct {
	From, To topology.Node
	Model    Model           // "": ForcedAdjacency
	Disjoint Disjointness    // "": LinkDisjoint
	MaxSIDs  int             // 0: DefaultMaxSIDs
	Paths    int             // how many are wanted; 0: all there are
	Avoid    []topology.Edge // edges that no path may use, although the IGP does
	// one path after the other, as in the paper, although the best may leave no second where two
	// exist
	Greedy bool
}

// normalise fills in the defaults and refuses what makes no sense.
func (e *Engine) normalise(q Query) (Query, error) {
	for _, v := range []topology.Node{q.From, q.To} {
		if v < 0 || int(v) >= e.graph.Nodes() {
			return q, fmt.Errorf("there is no node %d; %s has nodes 0 to %d", v, e.graph.Name(),
				e.graph.Nodes()-1)
		}
	}
	if q.From == q.To {
		return q, fmt.Errorf("a path from %s to itself has no segments; name two nodes",
			e.graph.Node(q.From).Name)
	}
	if q.Model == "" {
		q.Model = ForcedAdjacency
	}
	if q.Disjoint == "" {
		q.Disjoint = LinkDisjoint
	}
	if q.MaxSIDs == 0 {
		q.MaxSIDs = DefaultMaxSIDs
	}
	if q.MaxSIDs < 0 || q.MaxSIDs > maxSIDs {
		return q, fmt.Errorf("lists of at most %d SIDs can't be made; ask for 1 to %d", q.MaxSIDs,
			maxSIDs)
	}
	if q.Paths < 0 {
		return q, fmt.Errorf("%d paths can't be found; ask for 1 or more, or for 0 to get all",
			q.Paths)
	}
	if _, err := ParseModel(string(q.Model)); err != nil {
		return q, err
	}
	if _, err := ParseDisjointness(string(q.Disjoint)); err != nil {
		return q, err
	}
	return q, nil
}

// SID is an element of a list.
type SID struct {
	// where it is executed: the node a node SID names, or the one that crosses Link
	Node topology.Node
	Link topology.Edge // for an End.X, the link to cross; else NoEdge
}

// Path is a way from the source to the destination, and the list that realises it.
type Path struct {
	// in travel order; for ECMP all that packets may cross, in ascending order
	Edges   []topology.Edge
	SIDs    []SID // in travel order
	Latency int64 // in the graph's unit of delay; for ECMP that of the worst branch
	Forced  bool  // whether packets go this way and no other
}

// Stop says why a search for further paths ended.
type Stop string

// The reasons to stop.
const (
	Enough Stop = "enough" // as many as were wanted
	// the IGP's links that are still free do not connect source and destination
	NoWay       Stop = "no way left"
	ListTooLong Stop = "list too long" // they do, but not with that many SIDs of this model
	NotSought   Stop = "not sought"    // [Detours]: others failed besides, and none was looked for
)

// Answer is what a query found.
type Answer struct {
	Query Query  // with the defaults filled in
	Paths []Path // by latency; those beyond what is used are spares
	Stop  Stop
	// Least is the latency of the best path, also where others were taken for the sake of a second
	// one.
	Least int64
	// Rearranged tells that the best path alone would have left no second one: the first two were
	// found instead.
	Rearranged bool
	// Needs, where Stop is ListTooLong, is how many SIDs the quickest way left would take; 0 if no
	// number would do, as it crosses a link that no SID of the model can select.
	Needs int
}

// Avoiding is the first path that crosses none of the edges: what to switch to, at once, when they
// fail.
func (a Answer) Avoiding(edges ...topology.Edge) (Path, bool) {
	for _, p := range a.Paths {
		if !meet(p.Edges, edges) {
			return p, true
		}
	}
	return Path{}, false
}

func meet(a, b []topology.Edge) bool {
	for _, e := range a {
		for _, f := range b {
			if e == f {
				return true
			}
		}
	}
	return false
}
