package model

// meanings say what the reasons mean to who operates a node, and what mends it.
var meanings = map[string]string{
	"truncated":       "a header does not fit before the end of the packet",
	"bad_ip_header":   "the IP header has a wrong version or length",
	"bad_checksum":    "the IPv4 header's checksum is wrong: damaged on the way, or forged",
	"bad_length":      "the IP header claims more bytes than the frame has",
	"extension_chain": "more than 8 IPv6 extension headers",
	"routing_header":  "a routing header with segments left, to an address that has no use for it",
	"ip_options": "an IPv4 source route, or options that can't be right; both are refused " +
		"(RFC 7126)",
	"fragment": "a fragment of an outer packet, or of one to a VIP that is neither TCP " +
		"nor UDP",
	"tiny_fragment": "a first fragment without the whole transport header, or a later one that " +
		"reaches into it: " +
		"an attempt to get past filters",
	"overlapping_fragment": "a later fragment of what the first has brought already: an attempt " +
		"to get past filters",
	"fragment_without_first": "a later fragment that came before the first, or when that was " +
		"forgotten; " +
		"routers must spread fragments by addresses alone",
	"bad_transport": "the TCP or UDP header is incomplete, or its lengths are wrong",
	"icmp_quote":    "an ICMP error that quotes no flow to the address that it came to",
	"srv6_from_outside": "a SID or a segment routing header from outside of the SR domain; " +
		"if it is inside, its source belongs into domain.infrastructure",
	"spoofed_source": "a source address of the SR domain, from outside of it; if it is inside, " +
		"the interface should be internal",
	"no_service": "the VIP has no service for this protocol and port; add one: sextant " +
		"service add",
	"new_connections": "more new connections than the service's newConnections lets through",
	"no_backend":      "the bucket has no backend that is up; see: sextant backend list",
	"no_route": "the routing table has no route to the next segment, or one that refuses; " +
		"see: ip -6 route get SID",
	"packet_too_big": "with the outer header it does not fit the path, and its sender could not " +
		"be told; " +
		"see domain.mtu and the interfaces' MTU",
	"below_min_mtu": "with the outer header, IPv6 of 1,280 bytes or less does not fit the path, " +
		"and no sender makes less " +
		"of it; raise the MTU of the domain's links",
	"unanswerable": "an echo request from an address that no host has, or from the VIP itself, " +
		"or in a frame to many: forged",
	"icmp_limit": "calls for an ICMP message, and too many of its kind were sent just now; " +
		"if they are packets that are too big, see domain.mtu, else somebody floods",
	"no_headroom":    "the driver leaves no room for the outer header in front of the packet",
	"outside_domain": "a packet to a SID whose source is not in domain.infrastructure",
	"bad_srh":        "a segment routing header with impossible fields, or a second one",
	"hmac_missing": "a packet to a SID without the HMAC that host.hmac.require wants; does its " +
		"edge sign, and is every source an edge?",
	"hmac_key": "an HMAC of a key that is not among host.hmac.keys; give hosts a new key " +
		"before edges sign with it",
	"hmac_wrong": "an HMAC that does not fit: another secret or form under the same id, changed " +
		"segments, " +
		"or a destination that is not the current segment",
	"segments_left": "a decapsulating SID that is not the last segment",
	"upper_layer":   "behind the outer headers there is not what the SID decapsulates",
	"hop_limit":     "the hop limit is used up here; traceroute does that, or a loop in routing",
	"ecn": "congestion was marked outside, and the inner packet can't carry the mark " +
		"(RFC 6040)",
	"no_path": "the SR policy has no valid candidate path; see: sextant protect show",
	"unknown_flow": "a numbered packet to End.MERGE of a flow that it was not told of; both " +
		"ends need the same flow ids",
	"duplicate": "another copy of the packet came first; this is what protection costs",
	"rogue": "the copy came too late for the egress's history; a larger one tells paths " +
		"of more different delay apart",
	"old_epoch": "numbered by the sender before it was restarted",
}

// Meaning explains the name of a drop reason in a few words; the name itself if it is not known.
func Meaning(reason string) string {
	if text := meanings[reason]; text != "" {
		return text
	}
	return reason
}
