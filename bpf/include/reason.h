// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Why a packet was not forwarded or delivered. The one list, for C and Go: the
 * loader reads the names from the object's type information (BTF), so a reason
 * that is added here has a name in every output at once.
 * What each one means, step by step: docs/reference/dataplane.md.
 */
#pragma once

enum drop_reason {
	REASON_NONE = 0, /* not dropped */
	REASON_TRUNCATED, /* a header does not fit before the end of the frame or packet */
	REASON_BAD_IP_HEADER, /* wrong version or header length */
	REASON_BAD_CHECKSUM, /* the IPv4 header does not have the sum that it says */
	REASON_BAD_LENGTH, /* the IP length field contradicts the frame */
	REASON_EXTENSION_CHAIN, /* more IPv6 extension headers than are walked */
	REASON_ROUTING_HEADER, /* a routing header with segments left, addressed to a VIP or SID
				  that has no use for it */
	REASON_IP_OPTIONS, /* an IPv4 source route to a VIP, or options that can't be right */
	REASON_FRAGMENT, /* a fragment of an outer packet, or of one for a VIP that is neither TCP
			    nor UDP */
	REASON_TINY_FRAGMENT, /* a first fragment without the whole transport header, or a later one
				 that reaches into it */
	REASON_OVERLAPPING_FRAGMENT, /* a later fragment of what the first has brought already */
	REASON_FRAGMENT_WITHOUT_FIRST, /* a later fragment that came before the first, or when that
					  was forgotten */
	REASON_BAD_TRANSPORT, /* TCP or UDP header incomplete, or its lengths are wrong */
	REASON_ICMP_QUOTE, /* an ICMP error that quotes no flow to the address that it came to */
	REASON_SRV6_FROM_OUTSIDE, /* SID or SRH from outside the SR domain, RFC 8754 section 5.1 */
	REASON_SPOOFED_SOURCE, /* source address of the SR domain, from outside of it */
	REASON_NO_SERVICE, /* the VIP has no service for this protocol and port */
	REASON_NEW_CONNECTIONS, /* more new connections than the service may get */
	REASON_NO_BACKEND, /* the service's bucket has no backend */
	REASON_NO_ROUTE, /* the routing table refuses the next segment */
	REASON_PACKET_TOO_BIG, /* does not fit the path after encapsulation, and the edge could not
				  say so; on a host, the kernel says it */
	REASON_BELOW_MIN_MTU, /* IPv6 of 1,280 bytes or less does not fit the path; its sender is
				 told, if it can be */
	REASON_UNANSWERABLE, /* an echo request of which the source, or the frame's destination, is
				not one host */
	REASON_ICMP_LIMIT, /* calls for an ICMP message, of which too many were sent just now */
	REASON_NO_HEADROOM, /* the driver left no room for the outer header */
	REASON_OUTSIDE_DOMAIN, /* packet to a local SID whose source is not of the SR domain */
	REASON_BAD_SRH, /* SRH with impossible fields, or a second SRH */
	REASON_HMAC_MISSING, /* no HMAC TLV where one has to be */
	REASON_HMAC_KEY, /* an HMAC of a key that is not known */
	REASON_HMAC_WRONG, /* an HMAC that does not fit source, segments and key, or a destination
			      that is not the segment */
	REASON_SEGMENTS_LEFT, /* a decapsulating SID that is not the last segment */
	REASON_UPPER_LAYER, /* what the SID found behind the SRH is not what it decapsulates */
	REASON_HOP_LIMIT, /* hop limit used up here; its sender is told, but of a stray */
	REASON_ECN, /* congestion marked outside, inner packet can't carry it: RFC 6040 section 4.2
		     */
	REASON_NO_PATH, /* the SR policy has no valid candidate path, or lost it while the packet
			   was copied */
	REASON_UNKNOWN_FLOW, /* a number of a flow that End.MERGE was not told of */
	REASON_DUPLICATE, /* another copy came first */
	REASON_ROGUE, /* numbered too far from the numbers that End.MERGE remembers */
	REASON_OLD_EPOCH, /* numbered in an earlier life of the sender */
	REASON_COUNT,
};
