package main

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/packet/lists"
	"sextant/te/topology"
	"sextant/te/topology/dataset"
	"sextant/te/topology/format"
	"sextant/te/topology/inspect"
)

func (a *app) topologyCommand() *cobra.Command {
	return noun("topology", "Networks as graphs: read, check, convert, generate, draw",
		seeAlso("sextant lab"),
		a.computing(a.topologyList(), a.topologyShow(), a.topologyCheck(), a.topologyConvert(),
			a.topologyGenerate(),
			a.topologyDraw())...)
}

// setItem is a data set in a list.
type setItem struct {
	Name       string `json:"name"`
	Topologies int    `json:"topologies"`
	DelayUnit  string `json:"delayUnit,omitempty"`
	About      string `json:"about"`
	Source     string `json:"source"`
	Licence    string `json:"licence"`
}

// topologyItem is a topology of a data set in a list.
type topologyItem struct {
	Name      string `json:"name"`
	DelayUnit string `json:"delayUnit,omitempty"`
	inspect.Summary
}

func (a *app) topologyList() *cobra.Command {
	return &cobra.Command{
		Use: "list [SET]", Short: "List the data sets in the program, or the topologies of one",
		Long: `List the published topologies that are part of the program: without a name the sets, with one the topologies of
that set. Their names stand wherever a TOPOLOGY is asked for. Delays of different sets can't be compared.`,
		Example: "  sextant topology list\n  sextant topology list paper-table3\n  sextant " +
			"topology list -o wide",
		Annotations: seeAlso("sextant topology show"),
		Args:        takes("[SET]"),
		ValidArgsFunction: func(*cobra.Command, []string,
			string) ([]string, cobra.ShellCompDirective) {
			names := lists.Map(dataset.Sets(), func(s dataset.Set) string {
				return s.Name + "\t" + s.About
			})
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.show(setsView())
			}
			return a.showUnless(topologiesView(strings.TrimSuffix(args[0], "/")))
		},
	}
}

func setsView() view {
	items := lists.Map(dataset.Sets(), func(s dataset.Set) setItem {
		return setItem{s.Name, len(namesOf(s.Name)), unitText(s.DelayUnit), s.About, s.Source,
			s.Licence}
	})
	t := table{columns: []string{"SET", "TOPOLOGIES", "DELAY", "ABOUT"},
		wide: []string{"SOURCE", "LICENCE"}}
	return listView(items, t, func(s setItem) (string, []any) {
		return s.Name, []any{s.Name, s.Topologies, orDash(s.DelayUnit), s.About, s.Source,
			s.Licence}
	})
}

func namesOf(set string) []string {
	var names []string
	for _, name := range dataset.Names() {
		if path.Dir(name) == set {
			names = append(names, name)
		}
	}
	return names
}

func topologiesView(set string) (view, error) {
	list := api.List[topologyItem]{Items: []topologyItem{}}
	t := table{columns: []string{"TOPOLOGY", "NODES", "LINKS", "EDGES", "DELAY"}}
	v := view{names: namesOf(set)}
	if len(v.names) == 0 {
		return v, notFoundf("there is no data set %q; list them with: sextant topology list",
			set)
	}
	for _, name := range v.names {
		g, err := dataset.Open(name)
		if err != nil {
			return v, err
		}
		s := inspect.Summarize(g)
		list.Items = append(list.Items, topologyItem{name, unitText(g.DelayUnit()), s})
		t.add(name, s.Nodes, s.Links, s.Edges, orDash(unitText(g.DelayUnit())))
	}
	v.value, v.tables = list, tables{t}
	return v, nil
}

// unitText is empty for an unknown unit.
func unitText(unit time.Duration) string {
	if unit == 0 {
		return ""
	}
	return format.DelayUnitName(unit)
}

// topologyDetail is a topology as "topology show" answers.
type topologyDetail struct {
	topologyItem
	Nodes []nodeDetail `json:"nodeList,omitempty"`
	Edges []edgeDetail `json:"edgeList,omitempty"`
}

type nodeDetail struct {
	Name      string   `json:"name"`
	Degree    int      `json:"degree"`
	Longitude *float64 `json:"longitude,omitempty"`
	Latitude  *float64 `json:"latitude,omitempty"`
	SID       string   `json:"sid,omitempty"`
}

type edgeDetail struct {
	ID           int      `json:"id"`
	Name         string   `json:"name,omitempty"`
	From         string   `json:"from"`
	To           string   `json:"to"`
	Weight       uint32   `json:"weight"`
	Delay        int64    `json:"delay"`
	CapacityKbps int64    `json:"capacityKbps,omitempty"`
	SRLGs        []uint32 `json:"srlgs,omitempty"`
	SID          string   `json:"sid,omitempty"`
}

func (a *app) topologyShow() *cobra.Command {
	var source topologySource
	var nodes, edges bool
	cmd := &cobra.Command{
		Use: "show TOPOLOGY", Short: "Show what a topology consists of",
		Long: "Show a topology in numbers, with --nodes and --edges in full.\n\n" + topologyHelp,
		Example: "  sextant topology show paper-table3/AS3967\n  sextant topology show " +
			"zoo/Abilene --nodes --edges\n" +
			"  sextant topology show examples/quickstart.yaml -o json",
		Annotations: seeAlso("sextant topology check", "sextant topology draw"),
		Args:        takes("TOPOLOGY"),
		RunE: func(_ *cobra.Command, args []string) error {
			g, err := source.read(args[0], a.stdin)
			if err != nil {
				return err
			}
			return a.show(topologyView(g, nodes, edges))
		},
	}
	source.flags(cmd)
	cmd.Flags().BoolVar(&nodes, "nodes", false, "list the nodes, too")
	cmd.Flags().BoolVar(&edges, "edges", false,
		"list the edges, too: each direction of a link by itself")
	return cmd
}

func topologyView(g *topology.Graph, nodes, edges bool) view {
	detail := topologyDetail{topologyItem: topologyItem{g.Name(), unitText(g.DelayUnit()),
		inspect.Summarize(g)}}
	v := view{tables: tables{summaryTable(detail.topologyItem)}}
	for n := range topology.Node(g.Nodes()) {
		v.names = append(v.names, g.Node(n).Name)
	}
	if nodes {
		t := table{title: "Nodes", columns: []string{"NODE", "DEGREE", "PLACE", "SID"}}
		for n := range topology.Node(g.Nodes()) {
			d := nodeDetailOf(g, n)
			detail.Nodes = append(detail.Nodes, d)
			t.add(d.Name, d.Degree, placeText(g.Node(n)), orDash(d.SID))
		}
		v.tables = append(v.tables, t)
	}
	if edges {
		t := table{
			title: "Edges", columns: []string{"EDGE", "FROM", "TO", "WEIGHT", "DELAY", "CAPACITY"},
			wide: []string{"NAME", "SRLGS", "SID"},
		}
		for e := range topology.Edge(g.Edges()) {
			d := edgeDetailOf(g, e)
			detail.Edges = append(detail.Edges, d)
			t.add(d.ID, d.From, d.To, d.Weight, delayText(d.Delay, g.DelayUnit()),
				capacityText(d.CapacityKbps), orDash(d.Name),
				orDash(strings.Trim(fmt.Sprint(d.SRLGs), "[]")), orDash(d.SID))
		}
		v.tables = append(v.tables, t)
	}
	v.value = detail
	return v
}

func summaryTable(i topologyItem) table {
	unit := cmp.Or(i.DelayUnit, "unit not stated")
	return table{columns: []string{"TOPOLOGY", i.Name}, rows: [][]string{
		{"nodes", count(i.Nodes)},
		{"links", fmt.Sprintf("%d (%d edges)", i.Links, i.Edges)},
		{"degree", rangeText(i.Degree, numberText)},
		{"weight", rangeText(i.Weight, numberText)},
		{"delay", rangeText(i.Delay, numberText) + " (" + unit + ")"},
		{"capacity", rangeText(i.CapacityKbps, knownCapacity)},
		{"coordinates", fmt.Sprintf("of %s", plural(uint64(i.Places), "node"))},
	}}
}

func numberText(n int64) string { return strconv.FormatInt(n, 10) }

func rangeText(r inspect.Range, text func(int64) string) string {
	if r.Min == r.Max {
		return text(r.Min)
	}
	return text(r.Min) + " to " + text(r.Max)
}

func nodeDetailOf(g *topology.Graph, v topology.Node) nodeDetail {
	n := g.Node(v)
	d := nodeDetail{Name: n.Name, Degree: len(g.Out(v))}
	if n.Known {
		d.Longitude, d.Latitude = &n.Place.Longitude, &n.Place.Latitude
	}
	if n.SID.IsValid() {
		d.SID = n.SID.String()
	}
	return d
}

func edgeDetailOf(g *topology.Graph, id topology.Edge) edgeDetail {
	e := g.Edge(id)
	d := edgeDetail{
		ID: int(id), Name: e.Name, From: g.Node(e.From).Name, To: g.Node(e.To).Name,
		Weight: e.Weight, Delay: e.Delay, CapacityKbps: e.CapacityKbps, SRLGs: e.SRLGs,
	}
	if e.SID.IsValid() {
		d.SID = e.SID.String()
	}
	return d
}

func placeText(n topology.NodeSpec) string {
	if !n.Known {
		return "-"
	}
	return fmt.Sprintf("%g %g", n.Place.Longitude, n.Place.Latitude)
}

// delayText writes a delay with its unit, if that is known.
func delayText(delay int64, unit time.Duration) string {
	return strings.TrimSpace(numberText(delay) + " " + unitText(unit))
}

func knownCapacity(kbps int64) string {
	if kbps == 0 {
		return "unknown"
	}
	return capacityText(kbps)
}

// capacityText writes kbit/s with the largest prefix that leaves a whole part; "-" if it is not
// known.
func capacityText(kbps int64) string {
	if kbps == 0 {
		return "-"
	}
	value, prefixes := float64(kbps), []string{"kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"}
	for len(prefixes) > 1 && value >= 1000 {
		value, prefixes = value/1000, prefixes[1:]
	}
	return strconv.FormatFloat(value, 'g', 6, 64) + " " + prefixes[0]
}
