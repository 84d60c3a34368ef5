package disjoint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sextant/experiment"
	"sextant/experiment/chart"
	"sextant/te/diversity"
	"sextant/te/topology"
	"sextant/te/topology/generate"
)

var dataCenters = experiment.Experiment{
	Name: "diversity", Title: "How many equal-cost paths servers of data centers have between them",
	Source: "G. Detal, C. Paasch, S. van der Linden, P. Merindol, G. Avoine, O. Bonaventure, " +
		"Revisiting flow-based load balancing: " +
		"stateless path selection in data center networks, figures 1 and 2",
	Shows: "Counts, without listing them, the paths between all ordered pairs of servers of a " +
		"fat tree, of VL2 with Valiant load " +
		"balancing and of BCube, each of about 600 servers; and the next hops that switches have " +
		"for each server.",
	Paper: experiment.CFLB, Lasts: "10 s",
	Run: runDataCenters,
}

// fabric is a data center of figure 1.
type fabric struct {
	name    string
	make    func() (*topology.Graph, error)
	servers string // how their names begin
	through string // how the names of the switches begin that packets bounce off; "" if they do not
	relay   bool   // whether servers forward
}

var fabrics = []fabric{
	{"fat tree, k = 14", func() (*topology.Graph, error) { return generate.FatTree(14) }, "host",
		"", false},
	{"VL2, 10 intermediate switches, Valiant",
		func() (*topology.Graph, error) { return generate.VL2(20, 6, 20) }, "server", "int",
		false},
	{"BCube(5, 3)", func() (*topology.Graph, error) { return generate.BCube(5, 3) }, "server", "",
		true},
	{"BCube(8, 2)", func() (*topology.Graph, error) { return generate.BCube(8, 2) }, "server", "",
		true},
}

func runDataCenters(ctx context.Context, r *experiment.Recorder) error {
	t := experiment.Table{
		Name: "diversity", Title: "Paths and next hops",
		Columns: []string{"Network", "Servers", "pairs with 2 paths or more, %", "most paths",
			"2 next hops or more, %",
			"most next hops"},
	}
	one := chart.Chart{Title: "Pairs of servers with at least so many paths", X: "equal-cost paths",
		Y: "pairs, %", LogX: true, ToY: 100}
	two := chart.Chart{Title: "Switches and destinations with at least so many next hops",
		X: "next hops", Y: "%", FromX: 1, ToX: 14,
		ToY: 100}
	least, leastHops, mostPaths, mostHops := 1.0, 1.0, map[string]uint64{}, 0
	for _, f := range fabrics {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.Progress("%s", f.name)
		g, err := f.make()
		if err != nil {
			return err
		}
		servers, table := named(g, f.servers), igp(g)
		var through []topology.Node
		if f.through != "" {
			through = named(g, f.through)
		}
		paths, hops := diversity.Between(table, servers, through),
			diversity.NextHops(table, servers, f.relay)
		t.Rows = append(t.Rows, row(f.name, len(servers), 100*diversity.Share(paths, 2),
			slices.Max(paths), 100*diversity.Share(hops,
				2), slices.Max(hops)))
		one.Series = append(one.Series, descent(f.name, paths))
		two.Series = append(two.Series, descent(f.name, hops))
		least, leastHops = min(least, diversity.Share(paths, 2)),
			min(leastHops, diversity.Share(hops, 2))
		mostPaths[f.name], mostHops = slices.Max(paths), max(mostHops, slices.Max(hops))
	}
	r.Table(t)
	r.Compare(experiment.Comparison{
		What: "pairs of servers with two or more paths, in each network", Source: "more than 80 %",
		Ours: "at least " + percent(least),
		Says: sayAtLeast(least, 0.8),
	})
	r.Compare(experiment.Comparison{
		What: "most paths between servers of BCube", Source: "64",
		Ours: fmt.Sprintf("%d and %d", mostPaths["BCube(5, 3)"],
			mostPaths["BCube(8, 2)"]),
		Says: "servers that differ in h digits have h! shortest paths, and no factorial is 64; " +
			"the source does not give n and k",
	})
	r.Compare(experiment.Comparison{
		What: "destinations for which a switch has several next hops", Source: "70 % on average",
		Ours: "at least " +
			percent(leastHops), Says: "see the table",
	})
	r.Compare(experiment.Comparison{
		What: "most next hops", Source: "10", Ours: fmt.Sprint(mostHops),
		Says: "depends on the ports, which the source does not give",
	})
	r.Note("The source says \"approximately 600 servers\" and no more. A fat tree of 14-port " +
		"switches has 686, VL2 with 30 racks 600, " +
		"BCube(5, 3) 625 and BCube(8, 2) 512.")
	if err := r.Chart("fig1", one); err != nil {
		return err
	}
	return r.Chart("fig2", two)
}

// descent is the share of counts that are at least so great.
func descent[T uint64 | int](name string, counts []T) chart.Series {
	s := chart.Series{Name: name, Marks: true}
	for _, value := range slices.Compact(slices.Sorted(slices.Values(counts))) {
		s.Points = append(s.Points, chart.Point{X: float64(value),
			Y: 100 * diversity.Share(counts, value)})
	}
	return s
}

// named are the nodes whose names begin with a prefix.
func named(g *topology.Graph, prefix string) []topology.Node {
	var nodes []topology.Node
	for v := range topology.Node(g.Nodes()) {
		if strings.HasPrefix(g.Node(v).Name, prefix) {
			nodes = append(nodes, v)
		}
	}
	return nodes
}
