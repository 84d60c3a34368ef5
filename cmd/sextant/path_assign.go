package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"sextant/te/edgecoloring"
)

const assignLong = `Give the flows between the hosts of a fat tree paths on which no link
carries more of them than it has to.

Hosts are numbered through edge switches and pods, from 0. A line of the file is a flow: its
source and its destination. If no host sends or receives more than one flow, no link carries
two, whatever the flows are (Koenig's theorem): each gets the full rate of its host. AGGREGATION
and CORE number the switch in each pod, and the core switch of that switch's group; with
controllable load balancing they are the choices of the edge and of the aggregation switch on
the way up.`

func (a *app) pathAssign() *cobra.Command {
	var k int
	var seed uint64
	var then string
	cmd := &cobra.Command{
		Use: "assign [FILE]", Short: "Assign paths in a fat tree to flows, without two on a link " +
			"where that can be",
		Long: assignLong,
		Example: "  sextant path assign --fat-tree 4 --seed 1\n" +
			"  printf '0 15\\n1 14\\n' | sextant path assign - --fat-tree 4 -o json",
		Annotations: seeAlso("sextant path encode", "sextant topology generate fat-tree"),
		Args:        takes("[FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			tree, err := edgecoloring.NewFatTree(k)
			if err != nil {
				return usageErrorf("--fat-tree: %w", err)
			}
			var ends []edgecoloring.Ends
			if len(args) == 0 {
				for src, dst := range rand.New(rand.NewPCG(seed, 0)).Perm(tree.Hosts()) {
					ends = append(ends, edgecoloring.Ends{Src: src, Dst: dst})
				}
			} else if ends, err = a.flowsOf(args[0]); err != nil {
				return err
			}
			if then == "" {
				return a.assignPaths(tree, ends, nil)
			}
			next, err := a.flowsOf(then)
			if err != nil {
				return err
			}
			return a.assignPaths(tree, ends, next)
		},
	}
	cmd.Flags().IntVar(&k, "fat-tree", 8, "the ports of each switch, an even number")
	cmd.Flags().Uint64Var(&seed, "seed",
		1, "without a file, each host sends to another by chance: the seed of the choice")
	cmd.Flags().StringVar(&then, "then", "",
		"a file of the flows that there are later: show their paths, and how many had to move")
	return cmd
}

// flowsOf reads flows from a file, or from standard input.
func (a *app) flowsOf(name string) ([]edgecoloring.Ends, error) {
	if name == "-" {
		return readFlows(a.stdin, "standard input")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read flows: %w", err)
	}
	defer file.Close()
	return readFlows(file, name)
}

// readFlows reads a flow a line: the numbers of two hosts.
func readFlows(in io.Reader, name string) ([]edgecoloring.Ends, error) {
	var ends []edgecoloring.Ends
	lines := bufio.NewScanner(in)
	for line := 1; lines.Scan(); line++ {
		var e edgecoloring.Ends
		var rest string
		switch n, _ := fmt.Sscan(lines.Text(), &e.Src, &e.Dst, &rest); n {
		case 0:
			if lines.Text() != "" {
				return nil, fmt.Errorf("%s:%d: %q is no flow; write the numbers of two hosts", name,
					line, lines.Text())
			}
		case 2:
			ends = append(ends, e)
		default:
			return nil, fmt.Errorf("%s:%d: %q is no flow; write the numbers of two hosts", name,
				line, lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read flows of %s: %w", name, err)
	}
	return ends, nil
}

type assignedItem struct {
	Source      int `json:"source"`
	Destination int `json:"destination"`
	Aggregation int `json:"aggregation"` // -1: none
	Core        int `json:"core"`        // -1: none
}

type assignedResult struct {
	GreatestLoad int            `json:"greatestLoad"` // flows on a link between switches
	Moved        int            `json:"moved"`        // flows that stayed, and changed their paths
	Items        []assignedItem `json:"items"`
}

// assignPaths assigns paths to the first flows, then lets those leave that are not among the next,
// and the others of these arrive one by one. Without next ones, the first remain.
func (a *app) assignPaths(tree *edgecoloring.FatTree, ends, next []edgecoloring.Ends) error {
	flows, err := tree.Add(ends...)
	if err != nil {
		return usageErrorf("%w", err)
	}
	moved := map[edgecoloring.Flow]bool{}
	if next != nil {
		if flows, err = replaceFlows(tree, ends, flows, next, moved); err != nil {
			return usageErrorf("--then: %w", err)
		}
		ends = next
	}
	result := assignedResult{GreatestLoad: tree.GreatestLoad(), Moved: len(moved)}
	t := table{columns: []string{"SOURCE", "DESTINATION", "AGGREGATION", "CORE"}}
	var names []string
	for i, f := range flows {
		path := tree.Path(f)
		item := assignedItem{ends[i].Src, ends[i].Dst, path.Aggregation, path.Core}
		result.Items = append(result.Items, item)
		t.add(item.Source, item.Destination, textIf(path.Aggregation >= 0, count(path.Aggregation)),
			textIf(path.Core >= 0, count(path.Core)))
		names = append(names, fmt.Sprintf("%d %d %d %d", item.Source, item.Destination,
			path.Aggregation, path.Core))
	}
	prose := fmt.Sprintf("%s, at most %d on a link between switches",
		plural(uint64(len(flows)), "flow"), result.GreatestLoad)
	if next != nil {
		prose += fmt.Sprintf("; %d that stayed changed their paths", result.Moved)
	}
	prose += "\n"
	return a.show(view{value: result, prose: prose, tables: tables{t}, names: names})
}

// replaceFlows makes the flows of a tree the next ones, and notes which of those that stay move.
func replaceFlows(tree *edgecoloring.FatTree, ends []edgecoloring.Ends, flows []edgecoloring.Flow,
	next []edgecoloring.Ends, moved map[edgecoloring.Flow]bool) ([]edgecoloring.Flow, error) {
	stay := map[edgecoloring.Ends][]edgecoloring.Flow{}
	for i, e := range ends {
		stay[e] = append(stay[e], flows[i])
	}
	now := make([]edgecoloring.Flow, len(next))
	var arriving []int
	for i, e := range next {
		if same := stay[e]; len(same) > 0 {
			now[i], stay[e] = same[0], same[1:]
			continue
		}
		arriving = append(arriving, i)
	}
	for i, e := range ends {
		if slices.Contains(stay[e], flows[i]) {
			tree.Remove(flows[i])
		}
	}
	young := map[edgecoloring.Flow]bool{}
	for _, i := range arriving {
		added, err := tree.Add(next[i])
		if err != nil {
			return nil, err
		}
		now[i] = added[0]
		young[now[i]] = true
		for _, f := range tree.Moved() {
			moved[f] = !young[f]
		}
	}
	maps.DeleteFunc(moved, func(_ edgecoloring.Flow, stayed bool) bool { return !stayed })
	return now, nil
}
