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

/* Where the MSS value stands, and what it is. */
struct mss {
	__u8 *wire; /* 0: no option */
	__u32 offset; /* from the start of the TCP header */
	__u16 value;
};

/* Finds the option. Options that make no sense end the search: the receiver judges them. */
static __always_inline struct mss mss_find(struct tcphdr *tcp, void *end)
{
	struct mss mss = {};
	__u32 offset = sizeof(*tcp), length = tcp->doff * 4;

	for (int i = 0; i < TCP_OPTIONS_MAX; i++) {
		__u8 *option = (void *)tcp + (offset & 0x3f);

		if (offset >= length || (void *)(option + 1) > end || option[0] == TCP_OPTION_END)
			break;
		if (option[0] == TCP_OPTION_NOP) {
			offset++;
			continue;
		}
		if (offset + 2 > length || (void *)(option + 2) > end || option[1] < 2)
			break;
		if (option[0] == TCP_OPTION_MSS) {
			if (option[1] != TCP_OPTION_MSS_LENGTH || offset + 4 > length || (void *)(option + 4) > end)
				break;
			mss.wire = option + 2;
			mss.offset = offset + 2;
			mss.value = option[2] << 8 | option[3];
			break;
		}
		offset += option[1];
	}
	return mss;
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

	return mss->offset & 1 ? (__be16)(word << 8 | word >> 8) : word;
}

/* Lowers the MSS of a SYN in the packet's bytes; the checksum follows. */
static __always_inline void mss_clamp(struct tcphdr *tcp, void *end, __u16 limit)
{
	struct mss mss = mss_find(tcp, end);

	if (!mss.wire || mss.value <= limit || (void *)(mss.wire + 2) > end)
		return;
	mss.wire[0] = limit >> 8;
	mss.wire[1] = limit & 0xff;
	tcp->check = checksum_replace(tcp->check, checksum_word(&mss, mss.value), checksum_word(&mss, limit));
}

/* The same on an skb, whose checksum may be left to the device: the helper knows. The TCP header is tcp_offset bytes into the frame. */
static __always_inline void mss_clamp_skb(struct __sk_buff *skb, struct tcphdr *tcp, void *end, __u32 tcp_offset,
					  __u16 limit)
{
	struct mss mss = mss_find(tcp, end);
	__be16 wire = bpf_htons(limit);

	if (!mss.wire || mss.value <= limit)
		return;
	bpf_l4_csum_replace(skb, tcp_offset + offsetof(struct tcphdr, check), checksum_word(&mss, mss.value),
			    checksum_word(&mss, limit), sizeof(wire));
	bpf_skb_store_bytes(skb, tcp_offset + mss.offset, &wire, sizeof(wire), 0);
}
