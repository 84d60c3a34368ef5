package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sextant/config"
	"sextant/linux/facts"
)

// telling are the drop reasons that a fault in the set-up brings about, and how.
var telling = map[string][2]string{
	"outside_domain": {"packets to SIDs come from addresses outside of domain.infrastructure",
		"add the sources of all edges and hosts to domain.infrastructure on all nodes, unless " +
			"somebody sends SRv6 that should not"},
	"spoofed_source": {"packets from outside have a source of the SR domain",
		"if they are from inside, make their interface internal or mixed; else somebody forges " +
			"them"},
	"srv6_from_outside": {"SRv6 comes in by an interface that faces clients",
		"if its sender belongs to the domain, add it to domain.infrastructure; else somebody " +
			"sends what should not"},
	"no_route": {"the routing table has no way to a segment",
		"see: ip -6 route get SID, for the SIDs of sextant backend list"},
	"packet_too_big": {"packets do not fit the path with the outer header",
		"raise the MTU of the domain's links, or lower domain.mtu"},
	"below_min_mtu": {"with the outer header, IPv6 packets of 1,280 bytes or less do not fit the " +
		"path",
		"raise the MTU of the domain's links to 1,280 bytes and the encapsulation"},
	"no_headroom": {"the driver leaves no room for the outer header",
		"use mode: generic for the interface, or another driver"},
	"unknown_flow": {"numbered packets come with flow ids that merge.sids does not name for " +
		"their SID",
		"give both ends the same ids: sextant policy show at the head-end, " +
			"sextant merge list here"},
	"segments_left": {"a decapsulating SID is offered packets with candidates left",
		"let backends of services with candidates above 1 have End.OFFER"},
}

func agentState(_ *config.Node, f *facts.Facts, version string) []Finding {
	r := f.Running
	if r == nil {
		return []Finding{{"agent_down", Notable, "agent", "no agent answers",
			"what is loaded forwards on, but nothing adapts it", "start it: sextant agent -f FILE"}}
	}
	var list []Finding
	if version != "" && r.Version != version {
		list = append(list, Finding{"agent_version", Risk, "agent",
			"it is version " + r.Version + ", this command is " + version,
			"one was upgraded and not restarted",
			"restart the agent: packets are forwarded on meanwhile"})
	}
	for _, w := range r.Warnings {
		list = append(list, Finding{"agent_warning", Risk, "agent", w, "the agent warns of it",
			"see: sextant status"})
	}
	for _, b := range r.Failing {
		list = append(list, Finding{"backend_failing", Broken, b.Service + " " + b.Backend,
			"it fails its health check", b.Error,
			"see that server and host run: sextant doctor there"})
	}
	for _, key := range slices.Sorted(maps.Keys(r.Drops)) {
		role, reason, _ := strings.Cut(key, " ")
		if text, known := telling[reason]; known && r.Drops[key] > 0 {
			what := fmt.Sprintf("%d packets were dropped", r.Drops[key])
			list = append(list, Finding{"drops", Risk, role + " " + reason, what, text[0], text[1]})
		}
	}
	return list
}

// silentHost is what a host sees of a locator that nobody routes to it.
func silentHost(n *config.Node, f *facts.Facts, _ string) []Finding {
	if n.Host == nil || f.Running == nil || f.Running.SIDPackets > 0 {
		return nil
	}
	var sids []string
	for _, s := range n.Host.SIDs {
		sids = append(sids, s.Prefix.String())
	}
	return []Finding{{"locator_silent", Notable, strings.Join(sids, ", "),
		"no packet has come to a SID of this host yet",
		"no edge offers anything to it, or its router has no route for its locator to this host",
		"see on an edge: ip -6 route get SID, and sextant backend list"}}
}
