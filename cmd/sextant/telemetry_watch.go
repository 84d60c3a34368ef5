package main

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"sextant/agent/api"
)

func (a *app) telemetryWatch() *cobra.Command {
	return noun("watch", "Which packets get in-band telemetry at this node",
		seeAlso("sextant status", "sextant telemetry links"), a.telemetryWatchList(),
		a.telemetryWatchAdd(), a.telemetryWatchSet(), a.telemetryWatchRemove())
}

func (a *app) telemetryWatchList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "Show which packets get telemetry, and how many of them",
		Long: `Show the watch list of a source: the first item that a packet matches decides, the last one is all
other packets.`,
		Example:     "  sextant telemetry watch list",
		Annotations: seeAlso("sextant telemetry watch add", "sextant status"),
		RunE:        shows(a, a.agentFor, (*api.Client).TelemetryWatches, telemetryWatchView),
	}
}

func telemetryWatchView(list []api.TelemetryWatch) view {
	t := table{columns: []string{"NAME", "PACKETS", "SERVICE", "TELEMETRY IN", "CHOICE"},
		wide: []string{"METADATA"}}
	return listView(list, t, func(w api.TelemetryWatch) (string, []any) {
		share := "none"
		if w.OneIn > 0 {
			share = fmt.Sprintf("1 in %d", w.OneIn)
		}
		return w.Name, []any{orDash(w.Name), w.Match, orDash(w.Service), share, w.Choice,
			orDash(strings.Trim(fmt.Sprint(w.Metadata), "[]"))}
	})
}

func (a *app) telemetryWatchAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add an item to the watch list: which packets get telemetry",
		Long: `Add an item to the end of a source's watch list: packets that match all that is given, and no item before
it, get telemetry at its rate, from the next packet on. Of an encapsulated packet, the inner headers are
compared.`,
		Example: "  sextant telemetry watch add voice --dscp 46 --one-in 1\n" +
			"  sextant telemetry watch add backup --destination 2001:db8:b::/48 --one-in 0\n" +
			"  sextant telemetry watch add web --protocol tcp --destination-ports 80-90 " +
			"--one-in 20 --choice turn\n" +
			"  sextant telemetry watch add video --service video --metadata node,queue,latency",
		Annotations: seeAlso("sextant telemetry watch list", "sextant telemetry watch set",
			"sextant telemetry watch remove"),
		Args: takes("NAME"),
	}
	a.putsTelemetryWatch(cmd, api.Create, "an item without a flag is all packets that no item "+
		"before it matches; say which, like --dscp 46, or how many of them, like --one-in 10")
	return cmd
}

func (a *app) telemetryWatchSet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set NAME", Short: "Change an item of the watch list",
		Long: "Change an item of a source's watch list, from the next packet on; settings that " +
			"are not named keep their values.",
		Example:     "  sextant telemetry watch set voice --one-in 10",
		Annotations: seeAlso("sextant telemetry watch list", "sextant telemetry watch add"),
		Args:        takes("NAME"),
	}
	a.putsTelemetryWatch(cmd, api.Update, "nothing to change; say what with a flag, like --one-in")
	return cmd
}

// putsTelemetryWatch has a command add or change an item by its flags, of which it needs one.
func (a *app) putsTelemetryWatch(cmd *cobra.Command, put api.Put, needs string) {
	settingFlags(cmd, reflect.TypeFor[api.TelemetryWatchSpec]())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var spec api.TelemetryWatchSpec
		if err := readSettingFlags(cmd, &spec); err != nil {
			return err
		}
		if spec == (api.TelemetryWatchSpec{}) {
			return usageErrorf("%s", needs)
		}
		ctx, cancel := a.withTimeout(cmd)
		defer cancel()
		return a.changed(a.agent().PutTelemetryWatch(ctx, put, args[0], spec))
	}
}

func (a *app) telemetryWatchRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Take an item from the watch list",
		Long: "Take an item from the watch list. Its packets get telemetry as the next item that " +
			"they match says.",
		Example:     "  sextant telemetry watch remove voice",
		Annotations: seeAlso("sextant telemetry watch list", "sextant telemetry watch add"),
		Args:        takes("NAME"),
		RunE: a.timed(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return a.changed(a.agent().DeleteTelemetryWatch(ctx, args[0]))
		}),
	}
}
