package main

import (
	"context"
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
		Args:        takes("[SOURCE]", "[DESTINATION]"),
		RunE: a.timed(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return answered(a, flowsView)(a.controller(cmd).Flows(ctx))
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
		}),
	}
	flowProtocolFlag(cmd, &protocol)
	return cmd
}

func flowEnds(f api.Flow) string {
	return fmt.Sprintf("%s %s %s", f.Source, f.Destination, f.Protocol)
}

func flowsView(flows []controller.Flow) view {
	t := table{columns: []string{"SOURCE", "DESTINATION", "PROTOCOL", "MOVES", "PATH"},
		wide: []string{"FROM", "TO", "CLASS", "PINNED", "SEEN", "STATE", "SEGMENTS"}}
	return listView(flows, t, func(f controller.Flow) (string, []any) {
		return flowEnds(f.Flow), []any{f.Flow.Source, f.Flow.Destination, f.Flow.Protocol, f.Moves,
			orDash(strings.Join(f.Path, " ")), f.From, f.To, f.Class, strconv.FormatBool(f.Pinned),
			f.SeenAt.Format(time.TimeOnly), orDash(f.State),
			orDash(strings.Trim(fmt.Sprint(f.Segments), "[]"))}
	})
}

func (a *app) pathLinks() *cobra.Command {
	return &cobra.Command{
		Use: "links", Short: "Show the weights that the controller gives to links",
		Long: `Show the links of the controller's topology, one direction each: the occupied part of the queue before it,
smoothed; its weight, which is that over the link's part of the greatest bandwidth; the standard
deviation of what was seen; and how long ago the last report was.`,
		Example:     "  sextant path links",
		Annotations: seeAlso("sextant controller", "sextant controller simulate"),
		RunE:        shows(a, a.controller, (*controller.Client).Links, linkWeightsView),
	}
}

func linkWeightsView(links []controller.Link) view {
	t := table{columns: []string{"FROM", "TO", "WEIGHT", "NOISE", "QUEUE", "AGE"},
		wide: []string{"NUMBER", "QUEUE SIZE"}}
	return listView(links, t, func(l controller.Link) (string, []any) {
		return l.From + ">" + l.To, []any{l.From, l.To, weightText(l.Weight),
			strconv.FormatFloat(l.Noise, 'f', 4, 64), fmt.Sprintf("%.1f %%", 100*l.Occupancy),
			measured(l.AgeMs, 1, "%.0f ms"), l.Number, strconv.FormatInt(l.QueueSize, 10)}
	})
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
		RunE: a.timed(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			return answered(a, decisionsView)(a.controller(cmd).Reroutes(ctx, limit, moved))
		}),
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "how many decisions")
	cmd.Flags().BoolVar(&moved, "moved", false, "only those that moved a flow")
	return cmd
}

func decisionsView(decisions []controller.Decision) view {
	t := table{columns: []string{"FLOW", "VERDICT", "CURRENT", "BEST", "PATH"},
		wide: []string{"NUMBER", "AT", "CLASS", "REASON"}}
	return listView(decisions, t, func(d controller.Decision) (string, []any) {
		current := known(d.Current,
			func(c controller.Candidate) string { return weightText(c.Weight) })
		flow := flowEnds(d.Flow)
		return flow + " " + d.Verdict, []any{flow, d.Verdict, current, bestWeight(d),
			orDash(strings.Join(d.Path, " ")), d.Number, d.At.Format(time.TimeOnly), d.Class,
			d.Reason}
	})
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
	return a.onFlow(&cobra.Command{
		Use:   "pin SOURCE DESTINATION ROUTER,ROUTER...",
		Short: "Pin a flow to a path: the controller does not move it",
		Long: `Give a flow a path through the routers that are named in order, from where it enters the network to where it
leaves. The controller moves it no more until it is unpinned.`,
		Example: "  sextant path pin [2001:db8:1::1]:40000 [2001:db8:2::1]:443 " +
			"leaf1,spine2,leaf2",
		Annotations: seeAlso("sextant path unpin", "sextant path flows"),
		Args:        takes("SOURCE", "DESTINATION", "ROUTER,ROUTER..."),
	}, "pinned", func(ctx context.Context, cmd *cobra.Command, f api.Flow, path string) error {
		return a.controller(cmd).Pin(ctx, controller.Pin{Flow: f, Path: routersOf(path)})
	})
}

func (a *app) pathUnpin() *cobra.Command {
	return a.onFlow(&cobra.Command{
		Use: "unpin SOURCE DESTINATION", Short: "Unpin a flow: the controller may move it again",
		Long: "Allow the controller to move a pinned flow again. It keeps its path until a " +
			"report asks for another.",
		Example:     "  sextant path unpin [2001:db8:1::1]:40000 [2001:db8:2::1]:443",
		Annotations: seeAlso("sextant path pin"),
		Args:        takes("SOURCE", "DESTINATION"),
	}, "unpinned", func(ctx context.Context, cmd *cobra.Command, f api.Flow, _ string) error {
		return a.controller(cmd).Unpin(ctx, f)
	})
}
