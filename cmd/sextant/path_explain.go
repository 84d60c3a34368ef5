package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sextant/te/segment"
	"sextant/te/segment/proof"
)

func (a *app) pathExplain() *cobra.Command {
	var f pathFlags
	cmd := &cobra.Command{
		Use: "explain TOPOLOGY FROM TO",
		Short: "Explain how many disjoint paths each model has, and " +
			"which cut limits them",
		Long: `Compare the models for one pair of nodes: how many disjoint paths each has, what is proven of that number, whether the
lists force packets onto them, and what limits the number: a link without which nothing arrives, links that no SID selects, or
the length of lists.`,
		Example: "  sextant path explain zoo/Abilene Seattle New_York\n" +
			"  sextant path explain paper-table3/AS3967 'San+Jose,+CA471' 'Santa+Clara,+CA444' " +
			"--sids 3 -o json",
		Annotations:       seeAlso("sextant path disjoint", "sextant path diversity"),
		Args:              takes("TOPOLOGY", "FROM", "TO"),
		ValidArgsFunction: completeEnds,
		RunE: func(_ *cobra.Command, args []string) error {
			n, q, err := f.open(args)
			if err != nil {
				return err
			}
			return a.showUnless(n.explain(q))
		},
	}
	disjointFlags(cmd, &f.disjoint, &f.sids)
	f.addDown(cmd)
	f.model = string(segment.ForcedAdjacency)
	return cmd
}

type explainResult struct {
	Query pathQuery     `json:"query"`
	Items []explainItem `json:"items"`
}

type explainItem struct {
	Model      string     `json:"model"`
	Proof      *proofJSON `json:"proof"`
	Forced     int        `json:"forced"`
	Overlaps   int        `json:"overlaps"`
	Limit      string     `json:"limit"`
	CutEdges   []pathEdge `json:"limitingEdges"`
	Bridges    []pathEdge `json:"bridges"`
	Unselected []pathEdge `json:"unselectedEdges"`
	NeedsSIDs  int        `json:"needsSids,omitempty"`
	Why        string     `json:"why"`
}

// explain tries all models.
func (n *network) explain(q segment.Query) (view, error) {
	result := explainResult{Query: n.queryJSON(q)}
	result.Query.Model = ""
	t := table{columns: []string{"MODEL", "PATHS", "AT MOST", "PROOF", "FORCED", "OVERLAPS",
		"LIMIT"}}
	var prose strings.Builder
	v := view{}
	for _, model := range segment.Models() {
		q.Model = model
		item, err := n.explainModel(q)
		if err != nil {
			return view{}, err
		}
		result.Items = append(result.Items, item)
		t.add(item.Model, item.Proof.Paths, item.Proof.Bound, item.Proof.By,
			fmt.Sprintf("%d of %d", item.Forced, item.Proof.Paths), item.Overlaps, item.Limit)
		fmt.Fprintf(&prose, "%s: %s\n", model, item.Why)
		v.names = append(v.names, string(model))
	}
	prose.WriteString("\n")
	v.value, v.tables, v.prose = result, tables{t}, prose.String()
	return v, nil
}

func (n *network) explainModel(q segment.Query) (explainItem, error) {
	p := proof.New(n.view, q, proof.Effort{})
	c := p.Count(q.From, q.To)
	why := p.Why(q.From, q.To, c)
	var text strings.Builder
	sayWhy(&text, n, why, q)
	item := explainItem{
		Model: string(q.Model), Proof: n.proofJSON(c), Limit: string(why.Limit),
		CutEdges: n.edgesJSON(why.Cut.Edges),
		Bridges:  n.edgesJSON(why.Bridges), Unselected: n.edgesJSON(why.Unselected),
		NeedsSIDs: why.Needs,
		Why:       strings.TrimSpace(text.String()),
	}
	verdicts, err := n.verified(q.From, c.Paths)
	if err != nil {
		return item, err
	}
	for _, verdict := range verdicts {
		if verdict.Forced && len(verdict.Left) == 0 {
			item.Forced++
		}
	}
	overlaps, err := n.engine.Overlaps(segment.Answer{Query: q, Paths: c.Paths})
	item.Overlaps = len(overlaps)
	return item, err
}

// sayCount says what is proven of a number of paths.
func sayCount(w *strings.Builder, c proof.Count) {
	if !c.Optimal() {
		fmt.Fprintf(w, "%s; at most %d, by %s.\n", paths(len(c.Paths)), c.Bound, methods[c.By])
		return
	}
	fmt.Fprintf(w, "%s, which is optimal: proven by %s.\n", paths(len(c.Paths)), methods[c.By])
}

// methods say for people how a number was proven.
var methods = map[proof.Method]string{
	proof.ByCut:    "a cut of that size",
	proof.ByRisk:   "a shared-risk group that all paths have in common",
	proof.ByPrices: "prices on links that no larger set of segment lists can pay",
	proof.BySearch: "trying all cases",
}

// sayPair says what is proven of a pair.
func sayPair(w *strings.Builder, n *network, objective string, p proof.Pair) {
	if !p.Optimal() {
		fmt.Fprintf(w, "Two disjoint paths of %s delay %s; none has less than %s.\n", objective,
			n.delay(p.Value), n.delay(p.Bound))
		return
	}
	fmt.Fprintf(w, "Two disjoint paths of %s delay %s, which is optimal: proven by %s.\n",
		objective, n.delay(p.Value), pairMethods[p.By])
}

var pairMethods = map[proof.PairMethod]string{
	proof.BySuurballe:  "Suurballe's pair, the best without segments",
	proof.ByLagrange:   "Lagrange multipliers on links",
	proof.ByPairSearch: "trying all cases",
	proof.ByQuickest:   "the quickest single path",
}

// sayWhy says why there are not more paths.
func sayWhy(w *strings.Builder, n *network, why proof.Why, q segment.Query) {
	cut := enumerate(n.linkNames(why.Cut.Edges), 6)
	for _, v := range why.Cut.Nodes {
		cut = strings.TrimPrefix(cut+", node "+n.name(v), ", ")
	}
	switch {
	case why.Limit == proof.Disconnected:
		fmt.Fprintf(w, "Nothing leads from %s to %s.\n", n.name(q.From), n.name(q.To))
	case why.Limit == proof.Links && len(why.Bridges) > 0:
		fmt.Fprintf(w, "A second path is impossible: all paths cross %s.\n",
			enumerate(n.linkNames(why.Bridges), 6))
	case why.Limit == proof.Links:
		fmt.Fprintf(w, "The network has no more: all paths cross %s.\n", cut)
	case why.Limit == proof.Risk:
		fmt.Fprintf(w, "All paths depend on one shared-risk group.\n")
	case why.Limit == proof.Selection:
		fmt.Fprintf(w, "One more needs %s, which no SID of model %s selects; model adjacency "+
			"can.\n",
			enumerate(n.linkNames(why.Unselected), 6), q.Model)
	case why.Limit == proof.Length:
		fmt.Fprintf(w, "Lists are too short: with %d SIDs (--sids %d) there is one more.\n",
			why.Needs, why.Needs)
	case why.Limit == proof.Combination:
		fmt.Fprintf(w, "Segment lists of this model can't be combined to more, even with %d "+
			"SIDs; the network without segments has %d.\n",
			why.Needs, why.Cut.Size())
	default:
		fmt.Fprintf(w, "Whether there are more is not known: the search was stopped.\n")
	}
}
