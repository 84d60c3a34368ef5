// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What a host does not take goes on to the next candidate, which may be the host itself.
 * Specification: docs/reference/dataplane.md, "End.OFFER".
 */
#pragma once

#include "argument.h"
#include "frame.h"
#include "inner.h"
#include "nexthop.h"

/* The SRH in which the next segment is, and that segment; 0: it is broken. */
static __always_inline struct routing_header *next_in_srh(struct xdp_md *ctx, __u32 srh_offset,
							  struct address **segment)
{
	struct routing_header *srh = srh_at(ctx, srh_offset);
	__u32 next;

	if (!srh || !srh->segments_left)
		return 0;
	next = srh->segments_left - 1;
	asm volatile("" : "+r"(next)); /* or clang checks an address 8 bytes on */
	/* Linux 6.1 does not know that segments left are more than 0. */
	*segment = (struct address *)(srh + 1) + (next & 0xff);
	return (void *)(*segment + 1) > (void *)(long)ctx->data_end ? 0 : srh;
}

/* Makes the next candidate the destination: NEXT-C-SID, or the SRH's next segment. */
static __always_inline int next_segment(struct xdp_md *ctx, struct ipv6hdr *ip, __u32 srh_offset,
					bool argument)
{
	struct routing_header *srh;
	struct address *segment;

	if (argument) {
		carrier_shift((struct address *)&ip->daddr);
		return REASON_NONE;
	}
	srh = next_in_srh(ctx, srh_offset, &segment);
	if (!srh)
		return REASON_BAD_SRH;
	srh->segments_left--;
	*(struct address *)&ip->daddr = *segment;
	return REASON_NONE;
}

/*
 * Makes the next candidate the destination if it is this host again, by another of its SIDs.
 * Returns whether it is. Not static, so that the verifier looks at it once.
 */
__noinline int step_to_self(struct xdp_md *ctx, const struct frame *f, struct outer *outer)
{
	struct routing_header *srh = 0;
	struct address next, *segment;
	struct ipv6hdr *ip;
	__u32 sid;

	if (!f || !outer)
		return false;
	ip = (void *)(long)ctx->data + (frame_l2_length(f) & OFFSET_MAX);
	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return false;
	if (outer->argument) {
		next = address_load(&ip->daddr);
		carrier_shift(&next);
	} else {
		srh = next_in_srh(ctx, outer->srh, &segment);
		if (!srh)
			return false;
		next = *segment;
	}
	sid = sid_find(&next);
	if (sid >= SIDS_MAX || settings.sids[sid].behavior != BEHAVIOR_END_OFFER)
		return false;
	if (srh)
		srh->segments_left--;
	address_store(&ip->daddr, &next);
	outer->sid = sid;
	outer->copy = 0;
	outer->argument = has_argument(&settings.sids[sid], &next);
	if (outer->argument)
		copy_mark_read(outer, &next);
	return true;
}

/* Whether the next candidate of a carrier may be this host again; of an SRH, step_to_self looks.
 * Nearly all are told apart here. */
static __always_inline bool may_step_to_self(struct xdp_md *ctx, const struct frame *f,
					     const struct outer *outer)
{
	struct ipv6hdr *ip = (void *)(long)ctx->data + (frame_l2_length(f) & OFFSET_MAX);
	struct address next;

	if (!outer->argument || (void *)(ip + 1) > (void *)(long)ctx->data_end)
		return true;
	next = address_load(&ip->daddr);
	carrier_shift(&next);
	return (next.word[0] & settings.sids_mask) == settings.sids_common;
}

/* Passes the packet on to this host for as long as it is the next candidate. Returns whether that
 * was the last one. */
static __always_inline bool pass_to_self(struct xdp_md *ctx, const struct frame *f,
					 struct outer *outer)
{
	if (likely(!may_step_to_self(ctx, f, outer)))
		return false;
	for (int i = 0; i < CHAIN_MAX - 1; i++) {
		if (!step_to_self(ctx, f, outer))
			return false;
		if (!outer->argument && !segments_left(ctx, outer->srh))
			return true;
	}
	return false;
}

/* Where the packet goes now. A compressed SID is remembered; any other segment is asked for. */
static __always_inline struct next_hop *next_candidate(struct xdp_md *ctx, const struct ipv6hdr *ip,
						       bool argument)
{
	const struct address *source = (const void *)&ip->saddr,
			     *destination = (const void *)&ip->daddr;
	__u8 choice = bpf_ntohl(
		*(__be32 *)ip); /* the flow label's low bits: the edge chose by the same */

	if (argument)
		return next_hop_for(ctx, source, destination, bpf_ntohs(((__be16 *)&ip->daddr)[2]),
				    choice);
	return next_hop_uncached(ctx, source, destination, choice);
}

/* Sends the packet to the next candidate. Not inlined, for the verifier's sake. */
__noinline int pass_on(struct xdp_md *ctx, struct frame *f, __u32 srh_offset, bool argument)
{
	struct next_hop *hop;
	struct ipv6hdr *ip;
	__u32 shrink;
	int reason;

	if (!f)
		return XDP_ABORTED;
	shrink = frame_l2_length(f);
	ip = (void *)(long)ctx->data + (shrink & OFFSET_MAX);
	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return drop(REASON_TRUNCATED);
	reason = next_segment(ctx, ip, srh_offset, argument);
	if (reason)
		return drop(reason);
	if (ip->hop_limit <= 1) {
		ip->hop_limit = 1;
		count_in(&drops, REASON_HOP_LIMIT);
		return XDP_PASS; /* the kernel answers Time Exceeded */
	}
	hop = next_candidate(ctx, ip, argument);
	if (!hop || hop->how == NEXT_HOP_NONE)
		return drop(REASON_NO_ROUTE);
	if (sizeof(*ip) + bpf_ntohs(ip->payload_len) > hop->mtu && hop->mtu) {
		count_in(&drops, REASON_PACKET_TOO_BIG);
		return XDP_PASS; /* the kernel answers Packet Too Big */
	}
	if (hop->how == NEXT_HOP_HAND)
		return next_hop_leave(ctx, hop);
	ip->hop_limit--;
	next_hop_apply(ctx, hop, f);
	shrink -= frame_l2_length(f);
	if (shrink && bpf_xdp_adjust_head(ctx, shrink))
		return drop(REASON_TRUNCATED);
	if (!frame_write(f, (void *)(long)ctx->data, (void *)(long)ctx->data_end))
		return drop(REASON_TRUNCATED);
	return next_hop_send(ctx, hop);
}
