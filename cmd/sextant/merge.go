package main

import (
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
)

func (a *app) mergeCommand() *cobra.Command {
	return noun("merge", "Protected flows at their egress: the first copy of a packet passes",
		seeAlso("sextant policy"), a.mergeList())
}

func (a *app) mergeList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List protected flows: packets passed, eliminated and " +
			"missing, and counters of each path",
		Long: `List the protected flows whose egress this node is, and their paths.

A packet is missing if no copy of it has come; it is lost on a path if none came there. Both count packets on their way too. First are
those packets of a path that came before their copies. RECENT-LOSS and RECENT-DELAY are those of the latest 10 seconds; delays are one-way,
as right as the clocks of the two machines, and there are none in the SID form.`,
		Example:     "  sextant lab exec policies egress -- sextant merge list",
		Annotations: seeAlso("sextant policy show", "sextant sid list"),
		RunE:        shows(a, a.agentFor, (*api.Client).Merge, mergeView),
	}
}

func mergeView(flows []api.MergedFlow) view {
	all := table{
		columns: []string{"SID", "FLOWS", "PASSED", "DUPLICATE", "MISSING", "ROGUE", "OLD-EPOCH"},
		wide:    []string{"FORM", "MARK", "HISTORY", "OUT-OF-ORDER", "RESETS"},
	}
	paths := table{
		title: "Paths:",
		columns: []string{"SID", "FLOW", "PACKETS", "FIRST", "LOST", "RECENT-LOSS", "DELAY",
			"RECENT-DELAY", "LATEST", "STATE"},
		wide: []string{"BYTES", "LEAST", "MOST"},
	}
	v := view{value: api.List[api.MergedFlow]{Items: flows}}
	for _, f := range flows {
		name := f.SID.String()
		ids := config.FormatFlows(f.Flows)
		all.add(name, ids, f.PassedPackets, f.DuplicatePackets, f.MissingPackets, f.RoguePackets,
			f.OldEpochPackets, f.Form, orDash(unlessZero(int(f.Mark))), f.HistoryPackets,
			f.OutOfOrderPackets, f.Resets)
		for _, p := range f.Paths {
			paths.add(name, p.Flow, p.Packets, p.FirstPackets, p.LostPackets,
				measured(p.RecentLoss, 100, "%.1f%%"), oneWay(p.DelaySeconds),
				oneWay(p.RecentDelaySeconds), latestText(p.SilentSeconds), pathState(p), p.Bytes,
				oneWay(p.DelayLeastSeconds), oneWay(p.DelayMostSeconds))
		}
		v.names = append(v.names, name+" "+ids)
	}
	v.tables = tables{all, paths}
	return v
}

// oneWay writes a delay to the microsecond.
func oneWay(seconds *float64) string { return measured(seconds, 1000, "%.3fms") }

// latestText says how long ago the latest packet came.
func latestText(seconds *float64) string {
	if seconds == nil {
		return "never"
	}
	return time.Duration(*seconds*float64(time.Second)).Round(100*time.Millisecond).String() +
		" ago"
}

// idleSeconds is after how long without a packet a path that none is expected of is no longer
// called ok.
const idleSeconds = 10

func pathState(p api.MergedPath) string {
	switch {
	case p.Silent:
		return "silent"
	case p.SilentSeconds == nil:
		return "unused"
	case *p.SilentSeconds >= idleSeconds:
		return "idle"
	}
	return "ok"
}
