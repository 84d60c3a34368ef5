package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"sextant/te/segment"
	"sextant/te/topology"
)

func (a *app) pathSegment() *cobra.Command {
	var f pathFlags
	cmd := &cobra.Command{
		Use:   "segment TOPOLOGY NODE NODE...",
		Short: "Find the shortest segment list for a path that is given node by node",
		Long: `Find a segment list with the fewest SIDs for a path, which is given by its nodes. Between nodes with parallel links,
a link is chosen by its number: FROM 17 TO. The list is replayed, so that EFFECT says whether packets really go this way.`,
		Example: "  sextant path segment zoo/Abilene Seattle Denver Kansas Houston\n" +
			"  sextant path segment zoo/Abilene Seattle Sunnyvale Los_Angeles Houston --model " +
			"paper -o json",
		Annotations:       seeAlso("sextant path spf", "sextant path disjoint"),
		Args:              cobra.MinimumNArgs(0),
		ValidArgsFunction: completeEnds,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) < 3 {
				return usageErrorf("missing %s", []string{"TOPOLOGY NODE NODE", "NODE NODE",
					"NODE"}[len(args)])
			}
			return a.showSegment(f, args)
		},
	}
	f.addModel(cmd)
	f.addDown(cmd)
	f.addDraw(cmd)
	return cmd
}

type segmentResult struct {
	Query pathQuery  `json:"query"`
	Items []pathItem `json:"items"`
}

func (a *app) showSegment(f pathFlags, args []string) error {
	model, err := segment.ParseModel(f.model)
	if err != nil {
		return usageErrorf("--model: %w", err)
	}
	n, err := f.openNetwork(args[0])
	if err != nil {
		return err
	}
	edges, err := n.path(args[1:])
	if err != nil {
		return err
	}
	sids, err := n.engine.Segment(edges, model)
	if err != nil {
		return err
	}
	p := segment.Path{Edges: edges, SIDs: sids}
	for _, e := range edges {
		p.Latency += n.Delay(e)
	}
	from, to := n.From(edges[0]), n.To(edges[len(edges)-1])
	verdicts, err := n.verified(from, []segment.Path{p})
	if err != nil {
		return err
	}
	item := n.item(p, verdicts[0], "")
	query := n.queryJSON(segment.Query{From: from, To: to, Model: model})
	t := table{
		columns: []string{"SIDS", "DELAY", "LINKS", "EFFECT", "SEGMENTS"},
		rows: [][]string{{
			count(len(sids)), n.delay(p.Latency), count(len(edges)), effect(model, verdicts[0]),
			n.list(sids),
		}},
	}
	v := view{value: segmentResult{query, []pathItem{item}}, tables: tables{t},
		names: []string{n.list(sids)}}
	if err := a.show(v); err != nil {
		return err
	}
	return a.drawPaths(f.draw, fmt.Sprintf("%s: %s to %s", n.Name(), n.name(from), n.name(to)), n,
		[]segment.Path{p})
}

// path turns nodes, and numbers of edges between them, into edges.
func (n *network) path(words []string) ([]topology.Edge, error) {
	at, err := n.node(words[0])
	if err != nil {
		return nil, err
	}
	var path []topology.Edge
	chosen := topology.NoEdge
	for _, word := range words[1:] {
		if _, isNode := n.Lookup(word); !isNode && isNumber(word) {
			edges, err := n.edges(word)
			if err != nil {
				return nil, err
			}
			chosen = edges[0]
			continue
		}
		next, err := n.node(word)
		if err != nil {
			return nil, err
		}
		between := n.between(at, next)
		switch {
		case chosen != topology.NoEdge && (n.From(chosen) != at || n.To(chosen) != next):
			return nil, usageErrorf("edge %d does not lead from %s to %s", chosen, n.name(at),
				n.name(next))
		case chosen != topology.NoEdge:
			path = append(path, chosen)
		case len(between) == 0:
			return nil, notFoundf("no link leads from %s to %s", n.name(at), n.name(next))
		case len(between) > 1:
			return nil, usageErrorf("%d links lead from %s to %s; write the number of one "+
				"between the two: %v", len(between), n.name(at),
				n.name(next), between)
		default:
			path = append(path, between[0])
		}
		at, chosen = next, topology.NoEdge
	}
	if len(path) == 0 {
		return nil, usageErrorf("a path has two nodes at least")
	}
	return path, nil
}

func isNumber(word string) bool {
	for _, r := range word {
		if r < '0' || r > '9' {
			return false
		}
	}
	return word != ""
}
