package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sextant/packet/lists"
	"sextant/te/segment"
	"sextant/te/segment/proof"
)

// disjointOptions are the flags of path disjoint.
type disjointOptions struct {
	pathFlags
	paths     int
	objective string
	noProof   bool
	seed      uint64
}

// provable is the size of network, in nodes times edges, up to which a proof takes seconds at most.
const provable = 20_000_000

func (a *app) pathDisjoint() *cobra.Command {
	var o disjointOptions
	cmd := &cobra.Command{
		Use: "disjoint TOPOLOGY FROM TO", Short: "Find disjoint paths with their segment lists, " +
			"and prove that there are no better ones",
		Long: `Find paths between two nodes that share nothing, and segment lists that force packets onto them.

TOPOLOGY is a file or one of the topologies that the program carries. Nodes are named by any unique part of their names.
All disjoint paths are shown, the quickest two for duplication and the rest as spares. With --paths 2, the pair of the least
delay is sought. Every list is replayed against the shortest paths of the network, and EFFECT says what packets do: forced
means this path and no other, loose means that equal-cost paths carry them elsewhere, too.`,
		Example: "  sextant path disjoint zoo/Abilene Seattle New_York\n" +
			"  sextant path disjoint paper-table3/AS1755 London,+UnitedKingdom208 " +
			"Berlin,+Germany160 --paths 2 --draw paths.svg\n" +
			"  sextant path disjoint zoo/Geant2012 _PT _GR --disjoint node --down 12 -o json",
		Annotations:       seeAlso("sextant path explain", "sextant path matrix"),
		Args:              takes("TOPOLOGY", "FROM", "TO"),
		ValidArgsFunction: completeEnds,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.showDisjoint(o, args)
		},
	}
	o.add(cmd)
	cmd.Flags().IntVar(&o.paths, "paths", 0, "how many paths; 0 means all there are")
	cmd.Flags().StringVar(&o.objective, "objective", string(proof.LeastTotal),
		"what the pair of --paths 2 is best in: total or worst delay")
	cmd.Flags().BoolVar(&o.noProof, "no-proof", false,
		"take the paths of the paper's method, one after the other, without a proof")
	cmd.Flags().Uint64Var(&o.seed, "seed", 1, "of the random restarts of the proof")
	complete(cmd, "objective", "total", "worst")
	return cmd
}

// disjointResult is the answer of path disjoint in JSON.
type disjointResult struct {
	Query pathQuery  `json:"query"`
	Items []pathItem `json:"items"`
	Proof *proofJSON `json:"proof,omitempty"`
	Pair  *pairJSON  `json:"pair,omitempty"`
	Stop  string     `json:"stop,omitempty"`
	// the quickest path is not among them, as it would leave no second
	Moved bool        `json:"rearranged"`
	Meet  []meetsJSON `json:"overlaps"`
}

type proofJSON struct {
	Paths   int        `json:"paths"`
	Bound   int        `json:"bound"`
	Optimal bool       `json:"optimal"`
	By      string     `json:"by"`
	Cut     []pathEdge `json:"cutEdges"`
	Nodes   []string   `json:"cutNodes"`
}

type pairJSON struct {
	Objective string `json:"objective"`
	Delay     int64  `json:"delay"`
	Bound     int64  `json:"bound"`
	Optimal   bool   `json:"optimal"`
	By        string `json:"by"`
}

type meetsJSON struct {
	First  int        `json:"first"`
	Second int        `json:"second"`
	Edges  []pathEdge `json:"edges"`
}

func (a *app) showDisjoint(o disjointOptions, args []string) error {
	if o.paths < 0 {
		return usageErrorf("--paths %d: ask for 1 or more, or for 0 to get all", o.paths)
	}
	if err := oneOf("objective", o.objective,
		[]string{string(proof.LeastTotal), string(proof.LeastWorst)}); err != nil {
		return err
	}
	n, q, err := o.open(args)
	if err != nil {
		return err
	}
	q.Paths, q.Greedy = o.paths, o.noProof
	answer, err := n.engine.Disjoint(q)
	if err != nil {
		return err
	}
	result := disjointResult{Query: n.queryJSON(q), Stop: string(answer.Stop),
		Moved: answer.Rearranged}
	var said strings.Builder
	if !o.noProof && n.Nodes()*n.Edges() <= provable {
		result.Stop = ""
		o.prove(n, &answer, &result, &said)
	} else {
		fmt.Fprintf(&said, "%s, found one after the other (stopped: %s). No proof was asked for, "+
			"or the network is too large for one.\n",
			paths(len(answer.Paths)), answer.Stop)
	}
	v, err := n.disjointView(answer, &result)
	if err != nil {
		return err
	}
	v.prose = said.String() + overlapText(n, answer.Query.Model, result.Meet) + "\n"
	if err := a.show(v); err != nil {
		return err
	}
	title := fmt.Sprintf("%s: %s to %s, %s-disjoint", n.Name(), n.name(q.From), n.name(q.To),
		q.Disjoint)
	return a.drawPaths(o.draw, title, n, answer.Paths)
}

func paths(count int) string { return plural(uint64(count), "disjoint path") }

// prove replaces the paths of the answer by better ones, if there are, and says what is proven of
// them.
func (o disjointOptions) prove(n *network, answer *segment.Answer, result *disjointResult,
	said *strings.Builder) {
	q := answer.Query
	p := proof.New(n.view, q, proof.Effort{Seed: o.seed})
	if q.Paths == 2 {
		if pair := p.Pair(q.From, q.To, proof.Objective(o.objective)); pair.Paths != nil {
			answer.Paths = n.canonical(q.Model, pair.Paths)
			result.Pair = &pairJSON{o.objective, pair.Value, pair.Bound, pair.Optimal(),
				string(pair.By)}
			sayPair(said, n, o.objective, pair)
			return
		}
	}
	count := p.Count(q.From, q.To)
	if len(count.Paths) > len(answer.Paths) && q.Paths == 0 {
		answer.Paths = n.canonical(q.Model, count.Paths)
	}
	result.Proof = n.proofJSON(count)
	sayCount(said, count)
	if q.Paths == 0 || len(count.Paths) < q.Paths {
		sayWhy(said, n, p.Why(q.From, q.To, count), q)
	}
}

// canonical gives paths the lists that the engine has for them: node SIDs where they do. A list
// whose segments branch stays.
func (n *network) canonical(model segment.Model, paths []segment.Path) []segment.Path {
	for i, p := range paths {
		if model == segment.ECMP {
			continue
		}
		if sids, err := n.engine.Segment(p.Edges, model); err == nil && len(sids) <= len(p.SIDs) {
			paths[i].SIDs = sids
		}
	}
	return paths
}

func (n *network) proofJSON(c proof.Count) *proofJSON {
	p := &proofJSON{
		Paths: len(c.Paths), Bound: c.Bound, Optimal: c.Optimal(), By: string(c.By),
		Cut: n.edgesJSON(c.Cut.Edges), Nodes: []string{},
	}
	for _, v := range c.Cut.Nodes {
		p.Nodes = append(p.Nodes, n.name(v))
	}
	return p
}

// disjointView makes the table, and completes the result.
func (n *network) disjointView(answer segment.Answer, result *disjointResult) (view, error) {
	verdicts, err := n.verified(answer.Query.From, answer.Paths)
	if err != nil {
		return view{}, err
	}
	overlaps, err := n.engine.Overlaps(answer)
	if err != nil {
		return view{}, err
	}
	result.Items, result.Meet = []pathItem{}, []meetsJSON{}
	for _, o := range overlaps {
		result.Meet = append(result.Meet, meetsJSON{o.First, o.Second, n.edgesJSON(o.Edges)})
	}
	t := table{columns: []string{"PATH", "ROLE", "DELAY", "LINKS", "EFFECT", "SEGMENTS"},
		wide: []string{"WAY"}}
	v := view{}
	for i, p := range answer.Paths {
		role := "active"
		if i > 1 {
			role = "spare"
		}
		result.Items = append(result.Items, n.item(p, verdicts[i], role))
		t.add(i+1, role, n.delay(p.Latency), len(p.Edges),
			effect(answer.Query.Model, verdicts[i]), n.list(p.SIDs), n.way(p.Edges))
		v.names = append(v.names, n.list(p.SIDs))
	}
	v.value, v.tables = *result, tables{t}
	return v, nil
}

// overlapText warns of paths that are disjoint on paper only.
func overlapText(n *network, model segment.Model, meets []meetsJSON) string {
	if len(meets) == 0 {
		return ""
	}
	m := meets[0]
	names := lists.Map(m.Edges, func(e pathEdge) string { return n.linkName(e.ID) })
	return fmt.Sprintf("Warning: equal-cost paths carry packets of path %d and path %d over the "+
		"same links: %s. "+
		"Model %s does not force paths; take adjacency, forced or ecmp.\n", m.First+1, m.Second+1,
		enumerate(names, 4), model)
}
