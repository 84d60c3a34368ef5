package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
)

// fullStatus is the status with the counters that belong to it.
type fullStatus struct {
	api.Status
	Counters []api.Counters `json:"counters"`
}

func (a *app) statusCommand() *cobra.Command {
	var brief bool
	roles, _ := config.ExplainedRoles()
	cmd := &cobra.Command{
		Use: "status", SuggestFor: append(roles, "flowlet"),
		Short: "Show what the agent runs, its packets and its drops",
		Long: "Show what the agent runs, its packets and its drops. The exit code is 1 while a " +
			"program is not\n" +
			"attached where the node file wants it: packets are not processed there then.",
		Example: `  sextant lab exec quickstart edge -- sextant status
  sextant lab exec quickstart edge -- sextant status --brief`,
		Annotations: seeAlso("sextant service list", "sextant monitor"),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			s, err := a.fullStatus(ctx)
			if err != nil {
				return err
			}
			if brief && (a.output == formatTable || a.output == formatWide) {
				fmt.Fprintln(a.stdout, briefStatus(s))
				return unattached(s.Programs)
			}
			return errors.Join(a.show(statusView(s)), unattached(s.Programs))
		}),
	}
	cmd.Flags().BoolVar(&brief, "brief", false, "one line, for probes")
	return cmd
}

// unattached is the exit code for a program that does not process packets.
func unattached(programs []api.Program) error {
	return failedIf(slices.ContainsFunc(programs,
		func(p api.Program) bool { return p.Fault != "" }))
}

func (a *app) fullStatus(ctx context.Context) (fullStatus, error) {
	status, err := a.lister().Status(ctx)
	if err != nil {
		return fullStatus{}, err
	}
	counters, err := a.lister().Counters(ctx)
	return fullStatus{status, counters}, err
}

func briefStatus(s fullStatus) string {
	health := "ok"
	if len(s.Warnings) > 0 {
		health = s.Warnings[0]
	}
	return fmt.Sprintf("%s (%s), %s, up %s: %s", s.Node, strings.Join(s.Roles, ", "),
		plural(uint64(len(s.Programs)), "program"),
		age(s.UptimeSeconds), health)
}

func statusView(s fullStatus) view {
	var prose strings.Builder
	fmt.Fprintf(&prose, "Node:      %s (%s)\n", s.Node, strings.Join(s.Roles, ", "))
	fmt.Fprintf(&prose, "Version:   %s\n", s.Version)
	fmt.Fprintf(&prose, "Up:        %s, since %s\n", age(s.UptimeSeconds),
		s.StartedAt.Format(time.RFC3339))
	fmt.Fprintf(&prose, "Config:    %s\n", s.ConfigHash)
	for _, w := range s.Warnings {
		fmt.Fprintf(&prose, "Warning:   %s\n", w)
	}
	return view{
		value: s,
		prose: prose.String(),
		tables: slices.Concat(tables{programTable(s.Programs), packetTable(s.Counters)},
			filled(cacheTable(s.Counters)),
			tables{dropTable(s.Counters)}, filled(vrfTable(s.Counters)),
			filled(choiceTable(s.Counters)), filled(steeredTable(s.Counters)),
			filled(subflowTable(s.Counters)), filled(flowletTable(s.Counters)),
			filled(telemetryTable(s.Counters))),
		names: []string{s.Node},
	}
}

// filled leaves a table out that has no rows, as the node does nothing of the kind.
func filled(t table) tables {
	if len(t.rows) == 0 {
		return nil
	}
	return tables{t}
}

func programTable(programs []api.Program) table {
	t := table{title: "Programs:", columns: []string{"NAME", "ON", "MODE", "SIDE", "ATTACHED"},
		wide: []string{"TAG"}}
	for _, p := range programs {
		t.add(p.Name, orDash(p.Interface+p.Cgroup), orDash(string(p.Mode)),
			orDash(string(p.Side)), yes(p.Fault == ""), p.Tag)
	}
	return t
}

func packetTable(counters []api.Counters) table {
	t := table{
		title:   "Packets:",
		columns: []string{"ROLE", "FORWARDED", "TAKEN", "PASSED", "DROPPED"},
		wide:    []string{"TRANSMITTED", "REDIRECTED", "HANDED-TO-KERNEL"},
	}
	for _, c := range counters {
		if c.CFLB != nil || c.PathSource != nil || c.Subflows != nil ||
			c.Flowlets != nil || c.Telemetry != nil {
			continue // choiceTable, steeredTable, subflowTable, flowletTable, telemetryTable
		}
		t.add(c.Role, c.ForwardedPackets(), c.TakenPackets, c.PassedPackets, c.DroppedPackets(),
			c.TransmittedPackets, c.RedirectedPackets, c.HandedToKernelPackets)
	}
	return t
}

// cacheTable is empty if no edge has a flow cache.
func cacheTable(counters []api.Counters) table {
	t := table{title: "Flow cache:", columns: []string{"EVENT", "PACKETS"}}
	for _, c := range counters {
		for _, e := range c.FlowCache {
			t.add(e.Event, e.Packets)
		}
	}
	return t
}

// dropTable leaves reasons out that never happened.
func dropTable(counters []api.Counters) table {
	t := table{title: "Drops:", columns: []string{"ROLE", "REASON", "PACKETS"}}
	for _, c := range counters {
		for _, d := range c.Drops {
			if d.Packets > 0 {
				t.add(c.Role, d.Reason, d.Packets)
			}
		}
	}
	return t
}

// choiceTable says how a router chose next hops.
func choiceTable(counters []api.Counters) table {
	t := table{title: "Next hops chosen:", columns: []string{"CHOICE", "PACKETS"}}
	for _, c := range counters {
		if c.CFLB == nil {
			continue
		}
		for _, one := range c.CFLB.Choices {
			t.add(one.Choice, one.Packets)
		}
		t.rows = append(t.rows, []string{"(destinations)", count(c.CFLB.Destinations)},
			[]string{"(left to the kernel)", count(c.CFLB.LeftToKernel)},
			[]string{"(renumbered)", count(c.CFLB.Renumbered)})
	}
	return t
}

// steeredTable says what became of sockets that were connected.
func steeredTable(counters []api.Counters) table {
	t := table{title: "Sockets connected:", columns: []string{"OUTCOME", "SOCKETS"}}
	for _, c := range counters {
		if c.PathSource != nil {
			t.rows = append(t.rows, []string{"steered", count(c.PathSource.Steered)},
				[]string{"no free port or label", count(c.PathSource.NoPort)},
				[]string{"bound by the application", count(c.PathSource.Bound)},
				[]string{"unmatched", count(c.PathSource.Unmatched)})
		}
	}
	return t
}

// subflowTable says what became of MPTCP connections and their subflows.
func subflowTable(counters []api.Counters) table {
	t := table{title: "MPTCP:", columns: []string{"WHAT", "COUNT"}}
	for _, c := range counters {
		if s := c.Subflows; s != nil {
			t.rows = append(t.rows, []string{"connections managed", count(s.Managed)},
				[]string{"connections watched", count(s.Watched)},
				[]string{"connections left alone", count(s.Left)},
				[]string{"subflows open", count(s.Open)},
				[]string{"(opened)", count(s.Opened)}, []string{"(not opened)", count(s.Failed)},
				[]string{"(ended: no answers)", count(s.Stalled)},
				[]string{"(ended: unwanted)", count(s.Surplus)},
				[]string{"(ended: another path)", count(s.Moved)})
		}
	}
	return t
}

// flowletTable says over which paths a host sent its packets.
func flowletTable(counters []api.Counters) table {
	t := table{title: "Flowlets:", columns: []string{"GROUP", "PATH", "UP", "PACKETS", "MOVES",
		"LEFT", "UNDER-WAY", "ROUND-TRIP", "LOST"}, wide: []string{"SID", "INTERFACE", "SILENT"}}
	milliseconds := func(ms float64) string {
		if ms == 0 {
			return "-"
		}
		return fmt.Sprintf("%.3f ms", ms)
	}
	for _, c := range counters {
		if c.Flowlets == nil {
			continue
		}
		for _, p := range c.Flowlets.Paths {
			t.add(p.Group, p.Name, yes(p.Up), p.Packets, p.Moves, p.Left, p.UnderWayBytes,
				milliseconds(p.RoundTripMs), fmt.Sprintf("%.1f ‰", p.LostPermille), p.SID,
				orDash(p.Interface), milliseconds(p.SilentMs))
		}
		for _, other := range []struct {
			what    string
			packets uint64
		}{{"(too long)", c.Flowlets.TooLong}, {"(all paths down)", c.Flowlets.Pathless}} {
			t.add(other.what, "-", "-", other.packets, "-", "-", "-", "-", "-", "-", "-", "-")
		}
	}
	return t
}

// telemetryTable says what became of packets with in-band telemetry, and of reports. What never
// happened is left out.
func telemetryTable(counters []api.Counters) table {
	t := table{title: "In-band telemetry:", columns: []string{"WHAT", "PACKETS"}}
	add := func(what string, packets uint64) {
		if packets > 0 {
			t.add(what, packets)
		}
	}
	for _, c := range counters {
		if c.Telemetry == nil {
			continue
		}
		for _, one := range c.Telemetry.Packets {
			add(one.Outcome, one.Packets)
		}
		for _, one := range c.Telemetry.Reported {
			add("reported: "+one.Reason, one.Packets)
		}
		add("(reports)", c.Telemetry.Reports)
		add("(reports lost)", c.Telemetry.LostReports)
	}
	return t
}

// vrfTable says what came for VRFs beside a router.
func vrfTable(counters []api.Counters) table {
	t := table{
		title: "VRFs:", columns: []string{"VRF", "BACKUP", "HERE", "STRAYS", "RETURNED"},
		wide: []string{"HERE-BYTES", "STRAY-BYTES", "RETURNED-BYTES"},
	}
	for _, c := range counters {
		for _, v := range c.VRFs {
			t.add(v.VRF, v.Backup, v.HerePackets, v.StrayPackets, v.ReturnedPackets, v.HereBytes,
				v.StrayBytes, v.ReturnedBytes)
		}
	}
	return t
}
