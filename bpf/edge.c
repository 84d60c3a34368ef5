// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The edge: finds the service of a packet from a client, hashes its flow to a
 * bucket, and sends it on as SRv6 along the bucket's chain of backends.
 * It keeps no state per flow. Specification: docs/dataplane.md, "Edge".
 */
#define CAPTURES

#include "include/chain.h"
#include "include/flowcache.h"
#include "include/fragment.h"
#include "include/guard.h"
#include "include/hmac.h"
#include "include/inner.h"
#include "include/nexthop.h"
#include "include/opening.h"
#include "include/quiclb.h"
#include "include/service.h"
#include "include/take.h"
#include "include/translate.h"

/* ===== Configuration ===== */

struct edge_settings {
	struct secret secret;
	struct prefix block; /* SIDs of the domain, a /32 */
	struct locators locators;
	struct infrastructure infrastructure;
	struct address source; /* of the outer header */
	struct address shadow; /* the SID to which hosts send strays; 0: none */
	__u32 buckets; /* per service */
	__be16 last_offer; /* behind a backend's SID: deliver, whatever you know */
	enum encapsulation encapsulation;
	__u8 hop_limit;
	enum side side;
	__u8 reserved[7];
};

const volatile struct edge_settings settings = {};

/* ===== Tables ===== */

/* ===== Steps ===== */

static __always_inline bool is_shadow(const struct address *destination)
{
	return settings.shadow.word[0] && destination->word[0] == settings.shadow.word[0] &&
	       destination->word[1] == settings.shadow.word[1];
}

/* What is for the edge itself: a stray or a SYN-ACK that a host sent back, and what routers of the SR domain say about outer packets. */
static __always_inline bool is_for_edge(const struct packet *p)
{
	struct address source = address_read(&settings.source);

	return is_shadow(&p->flow.destination) || is_learn(&p->flow.destination) ||
	       (p->flow.destination.word[0] == source.word[0] && p->flow.destination.word[1] == source.word[1] &&
		p->flow.protocol == IPPROTO_ICMPV6);
}

static __always_inline int edge_parse_ipv6(struct xdp_md *ctx, struct cursor *c, struct packet *p, bool *for_edge)
{
	bool outside;
	__u32 srh;
	int reason = ipv6_parse(c, p);

	if (reason)
		return reason;
	outside = is_outside(settings.side, &settings.infrastructure, &p->flow.source);
	if (outside) {
		reason = guard_addresses(&settings.block, &settings.locators, &settings.infrastructure, p);
		if (reason)
			return reason;
	} else if (unlikely(is_for_edge(p))) {
		*for_edge = true;
		return REASON_NONE;
	}
	if (likely(!is_extension(p->flow.protocol)))
		return REASON_NONE;
	return packet_walk(ctx, c, p, outside ? SRH_REFUSED : SRH_IS_ROUTING_HEADER, false, &srh);
}

/* The VIP is known but nobody serves this packet, or it is no VIP at all. */
static __always_inline int without_service(struct xdp_md *ctx, struct frame *f, const struct packet *p,
					   struct service_key *key)
{
	key->port = 0;
	key->protocol = 0;
	if (!bpf_map_lookup_elem(&services, key))
		return pass();
	if (p->error)
		return drop(p->error);
	if (!is_icmp(p))
		return drop(REASON_NO_SERVICE);
	/* Without options or extension headers, which a reply would have to reverse. */
	if (p->icmp == ICMP_ECHO &&
	    p->transport - p->ip == (p->flow.ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)))
		return echo_reply(ctx, f, p, settings.hop_limit);
	return pass();
}

static __always_inline struct service *service_find(struct packet *p, struct service_key *key)
{
	struct service *service;

	if (unlikely(p->fragment == FRAGMENT_LATER) && !p->error)
		p->error = fragment_recall(p);
	if (p->error || (p->flow.protocol != IPPROTO_TCP && p->flow.protocol != IPPROTO_UDP))
		return 0;
	key->port = p->flow.ports >> 16;
	key->protocol = p->flow.protocol;
	service = service_by_port(key);
	if (unlikely(p->fragment == FRAGMENT_FIRST) && service)
		fragment_remember(p);
	return service;
}

/* How many of the chain the packet visits. */
static __always_inline __u32 chain_visits(const struct chain *chain, const struct packet *p)
{
	if (p->flow.protocol != IPPROTO_TCP)
		return 1;
	return is_first_syn(p) ? chain->candidates : chain->length;
}

/*
 * The chain of a packet of a QUIC service, and how many of it the packet visits. A connection ID that a server gave out leads to
 * that server alone, which takes it. Others are the client's own: they go along the bucket's chain, as TCP does.
 */
static __always_inline struct chain *quic_chain(struct xdp_md *ctx, const struct packet *p, __u32 service,
						struct chain *chain, __u32 *visits)
{
	__u32 zero = 0, backend = 0;
	struct chain *owner;

	if (p->fragment)
		return chain;
	if (!p->icmp)
		backend = quic_owner(ctx, p, service);
	owner = backend ? bpf_map_lookup_elem(&owners, &zero) : 0;
	if (!owner) {
		*visits = quic_opens(ctx, p) ? chain->candidates : chain->length;
		return chain;
	}
	owner->ids[0] = bpf_htons(backend);
	owner->length = 1;
	*visits = 1;
	return owner;
}

/* First destination of the path. */
static __always_inline bool first_segment(const struct chain *chain, __u32 n, struct address *destination)
{
	__be16 *word = (__be16 *)destination;
	__u32 id = bpf_ntohs(chain->ids[0]);
	struct address *sid;

	if (settings.encapsulation == ENCAPSULATION_CARRIER) {
		*destination = address_read(&settings.block.address);
#pragma unroll
		for (int i = 0; i < CHAIN_MAX; i++)
			word[2 + i] = i < n ? chain->ids[i] : 0;
		return true;
	}
	sid = bpf_map_lookup_elem(&sids, &id);
	if (!sid || !sid->word[0]) /* never set */
		return false;
	*destination = *sid;
	return true;
}

static __always_inline bool srh_write(void *pos, void *end, const struct chain *chain, __u32 n, __u32 segments,
				      __u8 next)
{
	struct srh *srh = pos;

	if (pos + sizeof(*srh) > end)
		return false;
	srh->header = (struct routing_header){
		.next = next,
		.length = srh_length(segments) / 8 - 1,
		.type = ROUTING_TYPE_SRH,
		.segments_left = n - 1,
		.last_entry = segments - 1,
	};
	for (__u32 i = 0; i < CHAIN_MAX; i++) {
		struct address *slot = srh->segments + i, *sid;
		__u32 visit = n - 1 - i, id;

		barrier_var(visit); /* or else the compiler counts a pointer down, whose bounds the verifier loses */
		if (i >= segments || visit >= CHAIN_MAX)
			break;
		id = bpf_ntohs(chain->ids[visit]);
		sid = bpf_map_lookup_elem(&sids, &id);
		if (!sid || (void *)(slot + 1) > end)
			return false;
		*slot = *sid;
		if (!slot->word[0]) /* never set */
			return false;
	}
	return true;
}

/* H.Encaps, RFC 8986 section 5.1 and 5.2. The frame gets the L2 header that f holds instead of its l2_before bytes. */
static __always_inline int encapsulate(struct xdp_md *ctx, struct frame *f, __u32 l2_before, const struct packet *p,
				       const struct chain *chain, __u32 n, const struct address *destination,
				       __u64 hash)
{
	__u32 segments = srh_segments(settings.encapsulation, n);
	__u32 grow = sizeof(struct ipv6hdr) + srh_length(segments);
	__u8 inner_next = p->flow.ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6;
	struct address source = outer_source(p, &settings.source);
	void *data, *end;
	struct ipv6hdr *ip;
	__u32 l2 = frame_l2_length(f);

	if (bpf_xdp_adjust_head(ctx, (int)l2_before - (int)(l2 + grow)))
		return REASON_NO_HEADROOM;
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	f->ethertype = bpf_htons(ETH_P_IPV6);
	if (!frame_write(f, data, end))
		return REASON_NO_HEADROOM;
	ip = data + (l2 & OFFSET_MAX);
	if ((void *)(ip + 1) > end)
		return REASON_NO_HEADROOM;
	outer_write(ip, p, &source, destination, flow_label(hash), segments ? IPPROTO_ROUTING : inner_next,
		    settings.hop_limit, p->length + srh_length(segments));
	if (segments && !srh_write(ip + 1, end, chain, n, segments, inner_next))
		return REASON_NO_BACKEND;
	return segments && hmac_rule ? hmac_sign(ctx, l2 + sizeof(*ip)) : REASON_NONE;
}

static __always_inline int edge_forward(struct xdp_md *ctx, struct frame *f, const struct packet *p,
					const struct service *service)
{
	__u64 hash = flow_hash(&settings.secret, &p->flow);
	struct chain *chain = chain_find(service, hash, settings.buckets);
	struct address source = address_read(&settings.source), destination;
	__u32 n, id, overhead, l2_before = frame_l2_length(f);
	struct next_hop *hop;
	int reason;

	if (p->flow.protocol == IPPROTO_TCP && is_first_syn(p) && !may_open(service->index))
		return drop(REASON_NEW_CONNECTIONS);
	if (!chain)
		return drop(REASON_NO_BACKEND);
	n = chain_visits(chain, p);
	if (p->flow.protocol != IPPROTO_TCP && service->quic)
		chain = quic_chain(ctx, p, service->index, chain, &n);
	else if (flow_cache.sets && n > 1 && p->flow.protocol == IPPROTO_TCP && !is_first_syn(p))
		chain = cached_chain(chain, n, hash);
	if (n == 0 || n > CHAIN_MAX || chain->length == 0 || !first_segment(chain, n, &destination))
		return drop(REASON_NO_BACKEND);

	id = bpf_ntohs(chain->ids[0]);
	hop = next_hop_for(ctx, &source, &destination, id, hash);
	if (!hop || hop->how == NEXT_HOP_NONE)
		return drop(REASON_NO_ROUTE);
	overhead = sizeof(struct ipv6hdr) + srh_length(srh_segments(settings.encapsulation, n));
	if (unlikely(p->length + overhead > hop->mtu && hop->mtu))
		return too_big_answer(ctx, f, p, hop->mtu - overhead, settings.hop_limit);
	if (hop->how == NEXT_HOP_SEND)
		next_hop_apply(ctx, hop, f);
	reason = encapsulate(ctx, f, l2_before, p, chain, n, &destination, hash);
	if (reason)
		return drop(reason);

	traffic_count(service->index, id, p->length);
	if (hop->how == NEXT_HOP_SEND)
		return next_hop_send(ctx, hop);
	count_in(&outcomes, OUTCOME_HANDED);
	return XDP_PASS;
}

/* The SID at which a backend delivers, whatever it knows: where a stray ends that comes back. */
static __always_inline bool last_offer(const struct chain *chain, struct address *destination, __u32 *id)
{
	struct chain owner = {};

	owner.ids[0] = chain->shadow ? chain->shadow : chain->ids[0];
	*id = bpf_ntohs(owner.ids[0]);
	if (!*id || !first_segment(&owner, 1, destination))
		return false;
	((__be16 *)destination)[3] = settings.last_offer;
	return true;
}

/* Sends the inner packet of a stray on, which has outer_length bytes of headers before it, to the owner of before. */
static __always_inline int shadow_forward(struct xdp_md *ctx, struct frame *f, const struct packet *p,
					  const struct service *service, __u32 outer_length, __u8 hop_limit)
{
	__u64 hash = flow_hash(&settings.secret, &p->flow);
	struct chain *chain = chain_find(service, hash, settings.buckets);
	struct address source = address_read(&settings.source), destination;
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
	ip = outer_room(ctx, f, before);
	if (!ip)
		return drop(REASON_TRUNCATED);
	outer_write(ip, p, &source, &destination, flow_label(hash), p->flow.ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6,
		    hop_limit, p->length);
	traffic_count(service->index, id, p->length);
	if (hop->how == NEXT_HOP_SEND)
		return next_hop_send(ctx, hop);
	count_in(&outcomes, OUTCOME_HANDED);
	return XDP_PASS;
}

/* The outer headers of a packet that ends at a SID of the edge's, before length bytes of which the inner one is: p from then on. */
static __always_inline int last_segment(struct xdp_md *ctx, struct cursor *c, struct packet *p, __u32 *length,
					__u32 *srh)
{
	int reason = REASON_NONE;
	__u8 next;

	if (!infrastructure_contains(&settings.infrastructure, &p->flow.source))
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
 * End.SHADOW: a stray that a host sent back goes to the owner that its bucket had before the latest change, as the
 * last offer. Inlined, for it takes the place of edge_forward on the stack.
 */
static __always_inline int end_shadow(struct xdp_md *ctx, struct cursor *c, struct frame *f, struct packet *p)
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
	p->traffic_class = (p->traffic_class & ~ECN_MASK) | ecn_combine(p->traffic_class, traffic_class);
	if (hop_limit <= 1)
		return drop(REASON_HOP_LIMIT);
	return shadow_forward(ctx, f, p, service, length, hop_limit - 1);
}

/* The backend of a chain that has the SID which the SRH names as the first of its path, 0: none. */
static __always_inline __u32 owner_named(struct xdp_md *ctx, const struct chain *chain, __u32 srh_offset)
{
	struct routing_header *srh = srh_at(ctx, srh_offset);
	struct address owner, segment;

	/* [1] is there: the walk has seen as many segments as the last entry says. */
	if (!srh || !srh->last_entry ||
	    bpf_xdp_load_bytes(ctx, srh_offset + sizeof(*srh) + sizeof(owner), &owner, sizeof(owner))) {
		cache_count(CACHE_REFUSED_UNNAMED);
		return 0;
	}
#pragma unroll
	for (int i = 0; i < CHAIN_MAX; i++) {
		struct chain one = { .ids = { chain->ids[i] } };

		if (i < chain->length && first_segment(&one, 1, &segment) && segment.word[0] == owner.word[0] &&
		    segment.word[1] == owner.word[1])
			return bpf_ntohs(chain->ids[i]);
	}
	cache_count(CACHE_REFUSED_STRANGER);
	return 0;
}

/* Notes who sent a SYN-ACK. Whatever it says, it goes on to its client. */
static __always_inline void learn(struct xdp_md *ctx, const struct packet *p, const struct service *service,
				  __u32 srh_offset)
{
	__u64 hash = flow_hash(&settings.secret, &p->flow);
	struct chain *chain = chain_find(service, hash, settings.buckets);
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
static __always_inline int end_learn(struct xdp_md *ctx, struct cursor *c, struct frame *f, struct packet *p)
{
	__u32 srh = 0, length, traffic_class = p->traffic_class;
	struct service_key key = {};
	struct service *service;
	int reason = last_segment(ctx, c, p, &length, &srh);

	if (!reason && (p->flow.protocol != IPPROTO_TCP || p->icmp || p->fragment || !is_syn_ack(p)))
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
static __always_inline int edge_itself(struct xdp_md *ctx, struct cursor *c, struct frame *f, struct packet *p)
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
	a->about.hop_limit = settings.hop_limit;
	verdict = too_big_translate(ctx, c->offset, c->left);
	return verdict < 0 ? pass() : verdict;
}

/* ===== Program ===== */

static __always_inline int edge_process(struct xdp_md *ctx)
{
	struct cursor c = cursor_at_start(ctx);
	struct service_key key = {};
	struct service *service;
	struct packet p = {};
	struct frame f;
	bool for_edge = false;
	int reason = frame_parse(&c, &f);

	if (reason)
		return drop(reason);
	if (f.ethertype == bpf_htons(ETH_P_IP))
		reason = ipv4_parse(&c, &p);
	else if (f.ethertype == bpf_htons(ETH_P_IPV6))
		reason = edge_parse_ipv6(ctx, &c, &p, &for_edge);
	else
		return pass();
	if (reason)
		return drop(reason);
	if (unlikely(for_edge))
		return edge_itself(ctx, &c, &f, &p);
	transport_parse(ctx, &c, &p);

	key.vip = p.flow.destination;
	key.ipv4 = p.flow.ipv4;
	service = service_find(&p, &key);
	if (unlikely(!service))
		return without_service(ctx, &f, &p, &key);
	return edge_forward(ctx, &f, &p, service);
}

SEC("xdp.frags")
int edge(struct xdp_md *ctx)
{
	return CAPTURED(ctx, edge_process);
}

char _license[] SEC("license") = "Dual BSD/GPL";
