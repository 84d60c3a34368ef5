package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
)

func (a *app) flowList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show the flows of a head-end that have paths of their own",
		Long: `Show the flows that have paths of their own, in front of the head-end's rules: the segments in the order of the
visit, and for how long the flow keeps them without a renewal.`,
		Example:     "  sextant flow list -o wide",
		Annotations: seeAlso("sextant flow set", "sextant policy list"),
		Args:        takes(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			paths, err := a.agent().FlowPaths(ctx)
			if err != nil {
				return err
			}
			return a.show(flowPathsView(paths))
		},
	}
}

func flowPathsView(paths []api.FlowPath) view {
	t := table{columns: []string{"SOURCE", "DESTINATION", "PROTOCOL", "LEFT", "SEGMENTS"}}
	v := view{value: api.List[api.FlowPath]{Items: paths}}
	for _, p := range paths {
		var segments []string
		for _, s := range p.Segments {
			segments = append(segments, s.String())
		}
		left := time.Duration(p.Seconds * float64(time.Second)).Round(time.Second)
		t.rows = append(t.rows, []string{p.Flow.Source.String(), p.Flow.Destination.String(),
			string(p.Flow.Protocol), left.String(), strings.Join(segments, " ")})
		v.names = append(v.names, flowEnds(p.Flow))
	}
	v.tables = tables{t}
	return v
}

func (a *app) flowSet() *cobra.Command {
	var protocol string
	var segments []string
	var during time.Duration
	cmd := &cobra.Command{
		Use:   "set SOURCE DESTINATION --segments SID,SID...",
		Short: "Set the path of a flow, in front of a head-end's rules",
		Long: `Set the path of a flow. Each packet takes the old path or the new one, none a mixture. The path precedes the
head-end's rules for the given time, also when the agent ends. headend.flows of the node file limits how many flows
have a path; beyond it, the flow that was idle longest loses its path.`,
		Example: "  sextant flow set [2001:db8:1::1]:40000 [2001:db8:2::1]:443 --segments " +
			"fcbb:bb00:12::,fcbb:bb00:2:d6:: --for 10m",
		Annotations: seeAlso("sextant flow list", "sextant flow clear"),
		Args:        takes("SOURCE", "DESTINATION"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := parseFlow(args, protocol)
			if err != nil {
				return err
			}
			p := api.FlowPath{Flow: f, Seconds: during.Seconds()}
			for _, text := range segments {
				sid, err := netip.ParseAddr(text)
				if err != nil {
					return usageErrorf("--segments %q: write IPv6 addresses, with commas", text)
				}
				p.Segments = append(p.Segments, sid)
			}
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			if err := a.agent().SetFlowPath(ctx, p); err != nil {
				return err
			}
			return a.flowChanged("set", f)
		},
	}
	flowProtocolFlag(cmd, &protocol)
	cmd.Flags().StringSliceVar(&segments, "segments", nil,
		"the SIDs that the flow visits, in order")
	cmd.Flags().DurationVar(&during, "for", 10*time.Minute, "for how long")
	return cmd
}

func (a *app) flowClear() *cobra.Command {
	var protocol string
	cmd := &cobra.Command{
		Use: "clear SOURCE DESTINATION", Short: "Remove the path of a flow: " +
			"the head-end's rules choose again",
		Long: "Remove the path of a flow: the head-end's rules choose again. A flow without a " +
			"path " +
			"of its own is no error.",
		Example:     "  sextant flow clear [2001:db8:1::1]:40000 [2001:db8:2::1]:443",
		Annotations: seeAlso("sextant flow list", "sextant flow set"),
		Args:        takes("SOURCE", "DESTINATION"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := parseFlow(args, protocol)
			if err != nil {
				return err
			}
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			if err := a.agent().RemoveFlowPath(ctx, f); err != nil {
				return err
			}
			return a.flowChanged("cleared", f)
		},
	}
	flowProtocolFlag(cmd, &protocol)
	return cmd
}

// flowChanged says what was done.
func (a *app) flowChanged(what string, f api.Flow) error {
	if !a.quiet {
		fmt.Fprintf(a.stdout, "%s %s\n", what, flowEnds(f))
	}
	return nil
}
