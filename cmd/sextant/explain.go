package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sextant/agent/api"
	"sextant/config"
	"sextant/packet/lists"
)

const explainLong = `Say what the data plane does with packets, and why: bucket, chain, the host
that gets it, next hop and bytes, or why it is dropped.

Give a flow, SOURCE and DESTINATION with their ports, or packets from a capture file with -r. The
answer comes from the loaded program itself, run in the kernel's test mode on the tables that it
forwards by, with counters and memories of its own: no packet is sent, nothing is counted, no
acceptance policy learns. Packets of a file meet these tables one after the other, as if they came
now. On a host, a flow is explained as an offer to its first End.OFFER SID with one candidate left.
A host with role flowlets tells the path that the next packet of a flow takes, and what it knows of
all paths of the group. A head-end tells the policy, its active path and the segment lists, with
each copy as it leaves. An egress tells which copy of a packet goes on; a flow is explained there
for every protected flow, as the copies of its next packet by each path: which of them it takes, a
head-end's rules say. Beside a router (role strays), a flow is explained for each VRF, at its first
SID: what the VRF is asked for, whether the connection is here or the packet is a stray, and where
the kernel's routes send it from the backup device; the rest is left to the kernel, and why.

The chain tells the flow's history: current candidates, then those who owned the flow's bucket
before (past, with the time since they left), then those who would own it if others were up or down
(reserve). With --write, the packets that leave are written to a file, which the next node can
explain.`

// explainFlags are what explain is given besides the flow.
type explainFlags struct {
	protocol, role, iface string
	read, write           string
	limit                 int
}

func (a *app) explainCommand() *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain [SOURCE DESTINATION]",
		Short: "Explain what the data plane does with a flow or captured packets",
		Long:  explainLong,
		Example: `  sextant lab exec quickstart edge -- sextant explain [2001:db8:c::1]:40000 [2001:db8:80::80]:80
  sextant lab exec quickstart web1 -- sextant explain 203.0.113.7:40000 198.51.100.80:80
  sextant explain -r capture.pcapng -o wide`,
		Annotations: seeAlso("sextant capture", "sextant service show",
			"sextant backend list"),
		Args: takes("[SOURCE", "[DESTINATION"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.explain(cmd,
				args, flags)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&flags.read, "read", "r", "",
		"explain the packets of a pcap or pcapng file, or - for standard input")
	f.StringVarP(&flags.write, "write", "w", "",
		"write the packets that leave to a pcapng file, or - for standard output")
	f.IntVar(&flags.limit, "limit", 1000, "how many packets of the file are explained")
	f.StringVar(&flags.iface, "interface", "",
		"where the packets arrive; the first that faces clients if none is named")
	flags.ofFlow(cmd)
	roles, text := config.ExplainedRoles()
	f.StringVar(&flags.role, "role", "", text+"; the first of these that the node is")
	complete(cmd, "role", roles...)
	return cmd
}

func (f *explainFlags) ofFlow(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.protocol, "protocol", "tcp", "tcp or udp")
	complete(cmd, "protocol", "tcp", "udp")
}

func (a *app) explain(cmd *cobra.Command, args []string, flags explainFlags) error {
	question := api.Question{Role: api.Role(flags.role), Interface: flags.iface}
	frames, err := a.toExplain(&question, args, flags)
	if err != nil {
		return err
	}
	ctx, cancel := a.withTimeout(cmd)
	defer cancel()
	list, err := a.explainAll(ctx, question, frames)
	if err != nil {
		return err
	}
	if flags.write != "" {
		if err := a.writeLeaving(flags.write, list); err != nil || flags.write == "-" {
			return err
		}
	}
	return a.show(a.explanationView(list, question.Flow))
}

// toExplain reads what the command line names: a flow, which goes into the question, or frames.
func (a *app) toExplain(question *api.Question, args []string,
	flags explainFlags) ([]api.Frame, error) {
	if flags.read != "" {
		if len(args) > 0 {
			return nil, usageErrorf("both a flow and a file are given; leave one out")
		}
		return a.readFrames(flags.read, flags.limit)
	}
	if len(args) < 2 {
		return nil, usageErrorf("what is to be explained is not said; give SOURCE and " +
			"DESTINATION, or a file with -r")
	}
	f, err := parseFlow(args, flags.protocol)
	question.Flow = &f
	return nil, err
}

// explainAll asks in as many questions as it takes.
func (a *app) explainAll(ctx context.Context, question api.Question,
	frames []api.Frame) ([]api.Explanation, error) {
	agent := a.agent()
	if question.Flow != nil {
		return agent.Explain(ctx, question)
	}
	list := []api.Explanation{}
	for some := range slices.Chunk(frames, api.ExplainMax) {
		question.Frames = some
		explained, err := agent.Explain(ctx, question)
		if err != nil {
			return nil, err
		}
		for i := range explained {
			explained[i].Number += len(list)
		}
		list = append(list, explained...)
	}
	return list, nil
}

// writeLeaving writes the frames that leave the node.
func (a *app) writeLeaving(name string, list []api.Explanation) error {
	return a.writePackets(name, func(w io.Writer) error {
		iface := "any"
		if len(list) > 0 {
			iface = list[0].Interface
		}
		file, err := newPacketFile(w, "sextant explain", iface)
		if err != nil {
			return err
		}
		for _, e := range list {
			for _, text := range leavingFrames(e) {
				frame, err := hex.DecodeString(text)
				if err != nil || len(frame) == 0 {
					continue // it was dropped, or went to the kernel as it came
				}
				if err := file.write(packet{Time: time.Unix(0, 0), Interface: e.Interface,
					Frame: frame, Comment: e.Why}); err != nil {
					return err
				}
			}
		}
		return file.flush()
	})
}

// leavingFrames are the frames of a packet, in hexadecimal: one, or one a copy.
func leavingFrames(e api.Explanation) []string {
	if len(e.Copies) < 2 {
		return []string{e.Frame}
	}
	return lists.Map(e.Copies, func(c api.ExplainedList) string { return c.Frame })
}

func (a *app) explanationView(list []api.Explanation, flow *api.Flow) view {
	v := view{value: api.List[api.Explanation]{Items: list}}
	for _, e := range list {
		v.names = append(v.names, e.Verdict)
	}
	if flow != nil && len(list) > 0 {
		v.prose = flowProse(list, a.output == formatWide)
		if trace := list[0].Trace; trace != nil {
			v.tables = tables{chainTable(*trace)}
		}
		return v
	}
	t := table{
		columns: []string{"PACKET", "FLOW", "SERVICE", "VERDICT", "REASON", "OFFER", "NEXT-HOP"},
		wide:    []string{"BYTES", "BUCKET", "PATH", "TELEMETRY", "WHY"},
	}
	for _, e := range list {
		t.rows = append(t.rows, []string{
			count(e.Number), flowText(e.Flow), orDash(serviceText(e)), e.Verdict, orDash(e.Reason),
			orDash(offerText(e)), hopText(e),
			count(e.Bytes), known(e.Trace, func(t api.Trace) string { return count(t.Bucket) }),
			segmentsText(e.Path),
			orDash(carriedText(e.Telemetry)), e.Why,
		})
	}
	v.tables = tables{t}
	return v
}

func flowText(f *api.Flow) string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%s %s -> %s", f.Protocol, f.Source, f.Destination)
}

// serviceText is the service of a packet, or what it has instead: a policy, a SID, or a VRF.
func serviceText(e api.Explanation) string {
	switch {
	case e.Policy != nil:
		return e.Policy.Name
	case e.Role == api.Merge && e.SID != nil:
		return e.SID.Prefix.String()
	case e.VRF != nil:
		return e.VRF.Name
	}
	return e.Service
}

// offerText is who gets an edge's packet, what a host made of the offer, the segment lists that a
// head-end's packet takes, or which copy came to an egress.
func offerText(e api.Explanation) string {
	switch {
	case e.Offer != "":
		return e.Offer
	case e.Copy != nil:
		return fmt.Sprintf("flow %d number %d", e.Copy.Flow, e.Copy.Number)
	case len(e.Copies) > 0:
		names := lists.Map(e.Copies, func(c api.ExplainedList) string { return c.List })
		return strings.Join(names, ",")
	}
	return strings.Join(e.OfferedTo, ",")
}

func hopText(e api.Explanation) string {
	if e.NextHop == nil {
		return "-"
	}
	return e.NextHop.Destination + "%" + orDash(e.NextHop.Interface)
}

// flowProse explains the packets of one flow; wide, with the bytes that leave.
func flowProse(list []api.Explanation, wide bool) string {
	var prose strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&prose, "%-14s %s\n", what, fmt.Sprintf(format, args...))
	}
	first := list[0]
	line("Flow:", "%s", flowText(first.Flow))
	if t := first.Trace; t != nil {
		line("Service:", "%s, policy %s, table %s", t.Service, t.Policy, t.Table)
		line("Bucket:", "%d of %d", t.Bucket, t.Buckets)
		line("Flow label:", "0x%05x", t.FlowLabel)
		if t.Shadow != "" {
			line("Strays:", "to %s, the owner before the latest change", t.Shadow)
		}
	} else if first.Service != "" {
		line("Service:", "%s", first.Service)
	}
	if first.SID != nil && first.VRF == nil && first.Copy == nil {
		line("SID:", "%s, %s", first.SID.Prefix, first.SID.Behavior)
	}
	if p := first.Policy; p != nil {
		line("Policy:", "%s, for %s", p.Name, p.Rule)
		line("Active path:", "%s, action %s", orDash(p.Path), p.Action)
	}
	if c := first.Flowlet; c != nil {
		line("Group:", "%s, choice %s", c.Group, c.Choice)
		for _, p := range c.Paths {
			line("  path "+p.Name, "%s", flowletPathText(p))
		}
	}
	owner := "the " + string(first.Role) + "'s"
	if first.Role == api.Strays || first.Role == api.Flowlets {
		owner = "the role " + string(first.Role) + "'"
	}
	line("Arrives at:", "%s, %s program %s", first.Interface, owner, first.Program)
	protected := ""
	for _, e := range list {
		if at := protectedFlow(e); at != protected {
			protected = at
			line("Protected:", "%s", at)
		}
		line(strings.ToUpper(e.Packet[:1])+e.Packet[1:]+":", "%s", e.Why)
		if e.VRF != nil && e.SID != nil {
			line("  at SID", "%s, %s, into VRF %s; its strays are received on %s", e.SID.Prefix,
				e.SID.Behavior, e.VRF.Name, e.VRF.Backup)
		}
		for _, c := range e.Copies {
			line("  list "+c.List, "%s; %s%s", segmentsText(c.Segments), c.Verdict, copyHopText(c))
		}
		if e.Way != nil {
			line("  way", "%s", wayText(e.Way))
		}
		if len(e.Path) > 0 {
			line("  path", "%s", segmentsText(e.Path))
		}
		if len(e.Header) > 0 {
			line("  header", "%s", headerText(e.Header))
			for _, h := range e.Header {
				line("  then", "%s: %s", sidName(h), h.Does)
			}
		}
		if c := e.OtherCopy; c != nil {
			line("  second copy", "%s, cost %d", strings.Join(c.Links, " "), c.Cost)
			line("  its header", "%s", headerText(c.Header))
		}
		if e.NextHop != nil {
			line("  next hop", "%s, by %s", e.NextHop.Destination, orDash(e.NextHop.Interface))
		}
		if e.Frame != "" {
			line("  leaves", "with %d bytes, came with %d", len(e.Frame)/2, e.Bytes)
		}
		if wide && e.Frame != "" {
			line("  bytes", "%s", e.Frame)
		}
	}
	return prose.String()
}

// wayText says how an edge came to the path of a packet.
func wayText(w *api.Way) string {
	what := map[config.WayMetric]string{config.ByIGP: "IGP metric", config.ByDelay: "delay",
		config.ByTelemetry: "congestion"}[w.By]
	text := fmt.Sprintf("to %s by least %s", orDash(w.Node), what)
	if len(w.Avoid) > 0 {
		text += ", not over " + strings.Join(w.Avoid, ", ")
	}
	if len(w.Links) > 0 {
		text += fmt.Sprintf(": %s, cost %d", strings.Join(w.Links, " "), w.Cost)
	} else {
		text += fmt.Sprintf(": routing's own, cost %d", w.Cost)
	}
	text += fmt.Sprintf(" (best %d, routing's own %d)", w.Least, w.Own)
	switch {
	case w.Copied:
		text += ", and a second copy over the other path"
	case w.Paths > 1:
		text += fmt.Sprintf(", one of %d paths over which flows are spread", w.Paths)
	}
	text += fmt.Sprintf("; computed %.0f s ago", w.AgeSeconds)
	if w.Problem != "" {
		text += "; not as wanted: " + w.Problem
	}
	return text
}

// headerText names each SID of an edge's outer header behind its bytes.
func headerText(header []api.HeaderSID) string {
	sids := lists.Map(header, func(h api.HeaderSID) string { return h.Bytes + " " + sidName(h) })
	return strings.Join(sids, ", ")
}

// sidName is whose a SID in a header is.
func sidName(h api.HeaderSID) string {
	whose := h.Role
	if h.Backend != "" {
		whose = h.Backend
	} else if h.SID.IsValid() {
		whose += " " + h.SID.String()
	}
	if h.Name != "" {
		whose += " (" + h.Name + ")"
	}
	return whose
}

// protectedFlow is that of an egress to which a copy belongs.
func protectedFlow(e api.Explanation) string {
	if e.Copy == nil || e.SID == nil {
		return ""
	}
	return fmt.Sprintf("flows %s at %s, %s", orDash(config.FormatFlows(e.Copy.Flows)), e.SID.Prefix,
		e.SID.Behavior)
}

// copyHopText is where a copy goes.
func copyHopText(c api.ExplainedList) string {
	switch {
	case c.Reason != "":
		return " (" + c.Reason + ")"
	case c.NextHop != nil:
		return fmt.Sprintf(" to %s, by %s, with %d bytes", c.NextHop.Destination,
			orDash(c.NextHop.Interface), len(c.Frame)/2)
	}
	return ""
}

func chainTable(t api.Trace) table {
	rows := table{title: "Chain:", columns: []string{"PLACE", "BACKEND", "SID", "ROLE", "STATE",
		"LEFT"}}
	ordered := slices.ContainsFunc(t.Chain,
		func(p api.Place) bool { return p.Site != "" || p.Order != nil })
	if ordered {
		rows.columns = append(rows.columns, "SITE", "ORDER")
	}
	for i, p := range t.Chain {
		left := known(p.LeftSeconds, func(seconds float64) string {
			return time.Duration(seconds*float64(time.Second)).Round(time.Second).String() + " ago"
		})
		rows.add(i+1, p.Backend, p.SID, p.Role, p.State, left)
		if ordered {
			rows.rows[i] = append(rows.rows[i], orDash(p.Site), orDash(orderText(p.Order)))
		}
	}
	return rows
}

// orderText says why a candidate is at its place.
func orderText(o *api.PlaceOrder) string {
	if o == nil {
		return ""
	}
	text := fmt.Sprintf("rank %d", o.Rank)
	if o.Remote {
		text += ", another site"
	}
	if o.Path > 0 {
		text += fmt.Sprintf(", path %.0f of %.0f %s old", o.Path, o.LeastPath,
			secondsText(o.PathAgeSeconds))
	}
	if o.Load > 0 {
		text += fmt.Sprintf(", load %.2f of mean %.2f %s old", o.Load, o.MeanLoad,
			secondsText(o.LoadAgeSeconds))
	}
	return text
}

func secondsText(seconds float64) string { return fmt.Sprintf("%.1f s", seconds) }

// segmentsText writes segments in the order of travel.
func segmentsText(segments []netip.Addr) string { return orDash(lists.Join(segments, ", ")) }

// flowletPathText is what a host knows of a path.
func flowletPathText(p api.FlowletPath) string {
	text := fmt.Sprintf("%s, %d bytes under way", p.SID, p.UnderWayBytes)
	if p.RoundTripMs > 0 {
		text += fmt.Sprintf(", round trip %.3g ms", p.RoundTripMs)
	}
	if p.LostPermille >= 1 {
		text += fmt.Sprintf(", %.0f of 1000 segments sent again", p.LostPermille)
	}
	if !p.Up {
		text += ", down: probes don't come back"
	}
	return text
}
