package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/controller"
)

func (a *app) pathFlows() *cobra.Command {
	var protocol string
	cmd := &cobra.Command{
		Use:   "flows [SOURCE] [DESTINATION]",
		Short: "Show the flows that the controller has evaluated",
		Long: `Show the flows that the controller has evaluated, with the paths that it gave them, or one of them.
A flow without a path goes where routing sends it. Flows are forgotten some time after the last report.`,
		Example:     "  sextant path flows -o wide",
		Annotations: seeAlso("sextant controller", "sextant path reroutes", "sextant path pin"),
		Args:        takes("[SOURCE]", "[DESTINATION]"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			if len(args) == 0 {
				flows, err := a.controller(cmd).Flows(ctx)
				if err != nil {
					return err
				}
				return a.show(flowsView(flows))
			}
			if len(args) == 1 {
				return usageErrorf("missing DESTINATION")
			}
			f, err := parseFlow(args, protocol)
			if err != nil {
				return err
			}
			known, err := a.controller(cmd).Flow(ctx, f)
			if err != nil {
				return err
			}
			return a.show(flowsView([]controller.Flow{known}))
		},
	}
	flowProtocolFlag(cmd, &protocol)
	return cmd
}

// flowsResult is a list as JSON.
type flowsResult[T any] struct {
	Items []T `json:"items"`
}

func flowEnds(f api.Flow) string {
	return fmt.Sprintf("%s %s %s", f.Source, f.Destination, f.Protocol)
}

func flowsView(flows []controller.Flow) view {
	t := table{columns: []string{"SOURCE", "DESTINATION", "PROTOCOL", "MOVES", "PATH"},
		wide: []string{"FROM", "TO", "CLASS", "PINNED", "SEEN", "STATE", "SEGMENTS"}}
	v := view{value: flowsResult[controller.Flow]{flows}}
	for _, f := range flows {
		t.rows = append(t.rows, []string{f.Flow.Source.String(), f.Flow.Destination.String(),
			string(f.Flow.Protocol), count(f.Moves), orDash(strings.Join(f.Path, " ")), f.From,
			f.To, strconv.Itoa(f.Class), strconv.FormatBool(f.Pinned),
			f.SeenAt.Format(time.TimeOnly), orDash(f.State),
			orDash(strings.Trim(fmt.Sprint(f.Segments), "[]"))})
		v.names = append(v.names, flowEnds(f.Flow))
	}
	v.tables = tables{t}
	return v
}

func (a *app) pathLinks() *cobra.Command {
	return &cobra.Command{
		Use: "links", Short: "Show the weights that the controller gives to links",
		Long: `Show the links of the controller's topology, one direction each: the occupied part of the queue before it,
smoothed; its weight, which is that over the link's part of the greatest bandwidth; the standard
deviation of what was seen; and how long ago the last report was.`,
		Example:     "  sextant path links",
		Annotations: seeAlso("sextant controller", "sextant controller simulate"),
		Args:        takes(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			links, err := a.controller(cmd).Links(ctx)
			if err != nil {
				return err
			}
			return a.show(linkWeightsView(links))
		},
	}
}

func linkWeightsView(links []controller.Link) view {
	t := table{columns: []string{"FROM", "TO", "WEIGHT", "NOISE", "QUEUE", "AGE"},
		wide: []string{"NUMBER", "QUEUE SIZE"}}
	v := view{value: flowsResult[controller.Link]{links}}
	for _, l := range links {
		age := "-"
		if l.AgeMs != nil {
			age = strconv.FormatFloat(*l.AgeMs, 'f', 0, 64) + " ms"
		}
		t.rows = append(t.rows, []string{l.From, l.To, weightText(l.Weight),
			strconv.FormatFloat(l.Noise, 'f', 4, 64), fmt.Sprintf("%.1f %%", 100*l.Occupancy), age,
			count(l.Number), strconv.FormatInt(l.QueueSize, 10)})
		v.names = append(v.names, l.From+">"+l.To)
	}
	v.tables = tables{t}
	return v
}

func (a *app) pathReroutes() *cobra.Command {
	var limit int
	var moved bool
	cmd := &cobra.Command{
		Use: "reroutes", Short: "Show the controller's last decisions and their reasons",
		Long: `Show the controller's last decisions, the latest last: which paths were weighed, what became of the flow, and
why. Flows that were left alone since they were looked at a short time ago are counted in
"sextant controller status" only.`,
		Example:     "  sextant path reroutes --moved --limit 20",
		Annotations: seeAlso("sextant controller status"),
		Args:        takes(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			decisions, err := a.controller(cmd).Reroutes(ctx, limit, moved)
			if err != nil {
				return err
			}
			return a.show(decisionsView(decisions))
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "how many decisions")
	cmd.Flags().BoolVar(&moved, "moved", false, "only those that moved a flow")
	return cmd
}

func decisionsView(decisions []controller.Decision) view {
	t := table{columns: []string{"FLOW", "VERDICT", "CURRENT", "BEST", "PATH"},
		wide: []string{"NUMBER", "AT", "CLASS", "REASON"}}
	v := view{value: flowsResult[controller.Decision]{decisions}}
	for _, d := range decisions {
		current := "-"
		if d.Current != nil {
			current = weightText(d.Current.Weight)
		}
		t.rows = append(t.rows, []string{flowEnds(d.Flow), d.Verdict, current, bestWeight(d),
			orDash(strings.Join(d.Path, " ")), count(d.Number),
			d.At.Format(time.TimeOnly), strconv.Itoa(d.Class), d.Reason})
		v.names = append(v.names, flowEnds(d.Flow)+" "+d.Verdict)
	}
	v.tables = tables{t}
	return v
}

// bestWeight is the least weight of what was weighed.
func bestWeight(d controller.Decision) string {
	var best *float64
	for _, c := range d.Candidates {
		if c.Weight != nil && (best == nil || *c.Weight < *best) {
			best = c.Weight
		}
	}
	if len(d.Candidates) == 0 {
		return "-"
	}
	return weightText(best)
}

func (a *app) pathPin() *cobra.Command {
	var protocol string
	cmd := &cobra.Command{
		Use:   "pin SOURCE DESTINATION ROUTER,ROUTER...",
		Short: "Pin a flow to a path: the controller does not move it",
		Long: `Give a flow a path through the routers that are named in order, from where it enters the network to where it
leaves. The controller moves it no more until it is unpinned.`,
		Example: "  sextant path pin [2001:db8:1::1]:40000 [2001:db8:2::1]:443 " +
			"leaf1,spine2,leaf2",
		Annotations:       seeAlso("sextant path unpin", "sextant path flows"),
		Args:              takes("SOURCE", "DESTINATION", "ROUTER,ROUTER..."),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := parseFlow(args, protocol)
			if err != nil {
				return err
			}
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			pin := controller.Pin{Flow: f, Path: routersOf(args[2])}
			if err := a.controller(cmd).Pin(ctx, pin); err != nil {
				return err
			}
			return a.flowChanged("pinned", f)
		},
	}
	flowProtocolFlag(cmd, &protocol)
	return cmd
}

func (a *app) pathUnpin() *cobra.Command {
	var protocol string
	cmd := &cobra.Command{
		Use: "unpin SOURCE DESTINATION", Short: "Unpin a flow: the controller may move it again",
		Long: "Allow the controller to move a pinned flow again. It keeps its path until a " +
			"report asks for another.",
		Example:     "  sextant path unpin [2001:db8:1::1]:40000 [2001:db8:2::1]:443",
		Annotations: seeAlso("sextant path pin"),
		Args:        takes("SOURCE", "DESTINATION"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := parseFlow(args, protocol)
			if err != nil {
				return err
			}
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			if err := a.controller(cmd).Unpin(ctx, f); err != nil {
				return err
			}
			return a.flowChanged("unpinned", f)
		},
	}
	flowProtocolFlag(cmd, &protocol)
	return cmd
}
