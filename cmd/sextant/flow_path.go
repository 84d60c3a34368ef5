package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/packet/lists"
)

func (a *app) flowList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show the flows of a head-end that have paths of their own",
		Long: `Show the flows that have paths of their own, in front of the head-end's rules: the segments in the order of the
visit, and for how long the flow keeps them without a renewal.`,
		Example:     "  sextant flow list -o wide",
		Annotations: seeAlso("sextant flow set", "sextant policy list"),
		RunE:        shows(a, a.agentFor, (*api.Client).FlowPaths, flowPathsView),
	}
}

func flowPathsView(paths []api.FlowPath) view {
	t := table{columns: []string{"SOURCE", "DESTINATION", "PROTOCOL", "LEFT", "SEGMENTS"}}
	return listView(paths, t, func(p api.FlowPath) (string, []any) {
		left := time.Duration(p.Seconds * float64(time.Second)).Round(time.Second)
		return flowEnds(p.Flow), []any{p.Flow.Source, p.Flow.Destination, p.Flow.Protocol, left,
			lists.Join(p.Segments, " ")}
	})
}

func (a *app) flowSet() *cobra.Command {
	var segments []string
	var during time.Duration
	cmd := a.onFlow(&cobra.Command{
		Use:   "set SOURCE DESTINATION --segments SID,SID...",
		Short: "Set the path of a flow, in front of a head-end's rules",
		Long: `Set the path of a flow. Each packet takes the old path or the new one, none a mixture. The path precedes the
head-end's rules for the given time, also when the agent ends. headend.flows of the node file limits how many flows
have a path; beyond it, the flow that was idle longest loses its path.`,
		Example: "  sextant flow set [2001:db8:1::1]:40000 [2001:db8:2::1]:443 --segments " +
			"fcbb:bb00:12::,fcbb:bb00:2:d6:: --for 10m",
		Annotations: seeAlso("sextant flow list", "sextant flow clear"),
		Args:        takes("SOURCE", "DESTINATION"),
	}, "set", func(ctx context.Context, _ *cobra.Command, f api.Flow, _ string) error {
		p := api.FlowPath{Flow: f, Seconds: during.Seconds()}
		for _, text := range segments {
			sid, err := netip.ParseAddr(text)
			if err != nil {
				return usageErrorf("--segments %q: write IPv6 addresses, with commas", text)
			}
			p.Segments = append(p.Segments, sid)
		}
		return a.agent().SetFlowPath(ctx, p)
	})
	cmd.Flags().StringSliceVar(&segments, "segments", nil,
		"the SIDs that the flow visits, in order")
	cmd.Flags().DurationVar(&during, "for", 10*time.Minute, "for how long")
	return cmd
}

func (a *app) flowClear() *cobra.Command {
	return a.onFlow(&cobra.Command{
		Use: "clear SOURCE DESTINATION", Short: "Remove the path of a flow: " +
			"the head-end's rules choose again",
		Long: "Remove the path of a flow: the head-end's rules choose again. A flow without a " +
			"path " +
			"of its own is no error.",
		Example:     "  sextant flow clear [2001:db8:1::1]:40000 [2001:db8:2::1]:443",
		Annotations: seeAlso("sextant flow list", "sextant flow set"),
		Args:        takes("SOURCE", "DESTINATION"),
	}, "cleared", func(ctx context.Context, _ *cobra.Command, f api.Flow, _ string) error {
		return a.agent().RemoveFlowPath(ctx, f)
	})
}

// onFlow completes a command that changes one flow, whose path may be its third argument, and says
// what was done.
func (a *app) onFlow(cmd *cobra.Command, done string,
	change func(ctx context.Context, cmd *cobra.Command, f api.Flow, path string) error,
) *cobra.Command {
	var protocol string
	flowProtocolFlag(cmd, &protocol)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		f, err := parseFlow(args, protocol)
		if err != nil {
			return err
		}
		ctx, cancel := a.withTimeout(cmd)
		defer cancel()
		if err := change(ctx, cmd, f, strings.Join(args[2:], "")); err != nil {
			return err
		}
		if !a.quiet {
			fmt.Fprintf(a.stdout, "%s %s\n", done, flowEnds(f))
		}
		return nil
	}
	return cmd
}
