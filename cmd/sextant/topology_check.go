package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sextant/te/topology"
	"sextant/te/topology/format"
	"sextant/te/topology/inspect"
)

// topologyFinding is the answer to one question about a topology.
type topologyFinding struct {
	Check string   `json:"check"`
	OK    bool     `json:"ok"`
	Count int      `json:"count"` // of what was found
	Text  string   `json:"text"`
	Where []string `json:"where,omitempty"` // the links or nodes
}

// topologyReport is what "topology check" answers.
type topologyReport struct {
	Name    string            `json:"name"`
	Checks  []topologyFinding `json:"checks"`
	Demands *demandReport     `json:"demands,omitempty"`
}

type demandReport struct {
	Count     int   `json:"count"`
	TotalKbps int64 `json:"totalKbps"`
}

func (a *app) topologyCheck() *cobra.Command {
	var source topologySource
	var demands string
	var strict bool
	cmd := &cobra.Command{
		Use: "check TOPOLOGY", Short: "Check a topology for what matters to paths",
		Long: `Check a topology. A file that can't be read fails with its line and a hint. What is found in one that can be read is
not wrong, but matters to those who compute paths: parts that don't reach each other, bridges (links that no two disjoint
paths can avoid), parallel links, links of one direction, links whose directions differ, links without delay or capacity,
and delays without a unit. The exit code is 0 all the same, and 1 with --strict.

` + topologyHelp,
		Example: "  sextant topology check zoo/Abilene\n  sextant topology check " +
			"paper-table3/AS1755 -o wide\n" +
			"  sextant topology check network.graph --demands network.demands --strict",
		Annotations: seeAlso("sextant topology show", "sextant topology draw"),
		Args:        takes("TOPOLOGY"),
		RunE: func(_ *cobra.Command, args []string) error {
			g, err := source.read(args[0], a.stdin)
			if err != nil {
				return err
			}
			report := topologyReport{Name: g.Name(), Checks: checkTopology(g)}
			if report.Demands, err = checkDemands(demands, g); err != nil {
				return err
			}
			if err := a.show(report.view()); err != nil {
				return err
			}
			return failedIf(strict && slices.ContainsFunc(report.Checks,
				func(f topologyFinding) bool { return !f.OK }))
		},
	}
	source.flags(cmd)
	cmd.Flags().StringVar(&demands, "demands", "", "a .demands file of REPETITA to check as well")
	cmd.Flags().BoolVar(&strict, "strict", false, "end with exit code 1 if anything was found")
	return cmd
}

func checkDemands(file string, g *topology.Graph) (*demandReport, error) {
	if file == "" {
		return nil, nil
	}
	text, err := readText(file)
	if err != nil {
		return nil, err
	}
	demands, err := format.ReadDemands(text, g)
	if err != nil {
		return nil, err
	}
	report := &demandReport{Count: len(demands)}
	for _, d := range demands {
		report.TotalKbps += d.Kbps
	}
	return report, nil
}

func checkTopology(g *topology.Graph) []topologyFinding {
	s := inspect.Summarize(g)
	links := func(check, none, some string, found []topology.Edge) topologyFinding {
		f := topologyFinding{Check: check, OK: len(found) == 0, Count: len(found), Text: none}
		if !f.OK {
			f.Text = fmt.Sprintf("%d of %d links %s", len(found), s.Links, some)
		}
		for _, e := range found {
			f.Where = append(f.Where, fmt.Sprintf("%s - %s", g.Node(g.From(e)).Name,
				g.Node(g.To(e)).Name))
		}
		return f
	}
	return []topologyFinding{
		checkConnection(g),
		links("bridges", "no link is the only way", "that are the only way between two parts",
			inspect.Bridges(g)),
		links("parallel", "no two links have the same ends", "with the ends of another",
			inspect.Parallel(g)),
		links("one-way", "all links have both directions", "of one direction only",
			inspect.OneWay(g)),
		links("asymmetric", "both directions of links have the same weight and delay",
			"whose directions differ in weight or delay", inspect.Asymmetric(g)),
		links("delay", "all links have a delay", "without delay in a direction",
			inspect.WithoutDelay(g)),
		checkUnit(g),
		links("capacity", "all links have a capacity", "without a known capacity",
			inspect.WithoutCapacity(g)),
	}
}

func checkConnection(g *topology.Graph) topologyFinding {
	f := topologyFinding{Check: "connected", OK: true, Text: "all nodes reach one another"}
	parts := inspect.Parts(g)
	if len(parts) <= 1 {
		return f
	}
	f.OK, f.Count = false, len(parts)
	f.Text = fmt.Sprintf("there are %d parts within which nodes reach one another, the largest "+
		"of %s", len(parts),
		plural(uint64(len(parts[0])), "node"))
	for _, part := range parts[1:] {
		for _, v := range part {
			f.Where = append(f.Where, g.Node(v).Name)
		}
	}
	return f
}

func checkUnit(g *topology.Graph) topologyFinding {
	if unit := unitText(g.DelayUnit()); unit != "" {
		return topologyFinding{Check: "unit", OK: true, Text: "delays are in " + unit}
	}
	return topologyFinding{Check: "unit", Count: 1,
		Text: "the unit of delays is not stated; name it with --delay-unit"}
}

// checkWhereMost is how many places are named in a table that is not wide.
const checkWhereMost = 3

func (r topologyReport) view() view {
	t := table{columns: []string{"CHECK", "RESULT", "WHAT", "WHERE"}, wide: []string{"ALL"}}
	v := view{value: r}
	for _, f := range r.Checks {
		result := "ok"
		if !f.OK {
			result = "note"
			v.names = append(v.names, f.Check)
		}
		where := strings.Join(f.Where[:min(len(f.Where), checkWhereMost)], ", ")
		if more := len(f.Where) - checkWhereMost; more > 0 {
			where += fmt.Sprintf(" and %d more", more)
		}
		t.add(f.Check, result, f.Text, orDash(where), orDash(strings.Join(f.Where, ", ")))
	}
	v.tables = tables{t}
	if r.Demands != nil {
		v.tables = append(v.tables, table{title: "Demands", columns: []string{"COUNT", "TOTAL"},
			rows: [][]string{{count(r.Demands.Count), capacityText(r.Demands.TotalKbps)}}})
	}
	return v
}
