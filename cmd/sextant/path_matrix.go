package main

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/packet/lists"
	"sextant/te/segment"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
)

// matrixOptions are the flags of path matrix.
type matrixOptions struct {
	models   []string
	disjoint string
	sids     int
	paths    int
	sets     []string
	largest  int
	workers  int
}

func (a *app) pathMatrix() *cobra.Command {
	var o matrixOptions
	cmd := &cobra.Command{
		Use:   "matrix [TOPOLOGY...]",
		Short: "Compute the paths of all pairs of nodes, and sum up their delays",
		Long: `For each topology and model, find the path of least delay between all ordered pairs of nodes, and report the sum of the
delays and the number of pairs without a path, so that results can be compared with other tools. With --paths 2 or more,
disjoint paths are found one after the other, and pairs with at least two are counted.

Without a topology, it takes all that the program carries, up to --largest nodes.`,
		Example: "  sextant path matrix paper-table3/AS1239 --paths 2\n" +
			"  sextant path matrix --set paper-table3 --set zoo --model adjacency --model paper " +
			"-o json\n  sextant path matrix -o json",
		Annotations: seeAlso("sextant path disjoint", "sextant path diversity"),
		Args:        cobra.ArbitraryArgs,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string,
			word string) ([]string, cobra.ShellCompDirective) {
			return completeTopologies(cmd, nil, word)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.showMatrix(cmd.Context(), o, args)
		},
	}
	all := lists.Map(segment.Models(), func(m segment.Model) string { return string(m) })
	cmd.Flags().StringSliceVar(&o.models, "model", all, "what a segment is; may be repeated")
	disjointFlags(cmd, &o.disjoint, &o.sids)
	cmd.Flags().IntVar(&o.paths, "paths", 1, "how many disjoint paths; 0 means all there are")
	cmd.Flags().StringSliceVar(&o.sets, "set", nil,
		"take the topologies of this set; may be repeated")
	cmd.Flags().IntVar(&o.largest, "largest", 600,
		"leave out topologies of more nodes, unless they are named")
	cmd.Flags().IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0),
		"how many sources are worked on at once; the result does not depend on it")
	complete(cmd, "model", all...)
	return cmd
}

type matrixResult struct {
	MaxSIDs  int          `json:"maxSids"`
	Disjoint string       `json:"disjoint"`
	Seconds  float64      `json:"seconds"`
	Items    []matrixItem `json:"items"`
	LeftOut  []string     `json:"leftOut"`
}

// matrixItem sums up one topology under one model.
type matrixItem struct {
	Topology      string  `json:"topology"`
	Model         string  `json:"model"`
	Nodes         int     `json:"nodes"`
	Edges         int     `json:"edges"`
	DelayUnit     string  `json:"delayUnit,omitempty"`
	Pairs         int     `json:"pairs"`
	Unreachable   int     `json:"unreachable"`
	SumMinLatency int64   `json:"sumMinLatency"` // in units of delay
	TwoDisjoint   int     `json:"pairsWithTwo"`
	Paths         int     `json:"paths"`
	Seconds       float64 `json:"seconds"`
}

func (a *app) showMatrix(ctx context.Context, o matrixOptions, args []string) error {
	models, q, err := o.check()
	if err != nil {
		return err
	}
	names := args
	if len(names) == 0 {
		if names, err = o.shipped(); err != nil {
			return err
		}
	}
	result := matrixResult{MaxSIDs: o.sids, Disjoint: o.disjoint, Items: []matrixItem{},
		LeftOut: []string{}}
	begun := time.Now()
	for i, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		g, err := readTopology(name)
		if err != nil {
			return err
		}
		if len(args) == 0 && g.Nodes() > o.largest {
			result.LeftOut = append(result.LeftOut, name)
			continue
		}
		if a.progress {
			a.progressLine(fmt.Sprintf("%d of %d: %s, %d nodes", i+1, len(names), name, g.Nodes()))
		}
		for _, model := range models {
			q.Model = model
			item, err := matrixOf(ctx, g, q, o.workers)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			item.Topology = name
			result.Items = append(result.Items, item)
		}
	}
	if a.progress {
		a.progressLine("")
	}
	result.Seconds = time.Since(begun).Seconds()
	return a.show(matrixView(result))
}

func (o matrixOptions) check() ([]segment.Model, segment.Query, error) {
	q := segment.Query{MaxSIDs: o.sids, Paths: o.paths}
	var models []segment.Model
	for _, text := range o.models {
		m, err := segment.ParseModel(text)
		if err != nil {
			return nil, q, usageErrorf("--model: %w", err)
		}
		models = append(models, m)
	}
	var err error
	if q.Disjoint, err = segment.ParseDisjointness(o.disjoint); err != nil {
		return nil, q, usageErrorf("--disjoint: %w", err)
	}
	if o.sids < 1 || o.paths < 0 || o.workers < 1 {
		return nil, q, usageErrorf("--sids and --workers are 1 at least, --paths 0")
	}
	return models, q, nil
}

// shipped lists the topologies of the sets that were asked for, of all without.
func (o matrixOptions) shipped() ([]string, error) {
	known := lists.Map(dataset.Sets(), func(s dataset.Set) string { return s.Name })
	for _, set := range o.sets {
		if !slices.Contains(known, set) {
			return nil, usageErrorf("--set: there is no set %q; choose from %s", set,
				strings.Join(known, ", "))
		}
	}
	return slices.DeleteFunc(dataset.Names(), func(name string) bool {
		return len(o.sets) > 0 && !slices.Contains(o.sets, path.Dir(name))
	}), nil
}

// matrixOf finds the paths of all pairs.
func matrixOf(ctx context.Context, g *topology.Graph, q segment.Query,
	workers int) (matrixItem, error) {
	item := matrixItem{
		Model: string(q.Model), Nodes: g.Nodes(), Edges: g.Edges(),
		DelayUnit: unitText(g.DelayUnit()),
	}
	engine, err := segment.New(g.All())
	if err != nil {
		return item, err
	}
	sources := make([]topology.Node, g.Nodes())
	for v := range sources {
		sources[v] = topology.Node(v)
	}
	begun := time.Now()
	err = engine.Sources(q, sources, workers,
		func(_ topology.Node, answers []segment.Answer) error {
			for _, answer := range answers {
				item.add(answer)
			}
			return ctx.Err()
		})
	item.Seconds = time.Since(begun).Seconds()
	return item, err
}

func (m *matrixItem) add(a segment.Answer) {
	m.Pairs++
	m.Paths += len(a.Paths)
	if len(a.Paths) == 0 {
		m.Unreachable++
		return
	}
	m.SumMinLatency += a.Least
	if len(a.Paths) > 1 {
		m.TwoDisjoint++
	}
}

func matrixView(r matrixResult) view {
	t := table{
		columns: []string{"TOPOLOGY", "MODEL", "PAIRS", "UNREACHABLE", "SUM OF LEAST DELAY",
			"WITH TWO", "PATHS"},
		wide: []string{"NODES", "EDGES", "SECONDS"},
	}
	v := view{value: r}
	for _, m := range r.Items {
		t.add(m.Topology, m.Model, m.Pairs, m.Unreachable, m.SumMinLatency, m.TwoDisjoint, m.Paths,
			m.Nodes, m.Edges, fmt.Sprintf("%.3f", m.Seconds))
		if len(v.names) == 0 || v.names[len(v.names)-1] != m.Topology {
			v.names = append(v.names, m.Topology)
		}
	}
	v.tables = tables{t}
	if len(r.LeftOut) > 0 {
		v.prose = fmt.Sprintf("Left out for their size (--largest): %s.\n\n",
			strings.Join(r.LeftOut, ", "))
	}
	return v
}
