// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * End.DT4.COND, End.DT6.COND, End.DT46.COND: a packet whose connection is not here goes back to the
 * edge, at which a shadow knows who was responsible before (VRF-shadowing, Algorithm 1).
 */
#pragma once

#include "hop_limit.h"
#include "host.h"
#include "nexthop.h"
#include "socket.h"
#include "srh.h"

/* A packet of a connection that is not here. */
static __always_inline bool is_stray(struct xdp_md *ctx, const struct packet *p)
{
	return p->flow.protocol == IPPROTO_TCP && !(p->tcp_flags & TCP_FLAG_SYN) &&
	       !connection_is_here(ctx, p);
}

/* Replaces all outer headers by one to the SID's backup, and sends it there. Not inlined, for the
 * verifier's sake. */
static __noinline int send_back(struct xdp_md *ctx, struct frame *f, const struct outer *outer,
				const struct packet *inner)
{
	struct address source = address_read(&settings.domain.source);
	struct address backup = address_read(&settings.sids[outer->sid % SIDS_MAX].backup);
	__u32 l2 = frame_l2_length(f), before = l2 + outer->length;
	struct ipv6hdr *ip = (void *)(long)ctx->data + (l2 & OFFSET_MAX);
	struct next_hop *hop;
	__be32 first; /* version, traffic class, flow label */
	__u8 hop_limit;

	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return drop(REASON_TRUNCATED);
	hop_limit = ip->hop_limit;
	first = *(__be32 *)ip;
	if (hop_limit <= 1 || !hops_take(ctx, inner))
		return drop(REASON_HOP_LIMIT);
	hop = next_hop_uncached(ctx, &source, &backup, bpf_ntohl(first));
	if (!hop || hop->how == NEXT_HOP_NONE)
		return drop(REASON_NO_ROUTE);
	if (hop->how == NEXT_HOP_SEND) {
		if (sizeof(*ip) + inner->length > hop->mtu)
			return drop(REASON_PACKET_TOO_BIG);
		next_hop_apply(ctx, hop, f);
	}
	ip = outer_room(ctx, f, before, sizeof(*ip));
	if (!ip)
		return drop(REASON_TRUNCATED);
	*(__be32 *)ip = first;
	ip->payload_len = bpf_htons(inner->length);
	ip->nexthdr = outer->next;
	ip->hop_limit = hop_limit - 1;
	address_store(&ip->saddr, &source);
	address_store(&ip->daddr, &backup);
	return next_hop_leave(ctx, hop);
}
