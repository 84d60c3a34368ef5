// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Packets to the edge itself: strays (End.SHADOW), SYN-ACKs (End.LEARN), and what routers say about
 * outer packets. Specification: docs/reference/dataplane.md, "Edge".
 */
#pragma once

#include "inner.h"
#include "decap.h"
#include "edge_work.h"
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

/* Sends the inner packet of a stray, in edge_work, on to the previous owner. Not static, so that
 * the verifier looks at it once. */
__noinline int shadow_forward(struct xdp_md *ctx, const struct service *service, __u32 hop_limit)
{
	struct address source = address_read(&settings.domain.source), destination;
	struct edge_work *work = edge_work_here();
	struct next_hop *hop;
	struct chain *chain;
	struct packet *p;
	struct ipv6hdr *ip;
	struct frame *f;
	__u32 id, before;
	__u64 hash;

	if (!work || !service)
		return XDP_ABORTED;
	p = &work->packet;
	f = &work->frame;
	before = frame_l2_length(f) + work->outer_length;
	hash = edge_flow_hash(&p->flow);
	chain = chain_find(service, hash);
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

/*
 * The outer headers of the packet in edge_work, which ends at a SID of the edge's: it is the inner
 * one from then on. Returns 0 or the reason to drop. Not static, so that the verifier looks at it
 * once.
 */
__noinline int last_segment(struct xdp_md *ctx)
{
	struct edge_work *work = edge_work_here();
	int reason = REASON_NONE;
	struct packet *p;
	struct cursor c;
	__u8 next;

	if (!work)
		return REASON_TRUNCATED;
	p = &work->packet;
	work->srh = 0;
	cursor_set(&c, ctx, work->offset, work->left);
	if (!infrastructure_contains(&settings.domain.infrastructure, &p->flow.source))
		return REASON_OUTSIDE_DOMAIN;
	if (is_extension(p->flow.protocol))
		reason = packet_walk(ctx, &c, p, SRH_WANTED, true, &work->srh);
	if (!reason && segments_left(ctx, work->srh))
		reason = REASON_SEGMENTS_LEFT;
	if (reason)
		return reason;
	next = p->flow.protocol;
	work->outer_length = p->length - c.left;
	*p = (struct packet){};
	return inner_parse(ctx, &c, next, p);
}

/*
 * End.SHADOW: a stray that a host sent back goes to the owner that its bucket had before the latest
 * change, as the last offer.
 */
static __always_inline int end_shadow(struct xdp_md *ctx, struct edge_work *work)
{
	struct ipv6hdr *outer =
		(void *)(long)ctx->data + (frame_l2_length(&work->frame) & OFFSET_MAX);
	struct packet *p = &work->packet;
	__u32 traffic_class = p->traffic_class;
	const struct cached_service *cached;
	__u8 hop_limit;
	int reason;

	if ((void *)(outer + 1) > (void *)(long)ctx->data_end)
		return drop(REASON_TRUNCATED);
	hop_limit = outer->hop_limit;
	reason = last_segment(ctx);
	if (reason)
		return drop(reason);
	cached = service_find(p);
	if (!cached)
		return drop(p->error ? p->error : REASON_NO_SERVICE);
	reason = ecn_take(ctx, p, traffic_class);
	if (reason)
		return drop(reason);
	p->traffic_class = (p->traffic_class & ~ECN_MASK) |
			   ecn_combine(p->traffic_class, traffic_class);
	if (hop_limit <= 1 || hops_read(ctx, p) <= 1)
		return drop(REASON_HOP_LIMIT);
	return shadow_forward(ctx, &cached->service, hop_limit - 1);
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

/*
 * Notes who sent the SYN-ACK in edge_work, of whose flow the hash is. Whatever it says, it goes on
 * to its client. Not static, so that the verifier looks at it once.
 */
__noinline int learn(struct xdp_md *ctx, const struct service *service, __u64 hash)
{
	struct edge_work *work = edge_work_here();
	struct chain *chain;
	__u32 owner;

	if (!work || !service)
		return 0;
	chain = chain_find(service, hash);
	if (!chain)
		return 0;
	owner = owner_named(ctx, chain, work->srh);
	if (!owner)
		return 0;
	flow_remember(hash, owner);
	cache_count(CACHE_STORED);
	return 0;
}

/* End.LEARN: a SYN-ACK that a host sent by way of the edge becomes one on the way to its client. */
static __always_inline int end_learn(struct xdp_md *ctx, struct edge_work *work)
{
	struct packet *p = &work->packet;
	__u32 traffic_class = p->traffic_class;
	const struct cached_service *cached;
	int reason = last_segment(ctx);

	if (!reason &&
	    (p->flow.protocol != IPPROTO_TCP || p->icmp || p->fragment || !is_syn_ack(p)))
		reason = REASON_UPPER_LAYER;
	if (reason)
		return drop(reason);
	flow_turn(&p->flow);
	cached = service_find(p);
	if (!cached)
		return drop(REASON_NO_SERVICE);
	reason = ecn_take(ctx, p, traffic_class);
	if (reason)
		return drop(reason);
	learn(ctx, &cached->service, service_flow_hash(cached, &p->flow));
	return decapsulate_as(ctx, &work->frame, p, work->outer_length, OUTCOME_LEARNED);
}

/* What edge_parse returns beside the program's own values. */
enum parsed {
	PARSED = -1, /* a packet from outside, perhaps to a service */
	PARSED_FOR_EDGE = -2, /* one of the SR domain to the edge itself */
};

/* The packet in edge_work, which is one of the SR domain to the edge itself. */
static __always_inline int edge_itself(struct xdp_md *ctx, struct edge_work *work)
{
	struct answering *a;
	int verdict;

	if (is_shadow(&work->packet.flow.destination))
		return end_shadow(ctx, work);
	if (is_learn(&work->packet.flow.destination))
		return end_learn(ctx, work);
	a = answering_here();
	if (!a)
		return pass();
	frame_copy(&a->frame, &work->frame);
	a->about.vip = work->packet.flow.destination;
	a->about.hop_limit = outer_settings.hop_limit;
	verdict = too_big_translate(ctx, work->offset, work->left);
	return verdict < 0 ? pass() : verdict;
}
