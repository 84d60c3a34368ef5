package main

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
)

func (a *app) flowCommand() *cobra.Command {
	return noun("flow", "What the edge does with a client's flow", seeAlso("sextant service show", "sextant backend list"), a.flowTrace())
}

func (a *app) flowTrace() *cobra.Command {
	var protocol string
	cmd := &cobra.Command{
		Use: "trace SOURCE DESTINATION", Short: "Say which servers a flow is offered to, and why",
		Long: `Say which servers a flow is offered to, and why.

SOURCE and DESTINATION are address and port of client and service. The answer is computed from the tables that the edge
forwards by; no packet is sent. The chain tells the flow's history: current candidates, then those who owned the flow's bucket
before (past, with the time since they left), then those who would own it if others were up or down (reserve).`,
		Example:           "  sextant lab exec quickstart edge -- sextant flow trace 203.0.113.7:40000 198.51.100.80:80",
		Annotations:       seeAlso("sextant service show", "sextant sid list"),
		Args:              takes("SOURCE", "DESTINATION"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := api.Flow{Protocol: config.Protocol(protocol)}
			for i, target := range []*netip.AddrPort{&f.Source, &f.Destination} {
				var err error
				if *target, err = netip.ParseAddrPort(args[i]); err != nil {
					return usageErrorf("%q is not an address and port; write it like [2001:db8::1]:443 or 192.0.2.1:443", args[i])
				}
			}
			ctx, cancel := a.withTimeout(cmd)
			defer cancel()
			trace, err := a.agent().Trace(ctx, f)
			if err != nil {
				return err
			}
			return a.show(traceView(trace))
		},
	}
	cmd.Flags().StringVar(&protocol, "protocol", "tcp", "tcp or udp")
	complete(cmd, "protocol", "tcp", "udp")
	return cmd
}

func traceView(t api.Trace) view {
	var prose strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&prose, "%-14s %s\n", what+":", fmt.Sprintf(format, args...))
	}
	line("Flow", "%s %s -> %s", t.Flow.Protocol, t.Flow.Source, t.Flow.Destination)
	line("Service", "%s, policy %s, table %s", t.Service, t.Policy, t.Table)
	line("Bucket", "%d of %d", t.Bucket, t.Buckets)
	line("Flow label", "0x%05x", t.FlowLabel)
	line("Opening", "%s", segmentsText(t.Opening))
	line("Following", "%s", segmentsText(t.Following))
	if t.Shadow != "" {
		line("Strays", "to %s, the owner before the latest change", t.Shadow)
	}
	rows := table{title: "Chain:", columns: []string{"PLACE", "BACKEND", "SID", "ROLE", "STATE", "LEFT"}}
	v := view{value: t, prose: prose.String()}
	for i, p := range t.Chain {
		left := "-"
		if p.LeftSeconds != nil {
			left = time.Duration(*p.LeftSeconds*float64(time.Second)).Round(time.Second).String() + " ago"
		}
		rows.rows = append(rows.rows, []string{count(i + 1), p.Backend, p.SID.String(), p.Role, string(p.State), left})
		v.names = append(v.names, p.Backend)
	}
	v.tables = tables{rows}
	return v
}

// segmentsText writes segments in the order of travel.
func segmentsText(segments []netip.Addr) string {
	if len(segments) == 0 {
		return "nobody"
	}
	texts := make([]string, len(segments))
	for i, s := range segments {
		texts[i] = s.String()
	}
	return strings.Join(texts, ", ")
}
