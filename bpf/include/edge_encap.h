// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A packet's way from the edge: its service, how many of which chain it visits, the next hop, and
 * the outer headers that say so. Specification: docs/reference/dataplane.md, "Edge".
 */
#pragma once

#include "chain.h"
#include "edge.h"
#include "edge_copies.h"
#include "flowcache.h"
#include "fragment.h"
#include "hmac.h"
#include "hop_limit.h"
#include "nexthop.h"
#include "path.h"
#include "service_cache.h"
#include "syn_limit.h"

static __always_inline const struct cached_service *service_find(struct packet *p)
{
	const struct cached_service *cached;

	if (unlikely(p->fragment == FRAGMENT_LATER) && !p->error)
		p->error = fragment_recall(p);
	if (p->error || (p->flow.protocol != IPPROTO_TCP && p->flow.protocol != IPPROTO_UDP))
		return 0;
	cached = service_cached(&p->flow, fib_epoch_now());
	if (unlikely(p->fragment == FRAGMENT_FIRST) && cached)
		fragment_remember(p);
	return cached;
}

/* How many of the chain the packet visits. */
static __always_inline __u32 chain_visits(const struct chain *chain, const struct packet *p)
{
	if (p->flow.protocol != IPPROTO_TCP)
		return 1;
	return is_first_syn(p) ? chain->candidates : chain->length;
}

/*
 * The carrier of the first n ids: block, ids, zeros. In words of 8 bytes, as it is written: ids
 * put down one by one would have to reach the memory first.
 */
static __always_inline struct address carrier_of(const struct chain *chain, __u32 n)
{
	__u64 first = *(const __u64 *)chain->ids, last = *(const __u32 *)&chain->ids[4];
	struct address carrier;

	if (n < 4) {
		first &= (1ULL << 16 * n) - 1;
		last = 0;
	} else {
		last &= (1ULL << 16 * (n - 4)) - 1;
	}
	carrier.word[0] = (__u32)settings.domain.block.address.word[0] | first << 32;
	carrier.word[1] = first >> 32 | last << 32;
	/* Or else the compiler keeps halves, and puts them together where they are written. */
	barrier_var(carrier.word[0]);
	barrier_var(carrier.word[1]);
	return carrier;
}

/* First destination of the path. */
static __always_inline bool first_segment(enum encapsulation encapsulation,
					  const struct chain *chain, __u32 n,
					  struct address *destination)
{
	__u32 id = bpf_ntohs(chain->ids[0]);
	struct address *sid;

	if (encapsulation == ENCAPSULATION_CARRIER) {
		*destination = carrier_of(chain, n);
		return true;
	}
	sid = bpf_map_lookup_elem(&sids, &id);
	if (!sid || !sid->word[0]) /* never set */
		return false;
	*destination = *sid;
	return true;
}

/*
 * Writes the segments of an SRH, of which the first is to lie at an offset, for n SIDs that are
 * visited. Returns 0 or the reason to drop. Not static, so that the verifier looks at it once.
 */
__noinline int srh_write_segments(struct xdp_md *ctx, __u32 at, const struct chain *chain,
				  const struct path *path, __u32 n)
{
	struct address *slot = (void *)(long)ctx->data + (at & OFFSET_MAX), *sid;
	void *end = (void *)(long)ctx->data_end;
	__u32 segments = srh_segments(settings.encapsulation, n);

	if (!chain)
		return REASON_NO_BACKEND;
	for (__u32 i = 0; i < CHAIN_MAX; i++, slot++) {
		__u32 visit = n - 1 - i, id;

		barrier_var(visit); /* or else the compiler counts a pointer down, whose bounds the
				       verifier loses */
		if (i >= segments || visit >= CHAIN_MAX)
			break;
		id = bpf_ntohs(path_visited(path, chain, visit));
		sid = bpf_map_lookup_elem(&sids, &id);
		if (!sid || (void *)(slot + 1) > end)
			return REASON_NO_BACKEND;
		*slot = *sid;
		if (!slot->word[0]) /* never set */
			return REASON_NO_BACKEND;
	}
	return REASON_NONE;
}

/* Writes the SRH behind a path's carrier, for which there is room: its one segment is the chain's
 * carrier. */
static __always_inline int srh_write_carrier(struct xdp_md *ctx, __u32 at,
					     const struct chain *chain, __u32 visits)
{
	struct srh *srh = (void *)(long)ctx->data + (at & OFFSET_MAX);
	__u8 *inner = (void *)(srh->segments + 1);

	if ((void *)(inner + 1) > (void *)(long)ctx->data_end ||
	    !first_segment(ENCAPSULATION_CARRIER, chain, visits, srh->segments))
		return REASON_NO_BACKEND;
	srh->header = (struct routing_header){
		.next = *inner >> 4 == 4 ? IPPROTO_IPIP : IPPROTO_IPV6,
		.length = srh_length(1) / 8 - 1,
		.type = ROUTING_TYPE_SRH,
		.segments_left = 1,
	};
	return REASON_NONE;
}

/* Edge forwarding of a packet: service, chain, how many of its SIDs are visited, next hop. */
struct encap {
	enum encapsulation encapsulation; /* a constant of the plain packet's way */
	const struct service *service;
	struct chain *chain;
	const struct path *path; /* to the chain's first, 0: routing's own */
	const struct path *second; /* of the other copy; 0: the packet goes once */
	__u32 visits;
	bool plain; /* a constant: two carriers and copies are not for it */
	bool copies; /* are wanted */
	__u32 segments; /* in the SRH */
	__u32 cache_event; /* to be counted */
	__u64 hash;
	struct address destination; /* of the outer header */
	struct next_hop *hop;
};

/* How many SIDs the packet visits, those of the path included. */
static __always_inline __u32 encap_visits(const struct encap *w)
{
	return w->visits + path_length(w->path);
}

/* Is the chain in a carrier of its own, behind that of the path? */
static __always_inline bool has_two_carriers(const struct encap *w)
{
	return !w->plain && has_paths && w->encapsulation == ENCAPSULATION_CARRIER && w->segments;
}

/* Segments in the SRH of the packet: one if one address can't hold path and chain. */
static __always_inline __u32 encap_segments(const struct encap *w)
{
	if (!w->plain && has_paths && w->encapsulation == ENCAPSULATION_CARRIER)
		return encap_visits(w) > CHAIN_MAX;
	return srh_segments(w->encapsulation, encap_visits(w));
}

/* Takes a token of the limit of new connections for a first SYN. False: there was none left. */
static __always_inline bool syn_admit(const struct packet *p, const struct service *service)
{
	if (likely(!service->limited))
		return true;
	barrier(); /* or else the compiler asks the rest of all packets */
	return p->flow.protocol != IPPROTO_TCP || !is_first_syn(p) ||
	       syn_limit_take(service->index);
}

/* Finds the two paths of copies. They must be different ones, and leave room for the mark. */
static __always_inline void copies_begin(struct encap *w)
{
	const struct path *first = path_at(w->service, w->chain, 0),
			  *second = path_at(w->service, w->chain, 1);

	if (!first || !second || first->paths < COPIES_MAX ||
	    first->length + w->visits >= CHAIN_MAX || second->length + w->visits >= CHAIN_MAX)
		return;
	w->path = first;
	w->second = second;
}

/* Finds the path and the first destination of the outer header. Returns whether the chain has one,
 * and one carrier holds all of a plain packet's. */
static __always_inline bool encap_begin(struct encap *w)
{
	bool carrier = w->encapsulation == ENCAPSULATION_CARRIER;

	if (!w->visits || w->visits > CHAIN_MAX || !w->chain->length)
		return false;
	if (!w->plain && has_paths && w->copies && carrier)
		copies_begin(w);
	if (!w->second && service_has_paths(w->service)) {
		w->path = path_find(w->service, w->chain, w->hash, w->visits,
				    w->plain || !carrier ? CHAIN_MAX : PATH_MAX_SIDS + CHAIN_MAX);
		if (w->plain && !w->path)
			return false; /* one that is longer, perhaps */
	}
	w->segments = encap_segments(w);
	if (w->path && !carrier)
		return path_first_segment(w->path, &w->destination);
	if (!first_segment(w->encapsulation, w->chain, w->visits, &w->destination))
		return false;
	if (w->second)
		copy_lead(&w->destination, w->path, 0);
	else if (w->path && has_two_carriers(w))
		carrier_of_path(&w->destination, w->path);
	else if (w->path)
		carrier_lead(&w->destination, w->path);
	return true;
}

/* The id of the first destination, by which its next hop is remembered. */
static __always_inline __u16 encap_first(const struct encap *w)
{
	bool leads = w->path && (w->plain || w->path->length); /* that of a plain packet has SIDs */

	return bpf_ntohs(leads ? w->path->ids[0] : w->chain->ids[0]);
}

/* How many bytes longer the packet becomes. */
static __always_inline __u32 encap_overhead(const struct encap *w)
{
	return sizeof(struct ipv6hdr) + srh_length(w->segments);
}

/* Whether it then is no longer than the next hop's MTU; 0: the kernel, which finds the next hop,
 * looks at that. */
static __always_inline bool encap_fits(const struct encap *w, const struct packet *p)
{
	return p->length + encap_overhead(w) <= w->hop->mtu || !w->hop->mtu;
}

/* Writes the SRH of a packet, at an offset behind the outer IPv6 header, and signs it if it is to
 * be. Returns 0 or the reason to drop. */
static __always_inline int srh_write(struct xdp_md *ctx, __u32 at, const struct encap *w, __u8 next)
{
	struct srh *srh = (void *)(long)ctx->data + (at & OFFSET_MAX);
	int reason;

	if ((void *)(srh + 1) > (void *)(long)ctx->data_end)
		return REASON_NO_BACKEND;
	srh->header = (struct routing_header){
		.next = next,
		.length = srh_length(w->segments) / 8 - 1,
		.type = ROUTING_TYPE_SRH,
		.segments_left = encap_visits(w) - 1,
		.last_entry = w->segments - 1,
	};
	reason = srh_write_segments(ctx, at + sizeof(*srh), w->chain, w->path, encap_visits(w));
	return !reason && hmac_rule ? hmac_sign(ctx, at) : reason;
}

/* H.Encaps, RFC 8986 section 5.1 and 5.2. The frame gets the L2 header that f holds instead of its
 * l2_before bytes. The SRH behind a path's carrier is left to srh_write_carrier. */
static __always_inline int encapsulate(struct xdp_md *ctx, struct frame *f, __u32 l2_before,
				       const struct packet *p, const struct encap *w)
{
	struct address source;
	__u32 segments = w->segments;
	__u32 grow = sizeof(struct ipv6hdr) + srh_length(segments);
	__u8 inner_next = p->flow.ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6;
	struct ipv6hdr *ip;

	f->ethertype = bpf_htons(ETH_P_IPV6);
	ip = outer_room(ctx, f, l2_before, grow);
	if (!ip)
		return REASON_NO_HEADROOM;
	source = outer_source(p, &settings.domain.source);
	outer_write(ip, edge_traffic_class(p), &source, &w->destination, flow_label(w->hash),
		    segments ? IPPROTO_ROUTING : inner_next, outer_settings.hop_limit,
		    p->length + srh_length(segments));
	if (!segments || has_two_carriers(w))
		return REASON_NONE;
	return srh_write(ctx, frame_l2_length(f) + sizeof(*ip), w, inner_next);
}

/* Encapsulates the packet, in a frame of which l2_before bytes are before it, and sends it. */
static __always_inline int encap_send(struct xdp_md *ctx, struct frame *f, __u32 l2_before,
				      const struct packet *p, const struct encap *w)
{
	int reason = encapsulate(ctx, f, l2_before, p, w);

	if (!reason && has_two_carriers(w))
		reason = srh_write_carrier(ctx, frame_l2_length(f) + sizeof(struct ipv6hdr),
					   w->chain, w->visits);
	if (reason)
		return drop(reason);
	traffic_count(w->service->index, bpf_ntohs(w->chain->ids[0]), p->length);
	if (w->second) {
		struct address carrier = carrier_of(w->chain, w->visits);

		return copies_leave(ctx, w->second, carrier.word[0], carrier.word[1]);
	}
	return next_hop_leave(ctx, w->hop);
}
