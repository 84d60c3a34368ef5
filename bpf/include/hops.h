// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The hop limit of a parsed packet, or its time to live. */
#pragma once

#include "mss.h"

/* 0 if the header is not there. */
static __always_inline __u8 hops_read(CONTEXT *ctx, const struct packet *p)
{
	void *ip = (void *)(long)ctx->data + (p->ip & OFFSET_MAX), *end = (void *)(long)ctx->data_end;
	struct ipv6hdr *ip6 = ip;
	struct iphdr *ip4 = ip;

	if (p->flow.ipv4)
		return (void *)(ip4 + 1) <= end ? ip4->ttl : 0;
	return (void *)(ip6 + 1) <= end ? ip6->hop_limit : 0;
}

static __always_inline void hops_write(CONTEXT *ctx, const struct packet *p, __u8 hops)
{
	void *ip = (void *)(long)ctx->data + (p->ip & OFFSET_MAX), *end = (void *)(long)ctx->data_end;
	struct ipv6hdr *ip6 = ip;
	struct iphdr *ip4 = ip;

	if (p->flow.ipv4 && (void *)(ip4 + 1) <= end) {
		__be16 *word = (__be16 *)&ip4->ttl, before = *word; /* with the protocol */

		ip4->ttl = hops;
		ip4->check = checksum_replace(ip4->check, before, *word);
	} else if (!p->flow.ipv4 && (void *)(ip6 + 1) <= end) {
		ip6->hop_limit = hops;
	}
}

/*
 * Counts a hop. Returns whether one was left. A kernel that takes a packet out of its outer headers and encapsulates it
 * again counts none, so that what goes back and forth would do so without end.
 */
static __always_inline bool hops_take(CONTEXT *ctx, const struct packet *p)
{
	__u8 hops = hops_read(ctx, p);

	if (hops <= 1)
		return false;
	hops_write(ctx, p, hops - 1);
	return true;
}
