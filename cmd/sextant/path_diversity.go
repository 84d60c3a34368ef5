package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sextant/te/diversity"
	"sextant/te/topology"
)

func (a *app) pathDiversity() *cobra.Command {
	var between, through string
	var relay bool
	cmd := &cobra.Command{
		Use:   "diversity TOPOLOGY",
		Short: "Count the equal-cost paths between nodes, and the next hops of routers",
		Long: `Count the equal-cost paths of all ordered pairs of nodes, and the next hops that routers have for them. Paths are counted,
never listed. With --through, packets first go to one of some nodes, whichever, as in Valiant load balancing.`,
		Example: "  sextant path diversity fat-tree.graph --between host\n" +
			"  sextant path diversity zoo-unary/Geant2012\n  sextant path diversity " +
			"paper-table3/AS1239 --between San+Jose",
		Annotations:       seeAlso("sextant path spf", "sextant path matrix"),
		Args:              takes("TOPOLOGY"),
		ValidArgsFunction: completeEnds,
		RunE: func(_ *cobra.Command, args []string) error {
			var f pathFlags
			n, err := f.openNetwork(args[0])
			if err != nil {
				return err
			}
			return a.showUnless(n.diversity(between, through, relay))
		},
	}
	cmd.Flags().StringVar(&between, "between", "",
		"count between the nodes whose names begin so, for instance host; without, all")
	cmd.Flags().StringVar(&through, "through", "",
		"first go to any of the nodes whose names begin so, for instance int")
	cmd.Flags().BoolVar(&relay, "relay", false,
		"count next hops of the nodes of --between as well, which forward for others as in BCube")
	return cmd
}

type diversityResult struct {
	Topology string           `json:"topology"`
	Nodes    int              `json:"nodes"`
	Pairs    int              `json:"pairs"`
	Items    []diversityItem  `json:"items"` // pairs by number of paths
	NextHops []diversityShare `json:"nextHops"`
}

// diversityItem says how many pairs have at least so many paths.
type diversityItem struct {
	Paths uint64  `json:"paths"` // 18446744073709551615 for more than that
	Pairs int     `json:"pairs"`
	Share float64 `json:"shareWithAtLeast"`
}

type diversityShare struct {
	NextHops int     `json:"nextHops"`
	Share    float64 `json:"shareWithAtLeast"`
}

// named are the nodes whose names begin with a prefix.
func (n *network) named(flag, prefix string) ([]topology.Node, error) {
	var nodes []topology.Node
	for v := range topology.Node(n.Nodes()) {
		if strings.HasPrefix(n.name(v), prefix) {
			nodes = append(nodes, v)
		}
	}
	if len(nodes) == 0 {
		return nil, notFoundf("--%s: no node's name begins with %q; there are %s", flag,
			prefix, n.someNames())
	}
	return nodes, nil
}

func (n *network) diversity(between, through string, relay bool) (view, error) {
	ends, err := n.named("between", between)
	if err != nil {
		return view{}, err
	}
	var middle []topology.Node
	if through != "" {
		if middle, err = n.named("through", through); err != nil {
			return view{}, err
		}
	}
	table := n.table()
	pairs := diversity.Between(table, ends, middle)
	result := diversityResult{Topology: n.Name(), Nodes: len(ends), Pairs: len(pairs),
		Items:    []diversityItem{},
		NextHops: []diversityShare{}}
	for _, value := range distinct(pairs) {
		result.Items = append(result.Items, diversityItem{value, tally(pairs, value),
			diversity.Share(pairs, value)})
	}
	hops := diversity.NextHops(table, ends, relay || between == "")
	for _, value := range distinct(hops) {
		result.NextHops = append(result.NextHops,
			diversityShare{value, diversity.Share(hops, value)})
	}
	return diversityView(result), nil
}

func distinct[T uint64 | int](values []T) []T {
	sorted := slices.Sorted(slices.Values(values))
	return slices.Compact(sorted)
}

func tally(values []uint64, value uint64) int {
	n := 0
	for _, v := range values {
		if v == value {
			n++
		}
	}
	return n
}

func diversityView(r diversityResult) view {
	paths := table{title: "Equal-cost paths between pairs of nodes:",
		columns: []string{"PATHS", "PAIRS", "AT LEAST"}}
	v := view{value: r}
	for _, item := range r.Items {
		paths.add(many(item.Paths), item.Pairs, fmt.Sprintf("%.1f%%", 100*item.Share))
		v.names = append(v.names, many(item.Paths))
	}
	hops := table{title: "Next hops of a router for a destination:",
		columns: []string{"NEXT HOPS", "AT LEAST"}}
	for _, item := range r.NextHops {
		hops.add(item.NextHops, fmt.Sprintf("%.1f%%", 100*item.Share))
	}
	v.tables = tables{paths, hops}
	return v
}
