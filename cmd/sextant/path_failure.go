package main

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"sextant/packet/lists"
	"sextant/te/segment"
	"sextant/te/topology"
)

// pathFailure is "sextant path failure".
func (a *app) pathFailure() *cobra.Command {
	var f pathFlags
	var links, nodes []string
	cmd := &cobra.Command{
		Use:   "failure TOPOLOGY FROM",
		Short: "Show what failures of links and nodes do to protected paths",
		Long: `Show what failures of links and nodes do to protected paths.

From one node to all others, disjoint paths are computed; the first two carry the traffic, the rest are spares. Then each failure is
applied, one after the other, and undone. AFFECTED policies have a path whose packets would take another way or none; of these,
SPARE have a path left to switch to at once, FOUND get one by computing anew, LOST have none any more.`,
		Example: "  sextant path failure zoo/Abilene Seattle\n" +
			"  sextant path failure paper-table3/AS1755 London,+UnitedKingdom208 --link 0 -o json",
		Annotations:       seeAlso("sextant path disjoint", "sextant path explain"),
		Args:              takes("TOPOLOGY", "FROM"),
		ValidArgsFunction: completeEnds,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.showFailures(f, links, nodes, args)
		},
	}
	f.add(cmd)
	cmd.Flags().StringArrayVar(&links, "link", nil,
		"fail this link: FROM>TO, or the number of an edge; none given: each in turn")
	cmd.Flags().StringArrayVar(&nodes, "node", nil, "fail this node")
	return cmd
}

// failure is what a failure does to the policies.
type failure struct {
	Failed   string `json:"failed"`
	Affected int    `json:"affected"`
	Spare    int    `json:"spare"`
	Found    int    `json:"found"`
	Lost     int    `json:"lost"`
}

func (a *app) showFailures(f pathFlags, links, nodes []string, args []string) error {
	n, err := f.openNetwork(args[0])
	if err != nil {
		return err
	}
	p, err := f.protect(n, args[1])
	if err != nil {
		return err
	}
	failures, err := p.each(links, nodes)
	if err != nil {
		return err
	}
	slices.SortStableFunc(failures, func(a, b failure) int {
		return cmp.Or(cmp.Compare(b.Lost, a.Lost), cmp.Compare(b.Found, a.Found),
			cmp.Compare(b.Affected, a.Affected))
	})
	t := table{columns: []string{"FAILED", "AFFECTED", "SPARE", "FOUND", "LOST"}}
	v := listView(failures, t, func(f failure) (string, []any) {
		return f.Failed, []any{f.Failed, f.Affected, f.Spare, f.Found, f.Lost}
	})
	v.prose = fmt.Sprintf("%s from %s\n", policies(len(p.answers)), args[1])
	v.value = struct {
		Policies int       `json:"policies"`
		Items    []failure `json:"items"`
	}{len(p.answers), failures}
	return a.show(v)
}

func policies(n int) string {
	if n == 1 {
		return "1 policy"
	}
	return fmt.Sprintf("%d policies", n)
}

// shielded is the policies from one node, and how they are watched.
type shielded struct {
	*network
	answers []segment.Answer
	watch   segment.Watch
}

// protect computes the policies.
func (f pathFlags) protect(n *network, from string) (*shielded, error) {
	var queries []segment.Query
	for v := range topology.Node(n.Nodes()) {
		name := n.name(v)
		if start, err := n.node(from); err != nil {
			return nil, err
		} else if start == v {
			continue
		}
		q, err := f.query(n, from, name)
		if err != nil {
			return nil, err
		}
		queries = append(queries, q)
	}
	answers, err := n.engine.Batch(queries, runtime.GOMAXPROCS(0))
	if err != nil {
		return nil, err
	}
	p := &shielded{network: n, answers: answers}
	for i, answer := range answers {
		if err := p.watch.Add(i, n.engine, active(answer)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// active is the answer with the paths that carry traffic.
func active(a segment.Answer) segment.Answer {
	a.Paths = a.Paths[:min(2, len(a.Paths))]
	return a
}

// each applies the failures named, or that of each link in turn.
func (p *shielded) each(links, nodes []string) ([]failure, error) {
	var failures []failure
	add := func(name string, changes []segment.Change) error {
		f, err := p.fail(name, changes)
		failures = append(failures, f)
		return err
	}
	for _, text := range links {
		edges, err := p.edges(text)
		if err != nil {
			return nil, fmt.Errorf("--link: %w", err)
		}
		for _, e := range edges {
			if err := add(p.linkName(e), p.engine.LinkDown(e)); err != nil {
				return nil, err
			}
		}
	}
	for _, text := range nodes {
		v, err := p.node(text)
		if err != nil {
			return nil, fmt.Errorf("--node: %w", err)
		}
		if err := add(p.name(v), p.engine.NodeDown(v)); err != nil {
			return nil, err
		}
	}
	if len(links)+len(nodes) > 0 {
		return failures, nil
	}
	for e := range p.Links() {
		if !p.view.Up(e) {
			continue
		}
		if err := add(p.linkName(e), p.engine.LinkDown(e)); err != nil {
			return nil, err
		}
	}
	return failures, nil
}

// fail applies a failure, looks at the policies that it affects, and undoes it.
func (p *shielded) fail(name string, changes []segment.Change) (failure, error) {
	update, err := p.engine.Apply(changes...)
	if err != nil {
		return failure{}, err
	}
	f := failure{Failed: name}
	failed := lists.Map(changes, func(c segment.Change) topology.Edge { return c.Edge })
	for _, i := range p.watch.Affected(update) {
		f.Affected++
		if _, ok := p.answers[i].Avoiding(failed...); ok {
			f.Spare++
			continue
		}
		again, err := p.engine.Disjoint(p.answers[i].Query)
		if err != nil {
			return f, err
		}
		if len(again.Paths) > 0 {
			f.Found++
		} else {
			f.Lost++
		}
	}
	_, err = p.engine.Apply(p.engine.Restored(changes)...)
	return f, err
}
