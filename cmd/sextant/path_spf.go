package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"sextant/te/diversity"
	"sextant/te/segment"
	"sextant/te/spf"
	"sextant/te/topology"
)

func (a *app) pathSPF() *cobra.Command {
	var f pathFlags
	cmd := &cobra.Command{
		Use: "spf TOPOLOGY FROM [TO]", Short: "Show the shortest paths from a node by IGP weight",
		Long: `Show the distance of each node, how many equal-cost paths lead there, whether its SID is forced (one path alone), and the
least and worst delay among the equal-cost paths. With TO, show that node alone, and the links that packets may cross.`,
		Example: "  sextant path spf zoo/Abilene Seattle\n  sextant path spf " +
			"zoo-unary/Geant2012 _PT _GR --draw spf.svg",
		Annotations:       seeAlso("sextant path disjoint", "sextant path diversity"),
		Args:              takes("TOPOLOGY", "FROM", "[TO]"),
		ValidArgsFunction: completeEnds,
		RunE: func(_ *cobra.Command, args []string) error {
			n, err := f.openNetwork(args[0])
			if err != nil {
				return err
			}
			from, err := n.node(args[1])
			if err != nil {
				return err
			}
			only := topology.NoNode
			if len(args) > 2 {
				if only, err = n.node(args[2]); err != nil {
					return err
				}
			}
			return a.showSPF(f, n, from, only)
		},
	}
	f.addDown(cmd)
	f.addDraw(cmd)
	return cmd
}

type spfResult struct {
	Query pathQuery `json:"query"`
	Items []spfItem `json:"items"`
}

type spfItem struct {
	To         string     `json:"to"`
	Distance   uint64     `json:"distance"`
	Paths      uint64     `json:"paths"` // 18446744073709551615 for more than that
	Forced     bool       `json:"forced"`
	LeastDelay int64      `json:"leastDelay"`
	WorstDelay int64      `json:"worstDelay"`
	Edges      []pathEdge `json:"edges,omitempty"`
}

func (a *app) showSPF(f pathFlags, n *network, from, only topology.Node) error {
	table, query := n.table(), n.queryJSON(segment.Query{From: from, To: from})
	query.To = ""
	row := table.From(from)
	paths, least, worst := diversity.Paths(row), row.Layer(spf.Least), row.Layer(spf.Worst)
	result := spfResult{Query: query, Items: []spfItem{}}
	v := view{}
	t := spfTable()
	for to := range topology.Node(n.Nodes()) {
		if to == from || only != topology.NoNode && to != only || row.Dist[to] == spf.Unreachable {
			continue
		}
		item := spfItem{
			To: n.name(to), Distance: row.Dist[to], Paths: paths[to], Forced: paths[to] == 1,
			LeastDelay: int64(least.Latency[to]), WorstDelay: int64(worst.Latency[to]),
		}
		if to == only {
			replay, err := n.engine.Replay(from, []segment.SID{{Node: to, Link: topology.NoEdge}})
			if err != nil {
				return err
			}
			item.Edges = n.edgesJSON(replay.Edges)
			v.prose = "Packets cross " + enumerate(n.linkNames(replay.Edges), n.Edges()) + ".\n\n"
			drawn := segment.Path{Edges: replay.Edges,
				SIDs: []segment.SID{{Node: to, Link: topology.NoEdge}}, Latency: item.WorstDelay}
			if err := a.drawPaths(f.draw, fmt.Sprintf("%s: shortest paths from %s to %s", n.Name(),
				n.name(from), n.name(to)), n,
				[]segment.Path{drawn}); err != nil {
				return err
			}
		}
		result.Items = append(result.Items, item)
		t.add(item.To, strconv.FormatUint(item.Distance, 10), many(item.Paths), yes(item.Forced),
			n.delay(item.LeastDelay), n.delay(item.WorstDelay))
		v.names = append(v.names, item.To)
	}
	if only != topology.NoNode && len(result.Items) == 0 {
		return notFoundf("%s does not reach %s", n.name(from), n.name(only))
	}
	v.value, v.tables = result, tables{t}
	return a.show(v)
}

func spfTable() table {
	return table{columns: []string{"TO", "DISTANCE", "PATHS", "FORCED", "LEAST DELAY",
		"WORST DELAY"}}
}

// many writes a number of paths that may be too large.
func many(paths uint64) string {
	if paths == diversity.Many {
		return "> 10^19"
	}
	return strconv.FormatUint(paths, 10)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// table is the network's shortest paths by IGP weight, with delays.
func (n *network) table() *spf.Table {
	return spf.New(n.view, func(e topology.Edge) uint64 { return uint64(n.Weight(e)) },
		func(e topology.Edge) uint64 { return uint64(n.Delay(e)) })
}
