// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packets to the edge itself: strays (End.SHADOW), SYN-ACKs (End.LEARN), and what routers say about
 * outer packets. Specification: docs/reference/dataplane.md, "Edge".
 */
#pragma once

#include "inner.h"
#include "decap.h"
#include "ptb_translate.h"
#include "edge_encap.h"

static __always_inline bool is_shadow(const struct address *destination)
{
	return settings.shadow.word[0] && destination->word[0] == settings.shadow.word[0] &&
	       destination->word[1] == settings.shadow.word[1];
}

/* What is for the edge itself: a stray or a SYN-ACK that a host sent back, and what routers of the
 * SR domain say about outer packets. */
static __always_inline bool is_for_edge(const struct packet *p)
{
	struct address source = address_read(&settings.domain.source);

	return is_shadow(&p->flow.destination) || is_learn(&p->flow.destination) ||
	       (p->flow.destination.word[0] == source.word[0] &&
		p->flow.destination.word[1] == source.word[1] &&
		p->flow.protocol == IPPROTO_ICMPV6);
}

/* The SID at which a backend delivers, whatever it knows: where a stray ends that comes back. */
static __always_inline bool last_offer(const struct chain *chain, struct address *destination,
				       __u32 *id)
{
	struct chain owner = {};

	owner.ids[0] = chain->shadow ? chain->shadow : chain->ids[0];
	*id = bpf_ntohs(owner.ids[0]);
	if (!*id || !first_segment(settings.encapsulation, &owner, 1, destination))
		return false;
	((__be16 *)destination)[3] = settings.last_offer;
	return true;
}

/* Sends the inner packet of a stray on, which has outer_length bytes of headers before it, to the
 * previous owner. */
static __always_inline int shadow_forward(struct xdp_md *ctx, struct frame *f,
					  const struct packet *p, const struct service *service,
					  __u32 outer_length, __u8 hop_limit)
{
	__u64 hash = flow_hash(&settings.domain.secret, &p->flow);
	struct chain *chain = chain_find(service, hash);
	struct address source = address_read(&settings.domain.source), destination;
	__u32 id, before = frame_l2_length(f) + outer_length;
	struct next_hop *hop;
	struct ipv6hdr *ip;

	if (!chain || !last_offer(chain, &destination, &id))
		return drop(REASON_NO_BACKEND);
	hop = next_hop_uncached(ctx, &source, &destination, hash);
	if (!hop || hop->how == NEXT_HOP_NONE)
		return drop(REASON_NO_ROUTE);
	if (hop->how == NEXT_HOP_SEND) {
		if (p->length + sizeof(struct ipv6hdr) > hop->mtu)
			return drop(REASON_PACKET_TOO_BIG);
		next_hop_apply(ctx, hop, f);
	}
	hops_count(ctx, p);
	ip = outer_room(ctx, f, before, sizeof(*ip));
	if (!ip)
		return drop(REASON_TRUNCATED);
	outer_write(ip, edge_traffic_class(p), &source, &destination, flow_label(hash),
		    p->flow.ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6, hop_limit, p->length);
	traffic_count(service->index, id, p->length);
	return next_hop_leave(ctx, hop);
}

/* The outer headers of a packet that ends at a SID of the edge's, before length bytes of which the
 * inner one is: p from then on. */
static __always_inline int last_segment(struct xdp_md *ctx, struct cursor *c, struct packet *p,
					__u32 *length, __u32 *srh)
{
	int reason = REASON_NONE;
	__u8 next;

	if (!infrastructure_contains(&settings.domain.infrastructure, &p->flow.source))
		return REASON_OUTSIDE_DOMAIN;
	if (is_extension(p->flow.protocol))
		reason = packet_walk(ctx, c, p, SRH_WANTED, true, srh);
	if (!reason && segments_left(ctx, *srh))
		reason = REASON_SEGMENTS_LEFT;
	if (reason)
		return reason;
	next = p->flow.protocol;
	*length = p->length - c->left;
	*p = (struct packet){};
	return inner_parse(ctx, c, next, p);
}

/*
 * End.SHADOW: a stray that a host sent back goes to the owner that its bucket had before the latest
 * change, as the last offer. Inlined, for it takes the place of edge_forward on the stack.
 */
static __always_inline int end_shadow(struct xdp_md *ctx, struct cursor *c, struct frame *f,
				      struct packet *p)
{
	struct ipv6hdr *outer = (void *)(long)ctx->data + (frame_l2_length(f) & OFFSET_MAX);
	__u32 srh = 0, length, traffic_class = p->traffic_class;
	struct service_key key = {};
	struct service *service;
	__u8 hop_limit;
	int reason;

	if ((void *)(outer + 1) > (void *)(long)ctx->data_end)
		return drop(REASON_TRUNCATED);
	hop_limit = outer->hop_limit;
	reason = last_segment(ctx, c, p, &length, &srh);
	if (reason)
		return drop(reason);
	key.vip = p->flow.destination;
	key.ipv4 = p->flow.ipv4;
	service = service_find(p, &key);
	if (!service)
		return drop(p->error ? p->error : REASON_NO_SERVICE);
	reason = ecn_take(ctx, p, traffic_class);
	if (reason)
		return drop(reason);
	p->traffic_class = (p->traffic_class & ~ECN_MASK) |
			   ecn_combine(p->traffic_class, traffic_class);
	if (hop_limit <= 1 || hops_read(ctx, p) <= 1)
		return drop(REASON_HOP_LIMIT);
	return shadow_forward(ctx, f, p, service, length, hop_limit - 1);
}

/* The backend of a chain that has the SID which the SRH names as the first of its path, 0: none. */
static __always_inline __u32 owner_named(struct xdp_md *ctx, const struct chain *chain,
					 __u32 srh_offset)
{
	struct routing_header *srh = srh_at(ctx, srh_offset);
	struct address owner, segment;

	/* [1] is there: the walk has seen as many segments as the last entry says. */
	if (!srh || !srh->last_entry ||
	    bpf_xdp_load_bytes(ctx, srh_offset + sizeof(*srh) + sizeof(owner), &owner,
			       sizeof(owner))) {
		cache_count(CACHE_REFUSED_UNNAMED);
		return 0;
	}
#pragma unroll
	for (int i = 0; i < CHAIN_MAX; i++) {
		struct chain one = { .ids = { chain->ids[i] } };

		if (i < chain->length && first_segment(settings.encapsulation, &one, 1, &segment) &&
		    segment.word[0] == owner.word[0] && segment.word[1] == owner.word[1])
			return bpf_ntohs(chain->ids[i]);
	}
	cache_count(CACHE_REFUSED_STRANGER);
	return 0;
}

/* Notes who sent a SYN-ACK. Whatever it says, it goes on to its client. */
static __always_inline void learn(struct xdp_md *ctx, const struct packet *p,
				  const struct service *service, __u32 srh_offset)
{
	__u64 hash = flow_hash(&settings.domain.secret, &p->flow);
	struct chain *chain = chain_find(service, hash);
	__u32 owner;

	if (!chain)
		return;
	owner = owner_named(ctx, chain, srh_offset);
	if (!owner)
		return;
	flow_remember(hash, owner);
	cache_count(CACHE_STORED);
}

/* End.LEARN: a SYN-ACK that a host sent by way of the edge becomes one on the way to its client. */
static __always_inline int end_learn(struct xdp_md *ctx, struct cursor *c, struct frame *f,
				     struct packet *p)
{
	__u32 srh = 0, length, traffic_class = p->traffic_class;
	struct service_key key = {};
	struct service *service;
	int reason = last_segment(ctx, c, p, &length, &srh);

	if (!reason &&
	    (p->flow.protocol != IPPROTO_TCP || p->icmp || p->fragment || !is_syn_ack(p)))
		reason = REASON_UPPER_LAYER;
	if (reason)
		return drop(reason);
	flow_turn(&p->flow);
	key.vip = p->flow.destination;
	key.ipv4 = p->flow.ipv4;
	service = service_find(p, &key);
	if (!service)
		return drop(REASON_NO_SERVICE);
	reason = ecn_take(ctx, p, traffic_class);
	if (reason)
		return drop(reason);
	learn(ctx, p, service, srh);
	return decapsulate_as(ctx, f, p, length, OUTCOME_LEARNED);
}

/* A packet of the SR domain to the edge itself. */
static __always_inline int edge_itself(struct xdp_md *ctx, struct cursor *c, struct frame *f,
				       struct packet *p)
{
	struct answering *a;
	int verdict;

	if (is_shadow(&p->flow.destination))
		return end_shadow(ctx, c, f, p);
	if (is_learn(&p->flow.destination))
		return end_learn(ctx, c, f, p);
	a = answering_here();
	if (!a)
		return pass();
	frame_copy(&a->frame, f);
	a->about.vip = p->flow.destination;
	a->about.hop_limit = outer_settings.hop_limit;
	verdict = too_big_translate(ctx, c->offset, c->left);
	return verdict < 0 ? pass() : verdict;
}
