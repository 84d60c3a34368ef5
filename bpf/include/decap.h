// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Decapsulation for the local stack: ECN, MSS, and the outer headers go. */
#pragma once

#include "counters.h"
#include "mss.h"

/* RFC 6040 figure 4. Returns the inner field's new value, or -1: drop. */
static __always_inline int ecn_combine(__u8 inner, __u8 outer)
{
	inner &= ECN_MASK;
	outer &= ECN_MASK;
	if (outer == 3)
		return inner == 0 ? -1 : 3;
	if (outer == 1 && inner == 2)
		return 1;
	return inner;
}

/* Writes the ECN field of the inner header. Not inlined, for the verifier's sake. */
__noinline int ecn_write(struct xdp_md *ctx, const struct packet *inner, __u32 ecn)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip;

	if (!inner)
		return REASON_TRUNCATED;
	ecn &= ECN_MASK;
	ip = data + (inner->ip & OFFSET_MAX);
	if ((void *)(ip + 1) > end)
		return REASON_TRUNCATED;
	if (inner->flow.ipv4) {
		__be16 before = *(__be16 *)ip;

		ip->tos = (ip->tos & ~ECN_MASK) | ecn;
		ip->check = checksum_replace(ip->check, before, *(__be16 *)ip);
	} else {
		__u8 *byte = (__u8 *)ip; /* version, class, class, label: the ECN field is in bits 4
					    and 5 of byte 1 */

		byte[1] = (byte[1] & ~(ECN_MASK << 4)) | ecn << 4;
	}
	return REASON_NONE;
}

/* Gives the inner header the combined ECN field. */
static __always_inline int ecn_take(struct xdp_md *ctx, const struct packet *inner,
				    __u8 outer_class)
{
	int ecn = ecn_combine(inner->traffic_class, outer_class);

	if (likely(ecn == (inner->traffic_class & ECN_MASK)))
		return REASON_NONE;
	return ecn < 0 ? REASON_ECN : ecn_write(ctx, inner, ecn);
}

/* Removes the outer_length bytes between the L2 header and the inner packet, and gives the frame to
 * the kernel. */
static __always_inline int decapsulate_as(struct xdp_md *ctx, struct frame *f,
					  const struct packet *inner, __u32 outer_length,
					  enum outcome outcome)
{
	f->ethertype = inner->flow.ipv4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	if (bpf_xdp_adjust_head(ctx, outer_length))
		return drop(REASON_TRUNCATED);
	if (!frame_write(f, (void *)(long)ctx->data, (void *)(long)ctx->data_end))
		return drop(REASON_TRUNCATED);
	count_in(&outcomes, outcome);
	return XDP_PASS;
}

/* The same for the local stack. */
static __always_inline int decapsulate(struct xdp_md *ctx, struct frame *f,
				       const struct packet *inner, __u32 outer_length)
{
	return decapsulate_as(ctx, f, inner, outer_length, OUTCOME_TAKEN);
}
