package model

// Verdict says where a processed frame goes. The zero value is Pass.
type Verdict uint8

// The verdicts.
const (
	// Pass gives the frame to the kernel as it came.
	Pass Verdict = iota
	// Transmit sends the rewritten frame out of the interface it came in by.
	Transmit
	// Redirect sends the rewritten frame out of another interface.
	Redirect
	// HandToKernel gives the rewritten frame to the kernel: to route it, to
	// answer it, or (after a host took it) to deliver it.
	HandToKernel
	// Drop ends the packet's life; Reason says why.
	Drop
)

var verdictNames = [...]string{
	Pass:         "pass",
	Transmit:     "transmit",
	Redirect:     "redirect",
	HandToKernel: "hand_to_kernel",
	Drop:         "drop",
}

// String returns the verdict in lower snake case.
func (v Verdict) String() string { return name(verdictNames[:], int(v)) }

// Reason is the counter under which a packet is counted. Packets are dropped
// for these reasons only; ReasonHopLimit, ReasonBelowMinMTU, and ReasonPacketTooBig on a host which
// passes a packet on, also count one
// that is answered: by the edge, or by the kernel, which is given the packet.
type Reason uint8

// The reasons, in the order in which a packet can meet them.
const (
	// ReasonNone is that of a packet to which nothing happened.
	ReasonNone Reason = iota
	// ReasonTruncated: a header does not fit before the end of the packet.
	ReasonTruncated
	// ReasonBadIPHeader: the version is not the EtherType's, or the IPv4 header
	// is said to be shorter than 20 bytes.
	ReasonBadIPHeader
	// ReasonBadChecksum: an IPv4 header that does not have the sum that it says.
	ReasonBadChecksum
	// ReasonBadLength: the IP header claims more bytes than there are.
	ReasonBadLength
	// ReasonExtensionChain: more IPv6 extension headers than are walked.
	ReasonExtensionChain
	// ReasonRoutingHeader: a routing header with segments left that is not for
	// this node.
	ReasonRoutingHeader
	// ReasonIPOptions: an IPv4 source route to a VIP, or options that cannot be right.
	ReasonIPOptions
	// ReasonFragment: a fragment of an outer packet, or of one for a VIP that is neither TCP nor
	// UDP.
	ReasonFragment
	// ReasonTinyFragment: a first fragment without the whole transport header, or a later one that
	// reaches into it.
	ReasonTinyFragment
	// ReasonOverlappingFragment: a later fragment of what the first has brought already.
	ReasonOverlappingFragment
	// ReasonFragmentWithoutFirst: a later fragment that came before the first, or when that was
	// forgotten.
	ReasonFragmentWithoutFirst
	// ReasonBadTransport: a TCP or UDP header that cannot be right.
	ReasonBadTransport
	// ReasonICMPQuote: an ICMP error which quotes no flow to the address that it came to.
	ReasonICMPQuote
	// ReasonSRv6FromOutside: a SID as the destination, or an SRH, from outside of
	// the SR domain.
	ReasonSRv6FromOutside
	// ReasonSpoofedSource: a source of the SR domain from outside of it.
	ReasonSpoofedSource
	// ReasonNoService: a VIP, but none of its services.
	ReasonNoService
	// ReasonNewConnections: more new connections than the service may get.
	ReasonNewConnections
	// ReasonNoBackend: a service without a backend.
	ReasonNoBackend
	// ReasonNoRoute: no route to the (next) backend.
	ReasonNoRoute
	// ReasonPacketTooBig: the outer packet exceeds the path MTU, and the edge could not say so; on
	// a host that passes it on, the kernel says it.
	ReasonPacketTooBig
	// ReasonBelowMinMTU: IPv6 of 1,280 bytes or less does not fit the path. Its sender is told, if
	// it can be.
	ReasonBelowMinMTU
	// ReasonUnanswerable: an echo request of which the source, or the frame's destination, is not
	// one host.
	ReasonUnanswerable
	// ReasonICMPLimit: calls for an ICMP message, of which too many were sent just now. The model
	// has no limit.
	ReasonICMPLimit
	// ReasonOutsideDomain: SRv6 to a local SID from a source that is not of the
	// infrastructure.
	ReasonOutsideDomain
	// ReasonBadSRH: a segment routing header that contradicts itself, or a
	// second one.
	ReasonBadSRH
	// ReasonHMACMissing: no HMAC TLV where one has to be.
	ReasonHMACMissing
	// ReasonHMACKey: an HMAC of a key that is not known.
	ReasonHMACKey
	// ReasonHMACWrong: an HMAC that does not fit the source, the segments and the key, or a
	// destination that is not the current segment.
	ReasonHMACWrong
	// ReasonSegmentsLeft: a decapsulating SID which is not the last segment.
	ReasonSegmentsLeft
	// ReasonUpperLayer: nothing that the SID's behaviour can decapsulate.
	ReasonUpperLayer
	// ReasonHopLimit: the hop limit ended here. Its sender is told, unless it is a stray.
	ReasonHopLimit
	// ReasonECN: congestion was marked on a packet whose transport does not
	// understand the mark (RFC 6040 section 4.2).
	ReasonECN
	// ReasonNoPath: the SR policy has no valid candidate path, or lost it while the packet was
	// copied.
	ReasonNoPath
	// ReasonUnknownFlow: a number of a flow that End.MERGE was not told of.
	ReasonUnknownFlow
	// ReasonDuplicate: another copy of the packet came first.
	ReasonDuplicate
	// ReasonRogue: a number too far from those that End.MERGE remembers.
	ReasonRogue
	// ReasonOldEpoch: a number of the sender's earlier life.
	ReasonOldEpoch
)

var reasonNames = [...]string{
	ReasonNone:                 "none",
	ReasonTruncated:            "truncated",
	ReasonBadIPHeader:          "bad_ip_header",
	ReasonBadChecksum:          "bad_checksum",
	ReasonBadLength:            "bad_length",
	ReasonExtensionChain:       "extension_chain",
	ReasonRoutingHeader:        "routing_header",
	ReasonIPOptions:            "ip_options",
	ReasonFragment:             "fragment",
	ReasonTinyFragment:         "tiny_fragment",
	ReasonOverlappingFragment:  "overlapping_fragment",
	ReasonFragmentWithoutFirst: "fragment_without_first",
	ReasonBadTransport:         "bad_transport",
	ReasonICMPQuote:            "icmp_quote",
	ReasonSRv6FromOutside:      "srv6_from_outside",
	ReasonSpoofedSource:        "spoofed_source",
	ReasonNoService:            "no_service",
	ReasonNewConnections:       "new_connections",
	ReasonNoBackend:            "no_backend",
	ReasonNoRoute:              "no_route",
	ReasonPacketTooBig:         "packet_too_big",
	ReasonBelowMinMTU:          "below_min_mtu",
	ReasonUnanswerable:         "unanswerable",
	ReasonICMPLimit:            "icmp_limit",
	ReasonOutsideDomain:        "outside_domain",
	ReasonBadSRH:               "bad_srh",
	ReasonHMACMissing:          "hmac_missing",
	ReasonHMACKey:              "hmac_key",
	ReasonHMACWrong:            "hmac_wrong",
	ReasonSegmentsLeft:         "segments_left",
	ReasonUpperLayer:           "upper_layer",
	ReasonHopLimit:             "hop_limit",
	ReasonECN:                  "ecn",
	ReasonNoPath:               "no_path",
	ReasonUnknownFlow:          "unknown_flow",
	ReasonDuplicate:            "duplicate",
	ReasonRogue:                "rogue",
	ReasonOldEpoch:             "old_epoch",
}

// String returns the reason in lower snake case, as counters and logs show it.
func (r Reason) String() string { return name(reasonNames[:], int(r)) }

// name returns the name of a value, and "unknown" for one that has none.
func name(names []string, value int) string {
	if value >= len(names) {
		return "unknown"
	}
	return names[value]
}
