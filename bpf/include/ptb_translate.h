// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A router of the SR domain says that an outer packet of the edge's is too big. Only the client can
 * send smaller ones, so it is told what fits inside (RFC 2473 section 8.1). Nothing is kept: each
 * flow that is too big is told again.
 */
#pragma once

#include "icmp_reply.h"

/* The client's packet in the quoted one, at the cursor. Its family is that of t. */
static __always_inline bool quoted_client(const struct cursor *c, struct icmp_error *t,
					  __u32 *total)
{
	struct ipv6hdr *ip = c->pos;
	struct iphdr *ip4 = c->pos;

	if (!t->ipv4) {
		if (!cursor_has(c, sizeof(*ip)) || ip->version != 6 ||
		    ip->nexthdr == IPPROTO_ICMPV6)
			return false;
		t->client = address_load(&ip->saddr);
		t->vip = address_load(&ip->daddr);
		*total = sizeof(*ip) + bpf_ntohs(ip->payload_len);
		return true;
	}
	if (!cursor_has(c, sizeof(*ip4)) || ip4->version != 4 || ip4->ihl < 5 ||
	    ip4->protocol == IPPROTO_ICMP || ip4->frag_off & bpf_htons(0x1fff))
		return false;
	t->client = address_from_ipv4(ip4->saddr);
	t->vip = address_from_ipv4(ip4->daddr);
	*total = bpf_ntohs(ip4->tot_len);
	return true;
}

static __always_inline bool is_vip(const struct address *a, bool ipv4)
{
	struct service_key key = service_key_of(a, (__u32)ipv4 << 24);

	return bpf_map_lookup_elem(&services, &key);
}

/*
 * Finds the client's packet behind the outer headers that the message at the cursor quotes, and
 * what may go inside of them. The message came to t->vip at first, which is the edge's own address.
 * False: it is not about a packet to a VIP of ours, or nothing that can be told.
 */
static __always_inline bool too_big_about(struct xdp_md *ctx, struct cursor *c,
					  struct icmp_error *t, enum answer_kind *kind)
{
	struct icmp_header *icmp = c->pos;
	struct walk w = { .rule = SRH_WANTED };
	__u32 mtu, overhead, total = 0;
	struct address source;
	struct ipv6hdr *outer;

	if (!cursor_has(c, sizeof(*icmp) + sizeof(*outer)))
		return false;
	outer = c->pos + sizeof(*icmp);
	source = address_load(&outer->saddr);
	if ((icmp->type_code & bpf_htons(0xff00)) != bpf_htons(ICMPV6_PACKET_TOO_BIG << 8) ||
	    outer->version != 6 || source.word[0] != t->vip.word[0] ||
	    source.word[1] != t->vip.word[1])
		return false;
	mtu = bpf_ntohl(icmp->rest);
	w.next = outer->nexthdr;
	w.offset = c->offset + sizeof(*icmp) + sizeof(*outer);
	w.left = c->left - sizeof(*icmp) - sizeof(*outer);
	overhead = w.offset - sizeof(*outer);
	if ((is_extension(w.next) && walk_extensions(ctx, &w)) ||
	    (w.next != IPPROTO_IPIP && w.next != IPPROTO_IPV6) || w.offset > OFFSET_MAX)
		return false;
	overhead = w.offset - overhead;
	t->ipv4 = w.next == IPPROTO_IPIP;
	t->before = w.offset;
	t->quoted = quote_length(w.left, t->ipv4);
	t->mtu = mtu - overhead;
	cursor_set(c, ctx, w.offset, w.left);
	/* A router's MTU is one at which the packet did not fit, or else the message is a lie. */
	if (!quoted_client(c, t, &total) || mtu < IPV6_MTU_MIN || total <= t->mtu ||
	    !is_answerable(&t->vip, &t->client, t->ipv4) || !is_vip(&t->vip, t->ipv4))
		return false;
	*kind = too_big_kind(total, t->ipv4, &t->mtu);
	t->type_code = error_type(*kind, t->ipv4);
	return true;
}

/* Returns what the program returns, or -1: nothing for us. Not inlined, for the verifier's sake. */
__noinline int too_big_translate(struct xdp_md *ctx, __u32 offset, __u32 left)
{
	struct answering *a = answering_here();
	enum answer_kind kind;
	struct cursor c;

	if (!a)
		return -1;
	cursor_set(&c, ctx, offset, left);
	if (!too_big_about(ctx, &c, &a->about, &kind))
		return -1;
	if (!answer_take_token(a, kind))
		return drop(REASON_ICMP_LIMIT);
	if (error_write(ctx))
		return drop(REASON_PACKET_TOO_BIG);
	if (kind == ANSWER_TOO_BIG)
		count_in(&outcomes, OUTCOME_TRANSLATED);
	else
		count_in(&drops, error_reason(kind));
	return XDP_PASS;
}
