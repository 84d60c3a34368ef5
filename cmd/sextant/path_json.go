package main

import (
	"fmt"
	"strings"

	"sextant/te/segment"
	"sextant/te/topology"
)

// Answers of the path commands in JSON. Edges have numbers, because links may be parallel; delays
// are in units of delayUnit, which is left out where the topology does not say.
type (
	pathQuery struct {
		Topology  string `json:"topology"`
		DelayUnit string `json:"delayUnit,omitempty"`
		From      string `json:"from"`
		To        string `json:"to"`
		Model     string `json:"model,omitempty"`
		Disjoint  string `json:"disjoint,omitempty"`
		MaxSIDs   int    `json:"maxSids,omitempty"`
	}
	pathItem struct {
		Delay   int64      `json:"delay"`
		Hops    int        `json:"hops"`
		Forced  bool       `json:"forced"`
		Role    string     `json:"role,omitempty"`
		SIDs    []pathSID  `json:"sids"`
		Edges   []pathEdge `json:"edges"`
		Strays  []pathEdge `json:"strays"`
		Missing []pathEdge `json:"missing"`
	}
	pathSID struct {
		Kind string    `json:"kind"` // node or end.x
		Node string    `json:"node"`
		Link *pathEdge `json:"link,omitempty"`
	}
	pathEdge struct {
		ID   topology.Edge `json:"id"`
		From string        `json:"from"`
		To   string        `json:"to"`
	}
)

func (n *network) queryJSON(q segment.Query) pathQuery {
	return pathQuery{
		Topology: n.Name(), DelayUnit: unitText(n.DelayUnit()), From: n.name(q.From),
		To:    n.name(q.To),
		Model: string(q.Model), Disjoint: string(q.Disjoint), MaxSIDs: q.MaxSIDs,
	}
}

func (n *network) edgesJSON(edges []topology.Edge) []pathEdge {
	items := []pathEdge{}
	for _, e := range edges {
		items = append(items, pathEdge{e, n.name(n.From(e)), n.name(n.To(e))})
	}
	return items
}

// item describes a path, and what replaying its list showed.
func (n *network) item(p segment.Path, v segment.Verdict, role string) pathItem {
	item := pathItem{
		Delay: p.Latency, Hops: len(p.Edges), Forced: v.Forced, Role: role,
		Edges: n.edgesJSON(p.Edges), Strays: n.edgesJSON(v.Left), Missing: n.edgesJSON(v.Missing),
	}
	for _, sid := range p.SIDs {
		s := pathSID{Kind: "node", Node: n.name(sid.Node)}
		if sid.Link != topology.NoEdge {
			link := n.edgesJSON([]topology.Edge{sid.Link})
			s.Kind, s.Link = "end.x", &link[0]
		}
		item.SIDs = append(item.SIDs, s)
	}
	return item
}

// list writes a segment list for people: nodes, and links for End.X.
func (n *network) list(sids []segment.SID) string {
	var words []string
	for _, sid := range sids {
		if sid.Link == topology.NoEdge {
			words = append(words, n.name(sid.Node))
		} else {
			words = append(words, "("+n.linkName(sid.Link)+")")
		}
	}
	return strings.Join(words, " ")
}

// way writes the nodes that a path visits; with branches, its links.
func (n *network) way(edges []topology.Edge) string {
	var words []string
	for i, e := range edges {
		switch {
		case i == 0:
			words = append(words, n.name(n.From(e)), n.name(n.To(e)))
		case n.From(e) != n.To(edges[i-1]):
			return strings.Join(n.linkNames(edges), " ")
		default:
			words = append(words, n.name(n.To(e)))
		}
	}
	return strings.Join(words, " ")
}

// verified replays the lists of paths.
func (n *network) verified(from topology.Node, paths []segment.Path) ([]segment.Verdict, error) {
	verdicts := make([]segment.Verdict, len(paths))
	for i, p := range paths {
		var err error
		if verdicts[i], err = n.engine.Verify(from, p); err != nil {
			return nil, fmt.Errorf("verify path %d by replay: %w", i+1, err)
		}
	}
	return verdicts, nil
}

// effect says in a word what packets do, in view of what the list is for.
func effect(model segment.Model, v segment.Verdict) string {
	switch {
	case len(v.Left) == 0 && len(v.Missing) == 0 && v.Forced:
		return "forced"
	case len(v.Left) == 0 && len(v.Missing) == 0 && model == segment.ECMP:
		return "branches"
	}
	return fmt.Sprintf("loose (%d strays)", len(v.Left))
}
