package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
)

// captureFlags are what capture is given.
type captureFlags struct {
	role, iface, service, vip string
	source, destination       string
	protocol, verdict, file   string
	count, bytes              int
	duration                  time.Duration
}

func (a *app) captureCommand() *cobra.Command {
	var flags captureFlags
	cmd := &cobra.Command{
		Use: "capture", Short: "Show packets as they arrive, with what the data plane did with " +
			"each",
		Long: `Show packets as they arrive, with what the data plane did with each: verdict, drop reason, service, and the chain
of hosts. With -w they are written as pcapng, with that as the comment of each packet; -w - writes to standard output,
for "| tcpdump -r -" or Wireshark.

While it runs, a link update replaces the programs by ones that also copy packets, on the same tables and with the
same counters; no packet is lost at either change, and without a capture there is no cost. tcpdump on this machine does
not see what XDP drops, sends or redirects; this does. Filters are applied behind the copying: on a busy node, some
packets may be missed, and their number is printed at the end. One capture can run at a time. Packets of an edge and of a host can be captured;
those of a node with the role strays alone are all seen by tcpdump.`,
		Example: `  sextant lab exec quickstart edge -- sextant capture --count 10
  sextant capture --service web --verdict drop -w drops.pcapng
  sextant capture --source [2001:db8:c::1]:0 --duration 10s`,
		Annotations: seeAlso("sextant explain", "sextant monitor"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.capture(cmd,
				flags)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&flags.file, "write", "w", "",
		"write pcapng to this file, or - for standard output")
	f.IntVar(&flags.count, "count", 0, "end after this many packets; 0 is never")
	f.DurationVar(&flags.duration, "duration", 0, "end after this time; 0 is never")
	f.IntVar(&flags.bytes, "bytes", 0, "copy at most this many bytes of each packet; with less "+
		"than its headers, its flow is not known")
	f.StringVar(&flags.iface, "interface", "", "only packets that arrive there")
	f.StringVar(&flags.service, "service", "", "only packets for this service")
	f.StringVar(&flags.vip, "vip", "", "only packets to this address")
	f.StringVar(&flags.source, "source", "",
		"only packets of clients with this address and port; port 0 is any")
	f.StringVar(&flags.destination, "destination", "",
		"only packets to this address and port; port 0 is any")
	f.StringVar(&flags.protocol, "protocol", "", "only tcp or udp")
	f.StringVar(&flags.verdict, "verdict", "",
		"only packets with this verdict: "+strings.Join(verdicts, ", "))
	complete(cmd, "protocol", "tcp", "udp")
	complete(cmd, "verdict", verdicts...)
	roleFlag(cmd, &flags.role)
	return cmd
}

// verdicts are the names in package forward.
var verdicts = []string{"pass", "transmit", "redirect", "hand_to_kernel", "drop"}

func (f captureFlags) wanted() (api.Capture, error) {
	want := api.Capture{
		Role: api.Role(f.role), Interface: f.iface, Service: f.service,
		Protocol: config.Protocol(f.protocol),
		Verdict:  f.verdict, Bytes: f.bytes,
	}
	if f.protocol != "" {
		if err := oneOf("protocol", f.protocol, []string{"tcp", "udp"}); err != nil {
			return want, err
		}
	}
	if f.verdict != "" {
		if err := oneOf("verdict", f.verdict, verdicts); err != nil {
			return want, err
		}
	}
	var err error
	if f.vip != "" {
		if want.VIP, err = netip.ParseAddr(f.vip); err != nil {
			return want, usageErrorf("--vip %q is not an address; write it like 2001:db8::80 or "+
				"192.0.2.80", f.vip)
		}
	}
	for flag, end := range map[string]struct {
		text   string
		target *netip.AddrPort
	}{"source": {f.source, &want.Source}, "destination": {f.destination, &want.Destination}} {
		if end.text == "" {
			continue
		}
		if *end.target, err = netip.ParseAddrPort(end.text); err != nil {
			return want, usageErrorf("--%s %q is not an address and port; write it like "+
				"[2001:db8::1]:443 or 192.0.2.1:0", flag, end.text)
		}
	}
	return want, nil
}

func (a *app) capture(cmd *cobra.Command, flags captureFlags) error {
	want, err := flags.wanted()
	if err != nil {
		return err
	}
	if err := a.refuseUnknownService(cmd, want); err != nil {
		return err
	}
	if flags.file == "" {
		asJSON, err := a.streams()
		if err != nil {
			return err
		}
		return a.follows(cmd, want, flags,
			func(p api.CapturedPacket) error { return a.showPacket(p, asJSON) })
	}
	return a.writePackets(flags.file, func(w io.Writer) error {
		name := cmp.Or(flags.iface, "any")
		file, err := newPacketFile(w, "sextant capture", name)
		if err != nil {
			return err
		}
		err = a.follows(cmd, want, flags, func(p api.CapturedPacket) error {
			e := p.Explanation
			seen := packet{Time: p.Time, Interface: e.Interface, Frame: p.Frame, Length: e.Bytes,
				Comment: packetComment(e)}
			if err := file.write(seen); err != nil {
				return err
			}
			return file.flush() // a reader behind a pipe sees each at once
		})
		return errors.Join(err, file.flush())
	})
}

// refuseUnknownService refuses to wait for packets that can't come.
func (a *app) refuseUnknownService(cmd *cobra.Command, want api.Capture) error {
	if want.Service == "" {
		return nil
	}
	ctx, cancel := a.withTimeout(cmd)
	defer cancel()
	_, err := a.findServices(ctx, want.Service, want.Role)
	return err
}

// follows captures until it is enough.
func (a *app) follows(cmd *cobra.Command, want api.Capture, flags captureFlags,
	each func(api.CapturedPacket) error) error {
	ctx := cmd.Context()
	if flags.duration > 0 {
		limited, cancel := context.WithTimeout(ctx, flags.duration)
		defer cancel()
		ctx = limited
	}
	seen, lost := 0, uint64(0)
	err := a.agent().Capture(ctx, want, func(p api.CapturedPacket) error {
		lost = p.Lost
		if err := each(p); err != nil {
			return err
		}
		if seen++; seen == flags.count {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) && ctx.Err() == nil {
		return err
	}
	if !a.quiet {
		a.say("%s captured, %d lost", plural(uint64(seen), "packet"), lost)
	}
	return nil
}

func (a *app) showPacket(p api.CapturedPacket, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(p)
	}
	e := p.Explanation
	_, err := fmt.Fprintf(a.stdout, "%s %s %s, %s: %s\n", p.Time.Format("15:04:05.000000"),
		e.Interface, flowText(e.Flow),
		plural(uint64(e.Bytes), "byte"), packetComment(e))
	return err
}

// packetComment is all that is known of what became of a packet, in one line.
func packetComment(e api.Explanation) string {
	words := []string{e.Verdict}
	if e.Reason != "" {
		words[0] += " " + e.Reason
	}
	if e.Service != "" {
		words = append(words, "service "+e.Service)
	}
	if e.SID != nil {
		words = append(words, e.SID.Behavior)
	}
	if words = append(words, e.Why); len(e.Telemetry) > 0 {
		words = append(words, carriedText(e.Telemetry))
	}
	return strings.Join(words, ", ")
}
