// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Telemetry in IPv6 hop-by-hop options (RFC 8200 section 4.3), which nodes on the way change:
 *
 *   IPv6 | hop-by-hop: next header, length, PadN, option, padding | SRH | inner packet or transport
 *
 * Each node writes in place: nothing moves but at the source and at the sink.
 */
#pragma once

#include "int.h"

#define OPTION_PAD1 0
#define OPTION_PADN 1
#define OPTION_IOAM 0x31 /* RFC 9486 section 3: nodes change it */
#define OPTION_PATH_TRACING 0x32 /* draft-filsfils-ippm-path-tracing */

#define HOP_OPTIONS 8 /* options that are walked */
#define HOP_OPTIONS_MAX 264 /* octets of the header that a source inserts */
#define HOP_OPTIONS_AT (sizeof(struct ethhdr) + sizeof(struct ipv6hdr))

struct hop_option {
	__u32 kind; /* type of the option; 0: there is none with telemetry */
	__u32 at; /* of its type, from the start of the frame */
	__u32 length; /* octets of its data */
	__u32 header; /* octets of the hop-by-hop header */
	__u32 next; /* protocol behind the header */
	__u32 from, to; /* it and the padding around it, if it is not alone */
	bool alone; /* besides, there is only padding */
	__u8 reserved[3];
};

/* Octets of the hop-by-hop header and the protocol behind; false if the packet has no whole one. */
static __always_inline bool hop_options(struct __sk_buff *skb, struct hop_option *o)
{
	struct ipv6hdr *ip;
	__u8 *header;

	if (!reach(skb, HOP_OPTIONS_AT + 2))
		return false;
	ip = packet_start(skb) + sizeof(struct ethhdr);
	header = (void *)(ip + 1);
	if ((void *)header + 2 > packet_end(skb) || ip->version != 6 ||
	    ip->nexthdr != IPPROTO_HOPOPTS)
		return false;
	o->next = header[0];
	o->header = 8 + 8 * header[1];
	return o->header <= bpf_ntohs(ip->payload_len) &&
	       sizeof(struct ethhdr) + sizeof(*ip) + bpf_ntohs(ip->payload_len) <= skb->len;
}

static __always_inline bool is_telemetry(__u32 kind)
{
	return kind == OPTION_IOAM || kind == OPTION_PATH_TRACING;
}

/* The option where sources put it: behind two octets of padding, with nothing but padding behind.
 * False if the header is another one. */
static __always_inline bool hop_option_alone(struct __sk_buff *skb, struct hop_option *o)
{
	__u32 header = o->header, size, padding;
	__u8 *b;

	barrier_var(header);
	if (header > 512 || !reach(skb, HOP_OPTIONS_AT + header))
		return false;
	b = packet_start(skb) + HOP_OPTIONS_AT;
	if ((void *)b + 6 > packet_end(skb) || b[2] != OPTION_PADN || b[3] || !is_telemetry(b[4]))
		return false;
	size = 6 + b[5];
	padding = header - size;
	if (size > header || padding > 7)
		return false;
	o->kind = b[4];
	o->at = HOP_OPTIONS_AT + 4;
	o->length = b[5];
	barrier_var(size);
	b += size & 511;
	if (padding &&
	    ((void *)b + 2 > packet_end(skb) ||
	     (padding == 1 ? b[0] != OPTION_PAD1 : b[0] != OPTION_PADN || b[1] + 2 != padding)))
		o->kind = 0;
	return o->kind;
}

/* The packet's first option with telemetry. Kind 0 if it has none, or options that are not whole.
 * Global, so that the verifier walks its loop once and not once for each state of its callers. */
__noinline int hop_option_find(struct __sk_buff *skb, struct hop_option *o)
{
	__u32 at = HOP_OPTIONS_AT + 2, end, size;
	__u8 option[2];

	if (!o)
		return 0;
	*o = (struct hop_option){ .from = at, .alone = true };
	if (!hop_options(skb, o))
		return 0;
	if (hop_option_alone(skb, o))
		return 0;
	end = HOP_OPTIONS_AT + o->header;
	for (int i = 0; i < HOP_OPTIONS; i++) {
		if (at >= end || bpf_skb_load_bytes(skb, at, option, sizeof(option)))
			break;
		size = option[0] == OPTION_PAD1 ? 1 : 2 + option[1];
		if (at + size > end)
			break;
		if (!o->kind && is_telemetry(option[0])) {
			o->kind = option[0];
			o->at = at;
			o->length = option[1];
		} else if (option[0] > OPTION_PADN) {
			o->alone = false;
			if (!o->kind)
				o->from = at + size;
			else if (!o->to)
				o->to = at;
		}
		at += size;
	}
	if (!o->to)
		o->to = at;
	if (at < end)
		o->alone = false;
	return 0;
}

/* Makes padding of octets that are 0; a single one is Pad1 already. */
static __always_inline void padding_write(struct int_scratch *s, __u32 at, __u32 octets)
{
	if (octets < 2)
		return;
	*octet_at(s, at) = OPTION_PADN;
	*octet_at(s, at + 1) = octets - 2;
}

/* Writes a hop-by-hop header of so many octets behind a copied IPv6 header: one option, whose data
 * is all zero. */
static __always_inline void hop_option_write(struct int_scratch *s, __u32 kind, __u32 length,
					     __u32 header)
{
	__u32 at = sizeof(struct ipv6hdr);

	for (__u32 i = 0; i < HOP_OPTIONS_MAX; i += INT_WORD) {
		if (i >= header)
			break;
		put32(s, at + i, 0);
	}
	*octet_at(s, at) = *octet_at(s, __builtin_offsetof(struct ipv6hdr, nexthdr));
	*octet_at(s, at + 1) = header / 8 - 1;
	*octet_at(s, at + 2) = OPTION_PADN;
	*octet_at(s, at + 4) = kind;
	*octet_at(s, at + 5) = length;
	padding_write(s, at + 6 + length, header - 6 - length);
	*octet_at(s, __builtin_offsetof(struct ipv6hdr, nexthdr)) = IPPROTO_HOPOPTS;
}
