// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The hop limit of a parsed packet, or its time to live. */
#pragma once

#include "mss.h"

/* 0 if the header is not there. */
static __always_inline __u8 hops_read(CONTEXT *ctx, const struct packet *p)
{
	void *ip = (void *)(long)ctx->data + (p->ip & OFFSET_MAX), *end = frame_end(ctx);
	struct ipv6hdr *ip6 = ip;
	struct iphdr *ip4 = ip;

	if (p->flow.ipv4)
		return (void *)(ip4 + 1) <= end ? ip4->ttl : 0;
	return (void *)(ip6 + 1) <= end ? ip6->hop_limit : 0;
}

static __always_inline void hops_write(CONTEXT *ctx, const struct packet *p, __u8 hops)
{
	void *ip = (void *)(long)ctx->data + (p->ip & OFFSET_MAX), *end = frame_end(ctx);
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
 * Counts a hop of a header that has one left: RFC 8986 section 5.1. TTL, protocol and checksum are
 * one word, of which the TTL is the lowest byte; as it loses 1, the checksum above gains 1, and
 * never is the other zero (RFC 1624).
 */
static __always_inline void ipv4_hop_count(struct iphdr *ip)
{
	__u64 word = *(__u32 *)&ip->ttl + 0xffffULL;

	if (unlikely(word >= 0xffff0000))
		word += 0x10000;
	*(__u32 *)&ip->ttl = word;
}

/* The same of a parsed packet. */
static __always_inline void hops_count(CONTEXT *ctx, const struct packet *p)
{
	void *ip = (void *)(long)ctx->data + (p->ip & OFFSET_MAX), *end = frame_end(ctx);

	if (p->flow.ipv4 && ip + sizeof(struct iphdr) <= end)
		ipv4_hop_count(ip);
	else if (!p->flow.ipv4 && ip + sizeof(struct ipv6hdr) <= end)
		((struct ipv6hdr *)ip)->hop_limit--;
}

/*
 * Counts a hop. Returns whether one was left. A kernel that takes a packet out of its outer headers
 * and encapsulates it again counts none, so that what goes back and forth would do so without end.
 */
static __always_inline bool hops_take(CONTEXT *ctx, const struct packet *p)
{
	if (hops_read(ctx, p) <= 1)
		return false;
	hops_count(ctx, p);
	return true;
}
