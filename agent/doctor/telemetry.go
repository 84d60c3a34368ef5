package doctor

import (
	"fmt"
	"slices"
	"strings"

	"sextant/config"
	"sextant/linux/facts"
	"sextant/packet/telemetry"
)

// uncounted are the queueing disciplines whose octets the kernel adds up only when it is asked: no
// program reads them.
var uncounted = []string{"mq", "pfifo_fast"}

// queuesUnknown finds interfaces of whose queues this node writes that it does not know them. What
// transits are asked for, the source says: they are looked at alike.
func queuesUnknown(n *config.Node, f *facts.Facts, _ string) (list []Finding) {
	t := n.Telemetry
	if t == nil {
		return nil
	}
	wanted := slices.Clone(t.Transit)
	if t.Source != nil && t.Source.Encoding != config.EncodingPathTracing &&
		t.Source.Instructions(nil)&telemetry.Queue != 0 {
		wanted = append(wanted, t.Source.Interfaces...)
	}
	slices.Sort(wanted)
	for _, name := range slices.Compact(wanted) {
		qdisc := f.Interfaces[name].Qdisc
		if !slices.Contains(uncounted, qdisc) {
			continue
		}
		list = append(list, Finding{"telemetry_queue", Risk, name,
			"the length of its queue is not known: telemetry has all ones in its place",
			"its queueing discipline is " + qdisc + ", which no program can read",
			"tc qdisc replace dev " + name + " root fq; or fq_codel, tbf, htb"})
	}
	return list
}

const minMTU = 1280 // of IPv6: RFC 8200 section 5

// telemetryRoom finds interfaces of a source by which a packet as long as the domain carries leaves
// without telemetry, or with that of some nodes.
func telemetryRoom(n *config.Node, f *facts.Facts, _ string) (list []Finding) {
	if n.Telemetry == nil || n.Telemetry.Source == nil {
		return nil
	}
	s := n.Telemetry.Source
	room := s.Room()
	for _, name := range s.Interfaces {
		i, known := f.Interfaces[name]
		if !known || i.MTU >= n.Domain.MTU+room || room == 0 {
			continue
		}
		mend := fmt.Sprintf("raise the MTU of all links from here to the sink to %d bytes, or "+
			"lower telemetry.source.hops", n.Domain.MTU+room)
		if left := i.MTU - room; left >= minMTU+n.Domain.Overhead {
			mend += fmt.Sprintf(", or domain.mtu on all nodes to %d", left)
		}
		list = append(list, Finding{"telemetry_room", Notable, name,
			fmt.Sprintf("a packet of %d bytes has no room for the %d bytes of telemetry by %s of "+
				"%d nodes", n.Domain.MTU, room, s.Encoding, s.Hops),
			fmt.Sprintf("its MTU is %d bytes, and domain.mtu says that packets have up to %d: "+
				"those go without", i.MTU, n.Domain.MTU), mend})
	}
	return list
}

// leftOut are the outcomes of packets and reports which tell of a wrong set-up.
var leftOut = []struct{ outcome, what, cause, mend string }{
	{"mtu", "packets got no telemetry, or not all of it",
		"with it they would have been longer than the MTU of the interface",
		"raise the MTU of all links between source and sink; sextant doctor at the source says " +
			"to how many bytes"},
	{"segmented", "packets got no telemetry",
		"they had been joined on arrival, and the kernel cuts them up later",
		"where they arrive: ethtool -K INTERFACE gro off"},
	{"hops", "packets did not get the telemetry of all nodes",
		"they passed more nodes than telemetry.source.hops says",
		"raise telemetry.source.hops at the source"},
	{"outside", "packets with telemetry came from outside of the domain",
		"their outer source is not in domain.infrastructure: it is forged, or a source of the " +
			"domain is not listed",
		"list the sources of outer headers in domain.infrastructure; what is forged is refused " +
			"here, and better kept out at the border"},
	{"broken", "packets had telemetry that contradicts itself",
		"another implementation, or a forger, wrote it; it was left as it is",
		"see one: sextant capture, and docs/reference/telemetry.md"},
	{"lost", "packets were not reported",
		"they came faster than the agent reads them",
		"lower telemetry.sink.limit, or report for fewer reasons"},
	{"limit", "packets were not reported",
		"more asked for it in a second than telemetry.sink.limit",
		"raise telemetry.sink.limit if the collector takes more, or report for fewer reasons"},
}

// telemetryLeftOut finds what was not written or not told.
func telemetryLeftOut(_ *config.Node, f *facts.Facts, _ string) (list []Finding) {
	if f.Running == nil {
		return nil
	}
	for _, of := range leftOut {
		if packets := f.Running.Telemetry[of.outcome]; packets > 0 {
			list = append(list, Finding{"telemetry_" + of.outcome, Risk, "telemetry",
				fmt.Sprintf("%d %s", packets, of.what), of.cause, of.mend})
		}
	}
	if reports := f.Running.LostReports; reports > 0 {
		list = append(list, Finding{"telemetry_unsent", Risk, "telemetry",
			fmt.Sprintf("%d reports or more were not sent, or refused", reports),
			"this machine has no route to a collector, or no process listens there",
			"see: ip route get COLLECTOR, and there: sextant telemetry exporters"})
	}
	return list
}

// telemetrySilent finds parts of the role that have had nothing to do yet.
func telemetrySilent(n *config.Node, f *facts.Facts, _ string) (list []Finding) {
	t := n.Telemetry
	if t == nil || f.Running == nil || f.Running.Telemetry == nil {
		return nil
	}
	did := func(outcomes ...string) (packets uint64) {
		for _, o := range outcomes {
			packets += f.Running.Telemetry[o]
		}
		return packets
	}
	if t.Source != nil && did("inserted", "carries", "segmented", "mtu") == 0 {
		list = append(list, Finding{"telemetry_source_silent", Notable,
			strings.Join(t.Source.Interfaces, ", "), "no packet got telemetry here yet",
			"no packet of an encapsulated flow was chosen, or none leaves by these interfaces",
			"see: sextant telemetry watch list, and ip -6 route get SID"})
	}
	if t.Sink != nil && did("removed", "discarded", "broken", "outside") == 0 {
		list = append(list, Finding{"telemetry_sink_silent", Notable,
			strings.Join(t.Sink.Interfaces, ", "), "no packet with telemetry has come here yet",
			"no source inserts it into packets to telemetry.sink.sids, or the domain's nodes " +
				"have different values of telemetry.port",
			"see at the source: sextant doctor; here: sextant config show"})
	}
	return list
}
