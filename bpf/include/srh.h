// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The outer headers of an SRv6 packet: IPv6 with a NEXT-C-SID carrier as its
 * destination (RFC 9800), or IPv6 with a segment routing header (RFC 8754).
 */
#pragma once

#include "ip.h"

#define CHAIN_MAX 6 /* 16-bit ids behind a 32-bit block in one address */

enum encapsulation {
	ENCAPSULATION_CARRIER = 0,
	ENCAPSULATION_SRH,
	ENCAPSULATION_SRH_REDUCED,
} __attribute__((packed)); /* one byte */

struct srh {
	struct routing_header header;
	struct address segments[]; /* [0] is the last of the path */
};

/* Which packets have to have an HMAC TLV. On the edge: anything but none has it sign. Off, all
 * about it goes from the program. */
enum hmac_rule {
	HMAC_RULE_NONE = 0, /* HMAC TLVs are not looked at */
	HMAC_RULE_PRESENT, /* those that are there have to be right */
	HMAC_RULE_SRH, /* all with an SRH */
	HMAC_RULE_ALL, /* all, and so all have an SRH */
};

const volatile enum hmac_rule hmac_rule = HMAC_RULE_NONE;

#define HMAC_TLV_LENGTH 40 /* with its first two bytes */

/* Segments in the SRH for a path of n; 0: no SRH. One that is signed is never left out. */
static __always_inline __u32 srh_segments(enum encapsulation e, __u32 n)
{
	switch (e) {
	case ENCAPSULATION_CARRIER:
		return 0;
	case ENCAPSULATION_SRH:
		return n;
	case ENCAPSULATION_SRH_REDUCED:
		return n == 1 && hmac_rule ? 1 : n - 1;
	}
	return 0;
}

static __always_inline __u32 srh_length(__u32 segments)
{
	if (!segments)
		return 0;
	return sizeof(struct routing_header) + segments * sizeof(struct address) +
	       (hmac_rule ? HMAC_TLV_LENGTH : 0);
}

/*
 * Room for outer headers of that length behind the L2 header that f holds, in place of the
 * frame's first bytes, of which there are before. Returns the outer IPv6 header; 0: there is no
 * room.
 */
static __always_inline struct ipv6hdr *outer_room(struct xdp_md *ctx, const struct frame *f,
						  __u32 before, __u32 length)
{
	__u32 l2 = frame_l2_length(f);
	int shrink = (int)before - (int)(l2 + length);
	struct ipv6hdr *ip;

	if (shrink && bpf_xdp_adjust_head(ctx, shrink))
		return 0;
	if (!frame_write(f, (void *)(long)ctx->data, (void *)(long)ctx->data_end))
		return 0;
	ip = (void *)(long)ctx->data + (l2 & OFFSET_MAX);
	return (void *)(ip + 1) <= (void *)(long)ctx->data_end ? ip : 0;
}

/* Outer IPv6 header: RFC 8986 section 5.1, flow label RFC 6438. */
static __always_inline void outer_write(struct ipv6hdr *ip, __u8 traffic_class,
					const struct address *source,
					const struct address *destination, __u32 label, __u8 next,
					__u8 hop_limit, __u32 payload)
{
	*(__be32 *)ip = bpf_htonl(6 << 28 | traffic_class << 20 | label);
	ip->payload_len = bpf_htons(payload);
	ip->nexthdr = next;
	ip->hop_limit = hop_limit;
	address_store(&ip->saddr, source);
	address_store(&ip->daddr, destination);
}

/*
 * NEXT-C-SID, RFC 9800 section 4.1: the active 16-bit id behind the 32-bit block
 * goes, the following ids move up, zeros come in.
 */
static __always_inline void carrier_shift(struct address *carrier)
{
	__u64 first = carrier->word[0], last = carrier->word[1];

	carrier->word[0] = (__u32)first | first >> 48 << 32 | last << 48;
	carrier->word[1] = last >> 16;
}
