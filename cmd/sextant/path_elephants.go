package main

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/controller"
)

// steeredFlags are what a flow of a network with controllable load balancing is asked for by.
type steeredFlags struct {
	protocol string
	label    string
}

func (f *steeredFlags) add(cmd *cobra.Command) {
	flowProtocolFlag(cmd, &f.protocol)
	cmd.Flags().StringVar(&f.label, "flow-label", "", "the IPv6 flow label that the flow has")
}

// question reads the ends of a flow: ADDRESS or ADDRESS:PORT of the source, ADDRESS:PORT of the
// destination.
func (f *steeredFlags) question(ends []string) (q controller.PathQuestion, err error) {
	if source, err := netip.ParseAddr(ends[0]); err == nil { // the port is to be found
		ends = []string{netip.AddrPortFrom(source, 0).String(), ends[1]}
	}
	if q.Flow, err = parseFlow(ends, f.protocol); err != nil || f.label == "" {
		return q, err
	}
	n, err := strconv.ParseUint(f.label, 0, 20)
	if err != nil {
		return q, usageErrorf("--flow-label %s: write a number of 20 bits, like 0x1a2b3", f.label)
	}
	label := uint32(n)
	q.FlowLabel = &label
	return q, nil
}

const portsLong = `Ask the controller for the source port, or the IPv6 flow label, with which a flow takes a path
through routers with controllable load balancing (CFLB). The path is written as names of routers,
from the source's to the destination's. The section cflb of the controller's file says what routers
read, where hosts are, and the addresses that order next hops.`

func (a *app) pathPorts() *cobra.Command {
	var f steeredFlags
	var via string
	cmd := &cobra.Command{
		Use:   "ports SOURCE DESTINATION --via ROUTER,ROUTER...",
		Short: "Ask the controller for the ports or the flow label of a path",
		Long:  portsLong,
		Example: "  sextant path ports 10.0.1.1 10.0.2.1:443 --via leaf1,spine2,leaf2\n" +
			"  curl --local-port $(sextant path ports 10.0.1.1 10.0.2.1:443 " +
			"--via leaf1,spine2,leaf2 -o name) https://10.0.2.1/",
		Annotations: seeAlso("sextant path best", "sextant path recover", "sextant path encode"),
		Args:        takes("SOURCE", "DESTINATION"),
		RunE: a.timed(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			q, err := f.question(args)
			if err != nil {
				return err
			}
			if q.Path = routersOf(via); len(q.Path) == 0 {
				return usageErrorf("missing --via: the routers on the path, with commas")
			}
			s, err := a.controller(cmd).Ports(ctx, q)
			if err != nil {
				return err
			}
			v := steeredView([]controller.Steered{s})
			v.value = s
			return a.show(v)
		}),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&via, "via", "", "the routers on the path, with commas")
	return cmd
}

func (a *app) pathRecover() *cobra.Command {
	var f steeredFlags
	cmd := &cobra.Command{
		Use:   "recover SOURCE DESTINATION",
		Short: "Ask the controller which path a flow takes",
		Long: `Ask the controller which path a flow takes through routers with controllable load balancing (CFLB), by
its ports or flow label: each router that has several next hops, the one that it takes, and how it
came to it. A flow whose source chose no path is hashed: its way is told too, where the controller's
file has the routers' numbers (routers: [{name: leaf1, cflb: 7}]).`,
		Example:     "  sextant path recover 10.0.1.1:40000 10.0.2.1:443",
		Annotations: seeAlso("sextant path ports", "sextant path decode"),
		Args:        takes("SOURCE", "DESTINATION"),
		RunE: a.timed(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			q, err := f.question(args)
			if err != nil {
				return err
			}
			return answered(a, recoveredView)(a.controller(cmd).Recover(ctx, q))
		}),
	}
	f.add(cmd)
	return cmd
}

func (a *app) pathBest() *cobra.Command {
	var f steeredFlags
	var by string
	var paths int
	cmd := &cobra.Command{
		Use:   "best SOURCE DESTINATION",
		Short: "Ask the controller for the best paths for a flow",
		Long: `Ask the controller for the best of the equal-cost paths for a flow, and for the ports or flow labels
that take them; with --paths for as many subflows. Best is, by "flows", the path with the fewest
flows that were placed on its fullest link, and by "weight" the one whose queues are the emptiest by
telemetry. Nothing is placed: "path place" does that.`,
		Example: "  sextant path best 10.0.1.1 10.0.2.1:443\n" +
			"  sextant path best 10.0.1.1 10.0.2.1:443 --by weight --paths 2 -o json",
		Annotations: seeAlso("sextant path place", "sextant path links"),
		Args:        takes("SOURCE", "DESTINATION"),
		RunE: a.timed(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			q, err := f.question(args)
			if err != nil {
				return err
			}
			q.By, q.Count = by, paths
			return answered(a, steeredView)(a.controller(cmd).Best(ctx, q))
		}),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&by, "by", "",
		"flows or weight; without it, as the controller's file says")
	cmd.Flags().IntVar(&paths, "paths", 1, "how many paths")
	complete(cmd, "by", "flows", "weight")
	return cmd
}

func (a *app) pathPlace() *cobra.Command {
	var f steeredFlags
	var name, by string
	var during time.Duration
	cmd := &cobra.Command{
		Use:   "place SOURCE DESTINATION --name NAME",
		Short: "Have the controller give a long flow a path, and count it there",
		Long: `Have the controller choose the best path for a long flow, count the flow on its links, and say which
source port or flow label takes it. The flow has the path for the time of --for; the same command
again, with the port that the flow has, gives it more time, and says if the path is another one now
(MOVED): because a link has failed or returned, or, by "coloring", because another flow came. By
coloring no link of a fat tree, or of leaves and spines, carries more flows than it has to.`,
		Example: "  sextant path place 10.0.1.1 10.0.2.1:443 --name backup-7\n" +
			"  sextant path place 10.0.1.1:40000 10.0.2.1:443 --name backup-7 --for 10m",
		Annotations: seeAlso("sextant path placed", "sextant path release", "sextant path mptcp"),
		Args:        takes("SOURCE", "DESTINATION"),
		RunE: a.timed(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			q, err := f.question(args)
			if err != nil {
				return err
			}
			if name == "" {
				return usageErrorf("missing --name: by it the flow is renewed and released")
			}
			out, err := a.controller(cmd).Place(ctx, []controller.Placement{{Name: name,
				Flow: q.Flow, FlowLabel: q.FlowLabel, By: by, Seconds: during.Seconds()}})
			if err != nil {
				return err
			}
			v := elephantsView(append(out.Items, out.Moved...))
			v.value = out
			return a.show(v)
		}),
	}
	f.add(cmd)
	cmd.Flags().StringVar(&name, "name", "", "the flow's name, which no other has")
	cmd.Flags().StringVar(&by, "by", "",
		"flows, weight or coloring; without it, as the controller's file says")
	cmd.Flags().DurationVar(&during, "for", time.Minute, "for how long")
	complete(cmd, "by", "flows", "weight", "coloring")
	return cmd
}

func (a *app) pathPlaced() *cobra.Command {
	return &cobra.Command{
		Use: "placed", Short: "Show the long flows that the controller gave paths",
		Long: `Show the flows that the controller gave paths in a network with controllable load balancing, by name,
with the ports or flow labels that take them, and for how long they are counted there.`,
		Example:     "  sextant path placed -o wide",
		Annotations: seeAlso("sextant path place", "sextant path release"),
		RunE:        shows(a, a.controller, (*controller.Client).Elephants, elephantsView),
	}
}

func (a *app) pathRelease() *cobra.Command {
	return &cobra.Command{
		Use: "release NAME...", Short: "Tell the controller that long flows have ended",
		Long: "Tell the controller that flows which it gave paths have ended: they count on no " +
			"link any more.",
		Example:     "  sextant path release backup-7",
		Annotations: seeAlso("sextant path place", "sextant path placed"),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageErrorf("missing NAME: \"sextant path placed\" lists them")
			}
			return nil
		},
		RunE: a.timed(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := a.controller(cmd).Release(ctx, args...); err != nil {
				return err
			}
			if !a.quiet {
				fmt.Fprintf(a.stdout, "released %s\n", strings.Join(args, " "))
			}
			return nil
		}),
	}
}

// fieldOf is what takes the path: the flow label, or the source port.
func fieldOf(s controller.Steered) string {
	if s.FlowLabel != nil {
		return fmt.Sprintf("0x%05x", *s.FlowLabel)
	}
	return count(s.Flow.Source.Port())
}

func steeredView(list []controller.Steered) view {
	t := table{columns: []string{"SOURCE", "DESTINATION", "FLOW-LABEL", "PATH"}}
	return listView(list, t, func(s controller.Steered) (string, []any) {
		label := ""
		if s.FlowLabel != nil {
			label = fieldOf(s)
		}
		return fieldOf(s), []any{s.Flow.Source, s.Flow.Destination, orDash(label),
			strings.Join(s.Path, " ")}
	})
}

func recoveredView(s controller.Steered) view {
	t := table{columns: []string{"ROUTER", "HOP-LIMIT", "NEXT-HOP", "OF", "CHOICE"}}
	for _, c := range s.Choices {
		t.add(c.Router, c.HopLimit, textIf(c.Index >= 0, strconv.Itoa(c.Index)), c.NextHops, c.How)
	}
	prose := "path: " + strings.Join(s.Path, " ") + "\n"
	if s.Problem != "" {
		prose += s.Problem + "\n"
	}
	return view{value: s, prose: prose + "\n", tables: tables{t}, names: s.Path}
}

func elephantsView(list []controller.Elephant) view {
	t := table{columns: []string{"NAME", "SOURCE", "DESTINATION", "FLOW-LABEL", "MOVED", "PATH"},
		wide: []string{"PROTOCOL", "BY", "LOAD", "LEFT", "PROBLEM"}}
	return listView(list, t, func(e controller.Elephant) (string, []any) {
		label := ""
		if e.FlowLabel != nil {
			label = fieldOf(e.Steered)
		}
		left := time.Duration(e.Seconds * float64(time.Second)).Round(time.Second)
		return e.Name, []any{e.Name, e.Flow.Source, e.Flow.Destination, orDash(label), yes(e.Moved),
			strings.Join(e.Path, " "), e.Flow.Protocol, e.By, e.Load, left, orDash(e.Problem)}
	})
}
