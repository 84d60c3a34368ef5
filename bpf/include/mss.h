// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The maximum segment size option of SYN and SYN-ACK, lowered to what fits the
 * SR domain behind the outer header (RFC 9293 section 3.7.1).
 */
#pragma once

#include "ip.h"

#include <stddef.h>

#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_MSS 2
#define TCP_OPTION_MSS_LENGTH 4
#define TCP_OPTIONS_MAX 40

/* The options of a TCP header, and the search for the MSS in them. */
struct mss {
	__u8 options[64]; /* 40 at most; a power of two, so that a masked index is in range */
	__u32 length; /* of the options */
	__u32 at; /* next option; at the end, the MSS value */
	__u32 value; /* 0: not found */
};

/* Looks at one option. Options that make no sense end the search: the receiver judges them. Returns
 * 1 to stop. */
static long mss_step(__u32 step, struct mss *m)
{
	__u32 at = m->at;
	__u8 kind, length;

	if (at >= m->length)
		return 1;
	kind = m->options[at & 63];
	if (kind == TCP_OPTION_END)
		return 1;
	if (kind == TCP_OPTION_NOP) {
		m->at++;
		return 0;
	}
	length = m->options[(at + 1) & 63];
	if (length < 2 || at + length > m->length)
		return 1;
	if (kind != TCP_OPTION_MSS || length != TCP_OPTION_MSS_LENGTH) {
		m->at += length;
		return 0;
	}
	m->at += 2;
	m->value = m->options[(at + 2) & 63] << 8 | m->options[(at + 3) & 63];
	return 1;
}

static __always_inline bool mss_find(struct mss *m)
{
	bpf_loop(TCP_OPTIONS_MAX, mss_step, m, 0);
	return m->value;
}

/* RFC 1624, equation 3: a 16-bit word changes from before to after. */
static __always_inline __be16 checksum_replace(__be16 checksum, __be16 before, __be16 after)
{
	__u32 sum = (__u16)~checksum + (__u16)~before + after;

	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* At an odd offset a value's bytes stand in two words of the checksum, each in the other half. */
static __always_inline __be16 checksum_word(const struct mss *mss, __u16 value)
{
	__be16 word = bpf_htons(value);

	return mss->at & 1 ? (__be16)(word << 8 | word >> 8) : word;
}

/* Lowers the MSS of the SYN whose TCP header is at offset; the checksum follows. Not inlined, for
 * the verifier's sake. */
__noinline int mss_clamp(struct xdp_md *ctx, __u32 offset, __u32 limit)
{
	struct tcphdr *tcp = (void *)(long)ctx->data + (offset & OFFSET_MAX);
	__be16 wire = bpf_htons(limit);
	struct mss mss = {};

	if ((void *)(tcp + 1) > (void *)(long)ctx->data_end || tcp->doff <= 5)
		return 0;
	mss.length = (tcp->doff - 5) * 4;
	if (bpf_xdp_load_bytes(ctx, offset + sizeof(*tcp), mss.options, mss.length) ||
	    !mss_find(&mss) || mss.value <= limit)
		return 0;
	bpf_xdp_store_bytes(ctx, offset + sizeof(*tcp) + mss.at, &wire, sizeof(wire));
	tcp = (void *)(long)ctx->data + (offset & OFFSET_MAX);
	if ((void *)(tcp + 1) <= (void *)(long)ctx->data_end)
		tcp->check = checksum_replace(tcp->check, checksum_word(&mss, mss.value),
					      checksum_word(&mss, limit));
	return 0;
}

/* The same on an skb, whose checksum may be left to the device: the helper knows. */
__noinline int mss_clamp_skb(struct __sk_buff *skb, __u32 offset, __u32 limit)
{
	struct tcphdr *tcp = (void *)(long)skb->data + (offset & OFFSET_MAX);
	__be16 wire = bpf_htons(limit);
	struct mss mss = {};

	if ((void *)(tcp + 1) > (void *)(long)skb->data_end || tcp->doff <= 5)
		return 0;
	mss.length = (tcp->doff - 5) * 4;
	if (bpf_skb_load_bytes(skb, offset + sizeof(*tcp), mss.options, mss.length) ||
	    !mss_find(&mss) || mss.value <= limit)
		return 0;
	bpf_l4_csum_replace(skb, offset + offsetof(struct tcphdr, check),
			    checksum_word(&mss, mss.value), checksum_word(&mss, limit),
			    sizeof(wire));
	bpf_skb_store_bytes(skb, offset + sizeof(*tcp) + mss.at, &wire, sizeof(wire), 0);
	return 0;
}
