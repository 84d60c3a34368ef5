package segment

import (
	"fmt"
	"slices"

	"sextant/te/spf"
	"sextant/te/topology"
)

// Segment is a shortest list for a given path: walk on while one segment goes along, then begin the
// next (section III.B). What a segment can do, each part of it can; so going as far as possible is
// best. For ECMP the list is that of Forced, as the path is to be the only one. Of the lists with
// the fewest SIDs it takes one with node SIDs where they do. The error names the link that no SID
// of the model selects.
func (e *Engine) Segment(path []topology.Edge, model Model) ([]SID, error) {
	if len(path) == 0 {
		return nil, fmt.Errorf("segment a path: it has no edges")
	}
	for i, edge := range path {
		switch {
		case edge < 0 || int(edge) >= e.graph.Edges():
			return nil, fmt.Errorf("segment a path: there is no edge %d; %s has edges 0 to %d",
				edge, e.graph.Name(), e.graph.Edges()-1)
		case i > 0 && e.graph.From(edge) != e.graph.To(path[i-1]):
			return nil, fmt.Errorf("segment a path: %s does not begin where %s ends",
				e.edgeName(edge), e.edgeName(path[i-1]))
		case e.igp.Cost(edge) == 0:
			return nil, fmt.Errorf("segment a path: %s is down", e.edgeName(edge))
		}
	}
	sids, stuck := e.minimal(path, model)
	if stuck != topology.NoEdge {
		return nil, fmt.Errorf("segment a path with model %s: no SID selects %s, which is %s; "+
			"use model %s, or change its weight",
			model, e.edgeName(stuck), e.whyStuck(stuck), ForcedAdjacency)
	}
	return sids, nil
}

// edgeName tells a person which edge it is.
func (e *Engine) edgeName(edge topology.Edge) string {
	return fmt.Sprintf("link %d from %s to %s", edge, e.graph.Node(e.graph.From(edge)).Name,
		e.graph.Node(e.graph.To(edge)).Name)
}

func (e *Engine) whyStuck(edge topology.Edge) string {
	if e.igp.From(e.graph.From(edge)).Tight(edge) {
		return "one of several shortest paths between its ends"
	}
	return "on no shortest path"
}

// minimal is Segment for a path that is known to be one. Where there is no list, it names the edge.
func (e *Engine) minimal(path []topology.Edge, model Model) (sids []SID, stuck topology.Edge) {
	if model == ForcedAdjacency {
		return e.minimalAdjacency(path), topology.NoEdge
	}
	sids = make([]SID, 0, DefaultMaxSIDs)
	for at := 0; at < len(path); {
		next := e.reach(path, at, model)
		if next == at {
			return nil, path[at]
		}
		sids = append(sids, SID{e.graph.To(path[next-1]), topology.NoEdge})
		at = next
	}
	return sids, topology.NoEdge
}

// reach is how far one node SID gets along the path from the node before path[at]: the index of the
// first edge beyond.
func (e *Engine) reach(path []topology.Edge, at int, model Model) int {
	if at == len(path) {
		return at
	}
	row := e.igp.Passing(e.graph.From(path[at]), false)
	for at < len(path) && along(row, e.graph.To(path[at]), path[at], model) {
		at++
	}
	return at
}

// along tells whether a segment of the row that goes along a path as far as edge goes on along it,
// to v.
func along(row *spf.Row, v topology.Node, edge topology.Edge, model Model) bool {
	if model == Paper {
		return row.Tight(edge)
	}
	return row.Via[v] == edge
}

// piece is the part of a path that one SID covers: from index start to index end by node SID, and,
// if it is an End.X, across path[end] as well.
type piece struct {
	start, end int
	cross      bool
}

func (e *Engine) minimalAdjacency(path []topology.Edge) []SID {
	pieces := make([]piece, 0, 8) // more only where a list is long
	for at := 0; ; {
		end := e.reach(path, at, ForcedAdjacency)
		// At the latest behind the last edge: the SID of the destination, after an End.X.
		if end == len(path) {
			pieces = append(pieces, piece{at, end, false})
			break
		}
		pieces = append(pieces, piece{at, end, true})
		at = end + 1
	}
	for k := range pieces[:len(pieces)-1] {
		// A node SID does instead of the End.X if the next SID gets as far from one node earlier.
		p, next := &pieces[k], &pieces[k+1]
		if p.end > p.start && e.reach(path, p.end, ForcedAdjacency) >= next.end {
			p.cross, next.start = false, p.end
		}
	}
	sids := make([]SID, len(pieces))
	for k, p := range pieces {
		switch {
		case p.cross:
			sids[k] = SID{e.graph.From(path[p.end]), path[p.end]}
		default:
			sids[k] = SID{e.graph.To(path[p.end-1]), topology.NoEdge}
		}
	}
	return sids
}

// forced tells whether packets that follow the list from a node have one way only.
func (e *Engine) forced(from topology.Node, sids []SID) bool {
	return !slices.ContainsFunc(sids, func(sid SID) bool {
		several := e.igp.From(from).Paths(sid.Node) > 1
		from = e.end(sid)
		return several
	})
}

// end is where a SID leaves a packet.
func (e *Engine) end(sid SID) topology.Node {
	if sid.Link != topology.NoEdge {
		return e.graph.To(sid.Link)
	}
	return sid.Node
}
