package main

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sextant/controller/collector"
	"sextant/controller/listener"
)

// defaultReportPort is where reports go if nothing else is said: no port is assigned to them.
const defaultReportPort = 32766

func (a *app) telemetryListen() *cobra.Command {
	var at, metrics, export, format string
	var allow []string
	o := listener.Options{}
	cmd := &cobra.Command{
		Use: "listen", Short: "Receive telemetry reports, and serve the state of links and paths",
		Long: `Receive Telemetry Reports 2.0 by UDP, with INT-MD, IOAM traces or Path Tracing in the packets that they
carry. The state of links and paths is served on a Unix socket, for "telemetry links" and
"telemetry path", and to Prometheus with --metrics. With -o json, each report is a line of JSON on
stdout. With --ipfix, an IPFIX collector gets a record per link and flow in each interval.`,
		Example: "  sextant telemetry listen\n" +
			"  sextant telemetry listen --listen [::1]:32766 --metrics 127.0.0.1:9109 -o json\n" +
			"  sextant telemetry listen --ipfix [2001:db8::9]:4739 --ipfix-interval 30s\n" +
			"  sextant telemetry listen --ioam-events --interface eth0",
		Annotations: seeAlso("sextant telemetry links", "sextant telemetry path",
			"sextant telemetry exporters"),
	}
	flags := cmd.Flags()
	flags.StringVar(&at, "listen", "[::]:"+strconv.Itoa(defaultReportPort),
		"UDP address and port for reports")
	flags.StringVar(&metrics, "metrics", "", "TCP address and port for Prometheus (default none)")
	flags.StringSliceVar(&allow, "allow", nil,
		"take reports from these prefixes only; repeatable (default anywhere)")
	flags.StringVar(&export, "ipfix", "",
		"UDP address and port of an IPFIX collector (default none)")
	flags.DurationVar(&o.Interval, "ipfix-interval", 10*time.Second,
		"time from one record of a link or flow to its next, 1s to 1h")
	flags.Uint32Var(&o.Enterprise, "ipfix-enterprise", 0,
		"private enterprise number for IPFIX elements of queues, latencies and utilization; "+
			"0 leaves them out")
	flags.Uint16Var(&o.INTPort, "int-port", collector.DefaultINTPort,
		"UDP destination port behind which packets carry INT")
	flags.BoolVar(&o.Events, "ioam-events", false,
		"take the IOAM traces of packets to this node, as its kernel reports them (Linux 6.10)")
	flags.StringSliceVar(&o.Interfaces, "interface", nil,
		"take IOAM traces and Path Tracing from packets that come by this interface; repeatable")
	flags.UintVar(&o.PathTracing.Shift, "path-tracing-shift", 16,
		"how far nodes of Path Tracing shift their clock: 8, 12, 16 or 20")
	flags.BoolVar(&o.PathTracing.LoadSwapped, "path-tracing-load-swapped", false,
		"nodes of Path Tracing write the load into bits 4 to 7 of the interface, as VPP does")
	flags.Uint32Var(&o.SmoothiePacketBytes, "smoothie-packet-bytes", 0,
		"take reports 1.0 of SMOOTHIE's published program, too: bytes of a packet in its queues")
	logFlag(cmd, &format)
	telemetrySocket(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if a.output != formatTable && a.output != formatJSON {
			return usageErrorf("-o %s: reports are written as json, or not at all (table)",
				a.output)
		}
		var err error
		for _, f := range []struct {
			name, text, example string
			into                *netip.AddrPort
		}{{"--listen", at, "[::]:" + strconv.Itoa(defaultReportPort), &o.Listen},
			{"--metrics", metrics, "127.0.0.1:9109", &o.Metrics},
			{"--ipfix", export, "192.0.2.1:4739", &o.IPFIX}} {
			if f.text == "" && f.into != &o.Listen {
				continue
			}
			if *f.into, err = netip.ParseAddrPort(f.text); err != nil {
				return usageErrorf("%s %q is not an address and port; write it like %s", f.name,
					f.text, f.example)
			}
		}
		for _, text := range allow {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return usageErrorf("--allow %q is not a prefix; write it like 2001:db8::/64", text)
			}
			o.Exporters = append(o.Exporters, prefix.Masked())
		}
		if !slices.Contains([]uint{8, 12, 16, 20}, o.PathTracing.Shift) {
			return usageErrorf("--path-tracing-shift %d: it is 8, 12, 16 or 20",
				o.PathTracing.Shift)
		}
		if o.Interval < time.Second || o.Interval > time.Hour {
			return usageErrorf("--ipfix-interval %s: it is 1s to 1h", o.Interval)
		}
		if o.Log, err = a.logger(format); err != nil {
			return err
		}
		if a.output == formatJSON {
			o.Lines = a.stdout
		}
		o.Socket = a.telemetrySocketOf(cmd)
		return listener.Run(cmd.Context(), o)
	}
	return cmd
}
