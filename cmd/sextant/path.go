package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sextant/packet/lists"
	"sextant/te/segment"
	"sextant/te/topology"
	"sextant/te/topology/draw"
)

func (a *app) pathCommand() *cobra.Command {
	return noun("path", "Paths through a topology: segment lists, disjoint ones, and proofs",
		seeAlso("sextant service"),
		slices.Concat(a.computing(a.pathDisjoint(), a.pathExplain(), a.pathConfig(),
			a.pathFailure(), a.pathSegment(), a.pathSPF(), a.pathDiversity()),
			controllerFlag(a.pathFlows(), a.pathLinks(), a.pathGroups(), a.pathReroutes(),
				a.pathPin(), a.pathUnpin(), a.pathPorts(), a.pathRecover(), a.pathBest(),
				a.pathPlace(), a.pathPlaced(), a.pathRelease(), a.pathMPTCP()),
			[]*cobra.Command{a.pathMatrix(), a.pathAssign(),
				a.pathEncode(), a.pathDecode(), a.pathNextHops(), a.pathSubflows(), a.pathProbe(),
				a.pathRun()})...)
}

// pathFlags are what most of the path commands take.
type pathFlags struct {
	model    string
	disjoint string
	sids     int
	down     []string
	avoid    []string
	draw     string
}

func (f *pathFlags) add(cmd *cobra.Command) {
	f.addModel(cmd)
	disjointFlags(cmd, &f.disjoint, &f.sids)
	f.addDown(cmd)
	cmd.Flags().StringArrayVar(&f.avoid, "avoid", nil,
		"a link that paths must not use although the IGP does, as for --down")
	f.addDraw(cmd)
}

func disjointFlags(cmd *cobra.Command, disjoint *string, sids *int) {
	cmd.Flags().StringVar(disjoint, "disjoint", string(segment.LinkDisjoint),
		"what paths must not share: edge, link, node or srlg")
	cmd.Flags().IntVar(sids, "sids", segment.DefaultMaxSIDs,
		"the most SIDs in a list, the destination's included")
	complete(cmd, "disjoint", "edge", "link", "node", "srlg")
}

func (f *pathFlags) addModel(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.model, "model", string(segment.ForcedAdjacency),
		"what a segment is: paper, forced, adjacency (forced, with End.X) or ecmp")
	complete(cmd, "model", "paper", "forced", "adjacency", "ecmp")
}

func (f *pathFlags) addDown(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.down, "down", nil,
		"a link that has failed: FROM>TO, or the number of an edge; both directions")
}

func (f *pathFlags) addDraw(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.draw, "draw", "", "write a drawing of the paths to this file, as SVG")
}

// network is a topology that a command works on.
type network struct {
	*topology.Graph
	view   topology.View
	engine *segment.Engine
}

// openNetwork reads a topology and switches links off.
func (f *pathFlags) openNetwork(arg string) (*network, error) {
	g, err := readTopology(arg)
	if err != nil {
		return nil, err
	}
	n := &network{Graph: g, view: g.All()}
	down, err := n.links(f.down)
	if err != nil {
		return nil, fmt.Errorf("--down: %w", err)
	}
	if len(down) > 0 {
		n.view = n.view.Without(down...)
	}
	n.engine, err = segment.New(n.view)
	return n, err
}

// open reads the topology that the first argument names, and makes a query of the flags and the
// ends that follow.
func (f *pathFlags) open(args []string) (*network, segment.Query, error) {
	n, err := f.openNetwork(args[0])
	if err != nil {
		return nil, segment.Query{}, err
	}
	q, err := f.query(n, args[1], args[2])
	return n, q, err
}

// query checks the flags and the names of the ends.
func (f *pathFlags) query(n *network, from, to string) (q segment.Query, err error) {
	q.MaxSIDs = f.sids
	if q.Model, err = segment.ParseModel(f.model); err != nil {
		return q, usageErrorf("--model: %w", err)
	}
	if q.Disjoint, err = segment.ParseDisjointness(f.disjoint); err != nil {
		return q, usageErrorf("--disjoint: %w", err)
	}
	if f.sids < 1 {
		return q, usageErrorf("--sids %d: a list has at least one SID", f.sids)
	}
	if q.From, err = n.node(from); err != nil {
		return q, err
	}
	if q.To, err = n.node(to); err != nil {
		return q, err
	}
	if q.From == q.To {
		return q, usageErrorf("%s is both ends; name two nodes", n.name(q.From))
	}
	if q.Avoid, err = n.links(f.avoid); err != nil {
		return q, fmt.Errorf("--avoid: %w", err)
	}
	return q, nil
}

func (n *network) name(v topology.Node) string { return n.Node(v).Name }

// node finds a node by its name, or by a part of it that no other has.
func (n *network) node(text string) (topology.Node, error) {
	if v, ok := n.Lookup(text); ok {
		return v, nil
	}
	var found []topology.Node
	var names []string
	for v := range topology.Node(n.Nodes()) {
		if strings.Contains(strings.ToLower(n.name(v)), strings.ToLower(text)) {
			found = append(found, v)
			names = append(names, n.name(v))
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return topology.NoNode, notFoundf("%s has no node %q; it has %s", n.Name(), text,
			n.someNames())
	}
	return topology.NoNode, usageErrorf("%q is part of several names; choose one of %s", text,
		enumerate(names, 8))
}

func (n *network) names() (names []string) {
	for v := range topology.Node(n.Nodes()) {
		names = append(names, n.name(v))
	}
	return names
}

func (n *network) someNames() string { return enumerate(n.names(), 8) }

// enumerate names some, and says how many there are besides.
func enumerate(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// links turns FROM>TO, or numbers of edges, into edges of both directions. FROM>TO means all
// parallel links.
func (n *network) links(texts []string) ([]topology.Edge, error) {
	var links []topology.Edge
	for _, text := range texts {
		edges, err := n.edges(text)
		if err != nil {
			return nil, err
		}
		for _, e := range edges {
			links = append(links, e)
			if back := n.Reverse(e); back != topology.NoEdge {
				links = append(links, back)
			}
		}
	}
	return links, nil
}

func (n *network) edges(text string) ([]topology.Edge, error) {
	if number, err := strconv.Atoi(text); err == nil {
		if number < 0 || number >= n.Edges() {
			return nil, notFoundf("there is no edge %d; %s has edges 0 to %d", number,
				n.Name(), n.Edges()-1)
		}
		return []topology.Edge{topology.Edge(number)}, nil
	}
	from, to, ok := strings.Cut(text, ">")
	if !ok {
		return nil, usageErrorf("%q is not a link; write FROM>TO in quotes, or the number of an "+
			"edge", text)
	}
	u, err := n.node(from)
	if err != nil {
		return nil, err
	}
	v, err := n.node(to)
	if err != nil {
		return nil, err
	}
	between := n.between(u, v)
	if len(between) == 0 {
		return nil, notFoundf("no link leads from %s to %s", n.name(u), n.name(v))
	}
	return between, nil
}

// between lists the edges from u to v.
func (n *network) between(u, v topology.Node) []topology.Edge {
	return slices.DeleteFunc(slices.Clone(n.Out(u)),
		func(e topology.Edge) bool { return n.To(e) != v })
}

// linkName names an edge by its ends, and by its number where there are parallel ones.
func (n *network) linkName(e topology.Edge) string {
	name := n.name(n.From(e)) + ">" + n.name(n.To(e))
	if len(n.between(n.From(e), n.To(e))) > 1 {
		name += fmt.Sprintf("#%d", e)
	}
	return name
}

func (n *network) linkNames(edges []topology.Edge) []string {
	return lists.Map(edges, n.linkName)
}

// delay writes a number of the graph's units of delay.
func (n *network) delay(units int64) string { return delayText(units, n.DelayUnit()) }

// drawPaths writes a drawing of paths to a file.
func (a *app) drawPaths(file, title string, n *network, paths []segment.Path) error {
	if file == "" {
		return nil
	}
	options := draw.Options{Title: title}
	for i, p := range paths {
		drawn := draw.Path{Label: fmt.Sprintf("path %d: %s, %s", i+1, n.delay(p.Latency),
			n.list(p.SIDs)), Edges: p.Edges}
		for _, sid := range p.SIDs {
			drawn.Nodes = append(drawn.Nodes, sid.Node)
		}
		options.Paths = append(options.Paths, drawn)
	}
	return a.draws(file, n.Graph, options)
}

func (a *app) draws(file string, g *topology.Graph, options draw.Options) error {
	if err := os.WriteFile(file, draw.SVG(g, options), 0o644); err != nil {
		return fmt.Errorf("draw the paths: %w; name a file that this user can write", err)
	}
	if !a.quiet {
		a.say("drew %s", file)
	}
	return nil
}

// completeEnds offers topologies, then the nodes of the one that was chosen.
func completeEnds(cmd *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeTopologies(cmd, args, word)
	}
	g, err := readTopology(args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return (&network{Graph: g}).names(), cobra.ShellCompDirectiveNoFileComp
}
