package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/controller/listener"
)

func (a *app) telemetryCommand() *cobra.Command {
	return noun("telemetry", "Reports of in-band telemetry: queues, delays and paths",
		seeAlso("sextant controller", "sextant path links"), a.telemetryListen(),
		telemetrySocket(a.telemetryLinks()), telemetrySocket(a.telemetryPath()),
		telemetrySocket(a.telemetryExporters()), a.telemetryWatch())
}

// telemetrySocket names the listener's socket, which SEXTANT_TELEMETRY does otherwise.
func telemetrySocket(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().String("telemetry", listener.DefaultSocket,
		"Unix socket of the listener (or SEXTANT_TELEMETRY)")
	return cmd
}

func (a *app) telemetrySocketOf(cmd *cobra.Command) string {
	f := cmd.Flags().Lookup("telemetry")
	if socket := a.getenv("SEXTANT_TELEMETRY"); socket != "" && !f.Changed {
		return socket
	}
	return f.Value.String()
}

func (a *app) listener(cmd *cobra.Command) *listener.Client {
	return listener.NewClient(a.telemetrySocketOf(cmd))
}

func (a *app) telemetryLinks() *cobra.Command {
	cmd := &cobra.Command{
		Use: "links", Short: "Show queues, delays and use of links, from telemetry reports",
		Long: `Show the links that telemetry reports contain: one line for each node and interface that packets left through.
Quantiles are at most 25 % above the true ones. With --follow, again in each interval; in JSON, one object per line.`,
		Example: "  sextant telemetry links -o wide\n" +
			"  sextant telemetry links --follow --interval 5s -o json",
		Annotations: seeAlso("sextant telemetry path", "sextant telemetry listen"),
	}
	f := followFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.showFollowed(cmd, f, func(ctx context.Context) (view, error) {
			links, err := a.listener(cmd).Links(ctx)
			return telemetryLinksView(links), err
		})
	}
	return cmd
}

// following are the flags of commands that can show their answer again and again.
type following struct {
	*watch
	on bool
}

func followFlags(cmd *cobra.Command) *following {
	f := &following{}
	cmd.Flags().BoolVar(&f.on, "follow", false, "show it again in each interval, until interrupted")
	f.watch = watchFlags(cmd)
	return f
}

// showFollowed shows an answer, and with --follow again and again; what is not there then is waited
// for.
func (a *app) showFollowed(cmd *cobra.Command, f *following,
	ask func(context.Context) (view, error)) error {
	if !f.on {
		return a.showUnless(a.askOnce(cmd, ask))
	}
	asJSON, err := a.streams()
	if err != nil {
		return err
	}
	if f.interval < 100*time.Millisecond || f.interval > time.Minute {
		return usageErrorf("--interval %s: it is 100ms to 1m", f.interval)
	}
	ticker := time.NewTicker(f.interval)
	defer ticker.Stop()
	waiting := false
	for seen := 0; ; {
		v, err := a.askOnce(cmd, ask)
		var refused *api.Error
		switch {
		case cmd.Context().Err() != nil:
			return nil
		case errors.As(err, &refused) && refused.Code == api.NotFound:
			if !waiting && !a.quiet {
				a.say("%s; waiting", refused.Message)
			}
			waiting = true
		case err != nil:
			return err
		default:
			if waiting, err = false, a.showAgain(v, asJSON); err != nil {
				return err
			}
			if seen++; seen == f.times {
				return nil
			}
		}
		select {
		case <-ticker.C:
		case <-cmd.Context().Done():
			return nil
		}
	}
}

func (a *app) askOnce(cmd *cobra.Command, ask func(context.Context) (view, error)) (view, error) {
	ctx, cancel := a.withTimeout(cmd)
	defer cancel()
	return ask(ctx)
}

// showAgain shows one of many answers: a line of JSON, or tables with the time above.
func (a *app) showAgain(v view, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(v.value)
	}
	fmt.Fprintln(a.stdout, time.Now().Format(time.TimeOnly))
	return a.show(v)
}

func telemetryLinksView(links []listener.Link) view {
	t := table{columns: []string{"NODE", "EGRESS", "SAMPLES", "QUEUE BYTES", "QUEUE P99",
		"LATENCY P50", "LATENCY P99", "USED", "DROPS", "AGE"},
		wide: []string{"QUEUE MAX", "LATENCY MAX", "USED P99"}}
	return listView(links, t, func(l listener.Link) (string, []any) {
		queue, delay, used := valuesOr(l.QueueBytes), valuesOr(l.LatencyNs),
			valuesOr(l.UtilizationPPM)
		node, egress := count(l.Node), numberOrDash(l.Egress)
		return node + " " + egress, []any{node, egress, l.Samples, queue(listenerLast, bytesText),
			queue(listenerP99, bytesText), delay(listenerP50, nanoseconds),
			delay(listenerP99, nanoseconds), used(listenerLast, percent), l.Drops,
			(time.Duration(l.AgeMs) * time.Millisecond).String(), queue(listenerMax, bytesText),
			delay(listenerMax, nanoseconds), used(listenerP99, percent)}
	})
}

func listenerLast(v listener.Values) uint32 { return v.Last }
func listenerP50(v listener.Values) uint32  { return v.P50 }
func listenerP99(v listener.Values) uint32  { return v.P99 }
func listenerMax(v listener.Values) uint32  { return v.Max }

// valuesOr writes one of the values, or "-" if there is none.
func valuesOr(v *listener.Values) func(func(listener.Values) uint32, func(uint32) string) string {
	return func(which func(listener.Values) uint32, write func(uint32) string) string {
		return known(v, func(v listener.Values) string { return write(which(v)) })
	}
}

func bytesText(v uint32) string   { return count(uint64(v)) }
func nanoseconds(v uint32) string { return time.Duration(v).String() }
func percent(ppm uint32) string   { return strconv.FormatFloat(float64(ppm)/1e4, 'f', 1, 64) + "%" }

func numberOrDash[N uint8 | uint32 | uint64](v *N) string { return known(v, count[N]) }

func (a *app) telemetryPath() *cobra.Command {
	var protocol string
	var follow *following
	cmd := &cobra.Command{
		Use: "path SOURCE DESTINATION", Short: "Show the hops of a flow's last reported packet",
		Long: `Show the nodes that the last reported packet of a flow passed, hop by hop. With --follow, again in each
interval, and the command waits for a flow without a report; in JSON, one object per line.`,
		Example: "  sextant telemetry path [2001:db8:1::1]:40000 [2001:db8:2::1]:443\n" +
			"  sextant telemetry path [2001:db8:1::1]:40000 [2001:db8:2::1]:443 --follow -o wide",
		Annotations: seeAlso("sextant telemetry links", "sextant telemetry exporters",
			"sextant path flows"),
		Args: takes("SOURCE", "DESTINATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := parseFlow(args, protocol)
			if err != nil {
				return err
			}
			return a.showFollowed(cmd, follow, func(ctx context.Context) (view, error) {
				p, err := a.listener(cmd).Path(ctx, f)
				return telemetryPathView(p), err
			})
		},
	}
	follow = followFlags(cmd)
	flowProtocolFlag(cmd, &protocol)
	return cmd
}

func telemetryPathView(p listener.Path) view {
	t := table{columns: []string{"HOP", "NODE", "INGRESS", "EGRESS", "QUEUE BYTES", "LATENCY"},
		wide: []string{"QUEUE", "USED", "TIME"}}
	v := listView(p.Hops, t, func(h api.Hop) (string, []any) {
		return numberOrDash(h.Node), []any{h.Hop, numberOrDash(h.Node), numberOrDash(h.Ingress),
			numberOrDash(h.Egress), known(h.QueueBytes, bytesText), known(h.LatencyNs, nanoseconds),
			numberOrDash(h.QueueID), known(h.UtilizationPPM, percent), numberOrDash(h.TimeNs)}
	})
	v.value = p
	return v
}

// carriedText is what nodes wrote into a packet, in one line.
func carriedText(all []api.CarriedTelemetry) string {
	var texts []string
	for _, t := range all {
		words := []string{t.Format}
		for _, h := range t.Hops {
			word := "node " + numberOrDash(h.Node)
			if h.Node == nil && h.Egress != nil {
				word = "interface " + numberOrDash(h.Egress)
			}
			if h.QueueBytes != nil {
				word += " queue " + bytesText(*h.QueueBytes) + " bytes"
			}
			words = append(words, word)
		}
		texts = append(texts, strings.Join(words, "; "))
	}
	return strings.Join(texts, ", ")
}

func (a *app) telemetryExporters() *cobra.Command {
	return &cobra.Command{
		Use: "exporters", Short: "Show the exporters of reports, and how many reports were lost",
		Example:     "  sextant telemetry exporters",
		Annotations: seeAlso("sextant telemetry links", "sextant telemetry listen"),
		RunE:        shows(a, a.listener, (*listener.Client).Exporters, exportersView),
	}
}

func exportersView(exporters []listener.Exporter) view {
	t := table{columns: []string{"ADDRESS", "NODE", "HARDWARE", "RECEIVED", "LOST", "LATE",
		"DUPLICATE", "RESTARTS", "AGE"}}
	return listView(exporters, t, func(e listener.Exporter) (string, []any) {
		return e.Address.String(), []any{e.Address, strconv.FormatUint(uint64(e.Node), 10),
			e.Hardware, e.Received, e.Lost, e.Late, e.Duplicate, e.Restarts,
			(time.Duration(e.AgeMs) * time.Millisecond).String()}
	})
}
