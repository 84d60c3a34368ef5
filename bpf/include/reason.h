// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Why a packet was not forwarded or delivered, in the order in which a packet can meet the
 * reasons: the one definition of them. The loader reads names from the object's type information
 * (BTF); datapath/model/reason_gen.go makes the Go constants of it. The comment is the meaning that
 * explain, captures and docs/reference/dataplane.md show, one sentence without a full stop. Where
 * a fault of the set-up can give the reason, Cause and Remedy are what sextant doctor says of it.
 */
#pragma once

enum drop_reason {
	/* not dropped */
	REASON_NONE = 0,
	/* a header does not fit before the end of the packet */
	REASON_TRUNCATED,
	/* the IP header has a wrong version or length */
	REASON_BAD_IP_HEADER,
	/* the IPv4 header's checksum is wrong: damaged on the way, or forged */
	REASON_BAD_CHECKSUM,
	/* the IP header claims more bytes than the frame has */
	REASON_BAD_LENGTH,
	/* more than 8 IPv6 extension headers */
	REASON_EXTENSION_CHAIN,
	/* a routing header with segments left, to an address that has no use for it */
	REASON_ROUTING_HEADER,
	/* an IPv4 source route, or options that can't be right; both are refused (RFC 7126) */
	REASON_IP_OPTIONS,
	/* a fragment of an outer packet, or of one to a VIP that is neither TCP nor UDP */
	REASON_FRAGMENT,
	/*
	 * a first fragment without the whole transport header, or a later one that reaches into it:
	 * an attempt to get past filters
	 */
	REASON_TINY_FRAGMENT,
	/* a later fragment of what the first has brought already: an attempt to get past filters */
	REASON_OVERLAPPING_FRAGMENT,
	/*
	 * a later fragment that came before the first, or when that was forgotten; routers must
	 * spread fragments by addresses alone
	 */
	REASON_FRAGMENT_WITHOUT_FIRST,
	/* the TCP or UDP header is incomplete, or its lengths are wrong */
	REASON_BAD_TRANSPORT,
	/* an ICMP error that quotes no flow to the address that it came to */
	REASON_ICMP_QUOTE,
	/*
	 * a SID or a segment routing header from outside of the SR domain; if it is inside, its
	 * source belongs into domain.infrastructure
	 * Cause: SRv6 comes in by an interface that faces clients
	 * Remedy: if its sender belongs to the domain, add it to domain.infrastructure; else
	 * its packets are an attack
	 */
	REASON_SRV6_FROM_OUTSIDE,
	/*
	 * a source address of the SR domain, from outside of it; if it is inside, the interface
	 * should be internal
	 * Cause: packets from outside have a source of the SR domain
	 * Remedy: if they are from inside, make their interface internal or mixed; else
	 * they are forged
	 */
	REASON_SPOOFED_SOURCE,
	/* the VIP has no service for this protocol and port; add one: sextant service add */
	REASON_NO_SERVICE,
	/* more new connections than the service's newConnections lets through */
	REASON_NEW_CONNECTIONS,
	/* the bucket has no backend that is up; see: sextant backend list */
	REASON_NO_BACKEND,
	/*
	 * the routing table has no route to the next segment, or one that refuses; see: ip -6 route
	 * get SID
	 * Cause: the routing table has no way to a segment
	 * Remedy: see: ip -6 route get SID, for the SIDs of sextant backend list
	 */
	REASON_NO_ROUTE,
	/*
	 * with the outer header it does not fit the path, and its sender could not be told; see
	 * domain.mtu and the interfaces' MTU
	 * Cause: packets do not fit the path with the outer header
	 * Remedy: raise the MTU of the domain's links, or lower domain.mtu
	 */
	REASON_PACKET_TOO_BIG,
	/*
	 * with the outer header, IPv6 of 1,280 bytes or less does not fit the path, and no sender
	 * makes less of it; raise the MTU of the domain's links
	 * Cause: with the outer header, IPv6 packets of 1,280 bytes or less do not fit the path
	 * Remedy: raise the MTU of the domain's links to 1,280 bytes and the encapsulation
	 */
	REASON_BELOW_MIN_MTU,
	/*
	 * an echo request from an address that no host has, or from the VIP itself, or in a frame
	 * to many: forged
	 */
	REASON_UNANSWERABLE,
	/*
	 * calls for an ICMP message, and too many of its kind were sent just now; if they are
	 * packets that are too big, see domain.mtu, else it is a flood
	 */
	REASON_ICMP_LIMIT,
	/*
	 * the driver leaves no room for the outer header in front of the packet
	 * Cause: the driver leaves no room for the outer header
	 * Remedy: use mode: generic for the interface, or another driver
	 */
	REASON_NO_HEADROOM,
	/*
	 * a packet to a SID whose source is not in domain.infrastructure
	 * Cause: packets to SIDs come from addresses outside of domain.infrastructure
	 * Remedy: add the sources of all edges and hosts to domain.infrastructure on all nodes,
	 * unless their senders are no part of the domain
	 */
	REASON_OUTSIDE_DOMAIN,
	/* a segment routing header with impossible fields, or a second one */
	REASON_BAD_SRH,
	/*
	 * a packet to a SID without the HMAC that host.hmac.require wants; does its edge sign, and
	 * is every source an edge?
	 */
	REASON_HMAC_MISSING,
	/*
	 * an HMAC of a key that is not among host.hmac.keys; give hosts a new key before edges sign
	 * with it
	 */
	REASON_HMAC_KEY,
	/*
	 * an HMAC that does not fit: another secret or form under the same id, changed segments, or
	 * a destination that is not the current segment
	 */
	REASON_HMAC_WRONG,
	/*
	 * a decapsulating SID that is not the last segment
	 * Cause: a decapsulating SID is offered packets with candidates left
	 * Remedy: let backends of services with candidates above 1 have End.OFFER
	 */
	REASON_SEGMENTS_LEFT,
	/* behind the outer headers there is not what the SID decapsulates */
	REASON_UPPER_LAYER,
	/* the hop limit is used up here; traceroute does that, or a loop in routing */
	REASON_HOP_LIMIT,
	/* congestion was marked outside, and the inner packet can't carry the mark (RFC 6040) */
	REASON_ECN,
	/* the SR policy has no valid candidate path; see: sextant protect show */
	REASON_NO_PATH,
	/*
	 * a numbered packet to End.MERGE of a flow that it was not told of; both ends need the same
	 * flow ids
	 * Cause: numbered packets come with flow ids that merge.sids does not name for their SID
	 * Remedy: give both ends the same ids: sextant policy show at the head-end, sextant merge
	 * list here
	 */
	REASON_UNKNOWN_FLOW,
	/* another copy of the packet came first; this is what protection costs */
	REASON_DUPLICATE,
	/*
	 * the copy came too late for the egress's history; a larger one tells paths of more
	 * different delay apart
	 */
	REASON_ROGUE,
	/* numbered by the sender before it was restarted */
	REASON_OLD_EPOCH,
	/* a probe of in-band telemetry (INT with its D bit set) at its sink, where probes end */
	REASON_TELEMETRY_PROBE,
	REASON_COUNT,
};
