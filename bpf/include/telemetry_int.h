// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Steps of source, transit and sink with INT behind the outer headers: it is found, room is made
 * for it, and what a node knows is written. */
#pragma once

#include "telemetry_options.h"

/* Protocol behind the IPv6 header and one routing header, none if they are not there. */
static __always_inline __u32 protocol_of(struct __sk_buff *skb)
{
	const __u32 needed = sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + 2;
	struct ipv6hdr *ip;

	if (packet_end(skb) - packet_start(skb) < needed && bpf_skb_pull_data(skb, needed))
		return IPPROTO_NONE;
	ip = packet_start(skb) + sizeof(struct ethhdr);
	if ((void *)(ip + 1) + 2 > packet_end(skb))
		return IPPROTO_NONE;
	if (ip->nexthdr == IPPROTO_ROUTING)
		return *(__u8 *)(ip + 1);
	return ip->nexthdr;
}

/* Whether telemetry may be in it. */
static __always_inline bool may_carry(__u32 protocol)
{
	return protocol == IPPROTO_UDP || protocol == IPPROTO_HOPOPTS ||
	       protocol == IPPROTO_DSTOPTS || protocol == IPPROTO_ROUTING;
}

/* Where the fields of INT are, from the IPv6 header on. */
#define AT_PORT(o) ((o)->length + 2)
#define AT_UDP_LENGTH(o) ((o)->length + 4)
#define AT_SHIM(o) ((o)->length + sizeof(struct udphdr))
#define AT_MD(o) (AT_SHIM(o) + sizeof(struct int_shim))
#define AT_STACK(o) (AT_MD(o) + sizeof(struct int_md))

/* What the packet carries behind its outer headers. */
static __always_inline enum carrying int_find(struct __sk_buff *skb, const struct int_outer *o)
{
	struct ipv6hdr *ip = packet_start(skb) + sizeof(struct ethhdr);
	struct udphdr *udp = int_behind(skb, o, sizeof(*udp));
	struct int_headers *h;
	__u32 room, hop;

	if (o->protocol != IPPROTO_UDP || !udp || udp->dest != bpf_htons(settings.port))
		return CARRIES_NOTHING;
	if (!is_inside(skb))
		return CARRIES_OUTSIDE;
	h = int_behind(skb, o, sizeof(*h));
	if (!h || (void *)(ip + 1) > packet_end(skb))
		return CARRIES_BROKEN;
	room = sizeof(struct ipv6hdr) + bpf_ntohs(ip->payload_len) - o->length;
	hop = h->md.hop_words & INT_HOP_WORDS;
	if (room < sizeof(*h) || bpf_ntohs(h->udp.len) != room || h->udp.check ||
	    h->shim.type >> 2 != (INT_TYPE_MD << 2 | INT_NPT_UDP) || !is_inner(h->shim.protocol) ||
	    h->md.flags >> 4 != INT_VERSION || h->shim.words < INT_HEADER_WORDS ||
	    sizeof(struct udphdr) + sizeof(struct int_shim) + INT_WORD * h->shim.words > room ||
	    !hop || int_words(bpf_ntohs(h->md.instructions)) > hop)
		return CARRIES_BROKEN;
	return CARRIES_TELEMETRY;
}

/* Entropy of the UDP source port: the flow label, which the head-end made of the inner flow. */
static __always_inline __u32 source_port(struct __sk_buff *skb)
{
	__be32 *head = packet_start(skb) + sizeof(struct ethhdr);
	__u32 label;

	if ((void *)(head + 1) > packet_end(skb))
		return 0;
	label = bpf_ntohl(*head) & 0xfffff;
	return 0xc000 | ((label ^ label >> 14) & 0x3fff);
}

/* Metadata of a word each, which a node writes without the time. */
#define INT_SHORT (INT_NODE | INT_INTERFACES | INT_LATENCY | INT_QUEUE)
#define INT_SHORT_WORDS 4

/* Writes such metadata into a packet, in the order of their bits. */
static __always_inline void write_short(__be32 *to, __u32 instructions,
					const struct int_observation *o)
{
	if (instructions & INT_NODE)
		*to++ = bpf_htonl(o->node);
	if (instructions & INT_INTERFACES)
		*to++ = bpf_htonl(int_interfaces(o));
	if (instructions & INT_LATENCY)
		*to++ = bpf_htonl(o->latency_ns <= 0xffffffff ? o->latency_ns : ~0U);
	if (instructions & INT_QUEUE)
		*to = bpf_htonl(o->queue);
}

/* Writes what a node adds, of so many words, which the packet has behind to: a free slot, or room
 * that was made. */
static __always_inline void words_write(struct __sk_buff *skb, __be32 *to, __u32 hop,
					__u32 instructions)
{
	struct int_observation seen = {};
	struct int_scratch *s;
	__u32 zero = 0;

	observe(skb, instructions, &seen);
	if (!(instructions & ~INT_SHORT) && hop == int_words(instructions) &&
	    (void *)(to + INT_SHORT_WORDS) <= packet_end(skb)) {
		write_short(to, instructions, &seen);
		return;
	}
	s = bpf_map_lookup_elem(&int_scratches, &zero);
	if (!s)
		return;
	int_write(s, 0, hop, instructions, &seen);
	barrier_var(hop); /* or the compiler drops the bound, which kernel 6.1 needs */
	for (int i = 0; i < INT_HOP_WORDS; i++) {
		if (i >= hop || (void *)(to + i + 1) > packet_end(skb))
			break;
		to[i] = ((__be32 *)s->octets)[i];
	}
}

/* The same at an offset from the start of the frame. Global, so that it is verified apart. */
__noinline int words_write_at(struct __sk_buff *skb, __u32 at, __u32 hop, __u32 instructions)
{
	__be32 *to = packet_start(skb);

	barrier_var(at);
	to = (void *)to + (at & 2047);
	if ((void *)(to + 1) <= packet_end(skb))
		words_write(skb, to, hop, instructions);
	return 0;
}

static __always_inline __u32 payload_length(struct __sk_buff *skb)
{
	struct ipv6hdr *ip = packet_start(skb) + sizeof(struct ethhdr);

	return (void *)(ip + 1) <= packet_end(skb) ? bpf_ntohs(ip->payload_len) : 0;
}

/* Writes what follows the outer headers. */
static __always_inline bool next_write(struct __sk_buff *skb, const struct int_outer *o,
				       __u32 protocol)
{
	__u8 *next = packet_start(skb) + sizeof(struct ethhdr);
	__u32 at = o->next_at;

	barrier_var(at);
	if (at > INT_OUTER)
		return false;
	next += at;
	if ((void *)(next + 1) > packet_end(skb))
		return false;
	*next = protocol;
	return true;
}

/*
 * Makes room for so many octets, and has the payload length say so. The kernel moves the Ethernet
 * and the IPv6 header, here moves what else lies in front of the room: so many octets in words of
 * eight. A packet that leaves has no checksum of hardware over what moves.
 */
static __always_inline bool make_room(struct __sk_buff *skb, __u32 more, __u32 octets)
{
	struct ipv6hdr *ip;
	__u64 *from, *to;

	if (bpf_skb_adjust_room(skb, more, BPF_ADJ_ROOM_NET, 0))
		return false;
	ip = packet_start(skb) + sizeof(struct ethhdr);
	if ((void *)(ip + 1) > packet_end(skb))
		return false;
	ip->payload_len = bpf_htons(bpf_ntohs(ip->payload_len) + more);
	to = (void *)(ip + 1);
	barrier_var(more);
	from = (void *)to + (more & 511);
	for (__u32 i = 0; i < INT_HEAD / 8; i++) {
		if (8 * i >= octets || (void *)(to + i + 1) > packet_end(skb) ||
		    (void *)(from + i + 1) > packet_end(skb))
			break;
		to[i] = from[i];
	}
	return true;
}
