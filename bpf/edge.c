// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The edge: finds the service of a packet from a client, hashes its flow to a
 * bucket, and sends it on as SRv6 along the bucket's chain of backends.
 * It keeps no state per flow. Specification: docs/reference/dataplane.md, "Edge".
 */
#define CAPTURES

#include "include/edge_local.h"
#include "include/former.h"
#include "include/options.h"
#include "include/quiclb.h"
#include "include/edge_plain.h"

/* ===== Steps ===== */

static __always_inline int edge_parse_ipv6(struct xdp_md *ctx, struct cursor *c, struct packet *p,
					   bool *for_edge)
{
	bool outside;
	__u32 srh;
	int reason = ipv6_parse(c, p);

	if (reason)
		return reason;
	outside = is_outside(settings.side, &settings.domain, &p->flow.source);
	if (outside) {
		reason = guard_addresses(&settings.domain, p);
		if (reason)
			return reason;
	} else if (unlikely(is_for_edge(p))) {
		*for_edge = true;
		return REASON_NONE;
	}
	if (unlikely(is_extension(p->flow.protocol)))
		reason = packet_walk(ctx, c, p, outside ? SRH_REFUSED : SRH_IS_ROUTING_HEADER,
				     false, &srh);
	if (unlikely(outside && p->flow.protocol == IPPROTO_ICMPV6 && !reason))
		reason = guard_error(&settings.domain, c, p);
	return reason;
}

/* The VIP is known but nobody serves this packet, or it is no VIP at all. */
static __always_inline int without_service(struct xdp_md *ctx, struct edge_work *work)
{
	const struct packet *p = &work->packet;
	struct service_key key = service_key_of(&p->flow.destination, (__u32)p->flow.ipv4 << 24);

	if (!bpf_map_lookup_elem(&services, &key))
		return pass();
	if (p->error)
		return drop(p->error);
	if (!is_icmp(p))
		return drop(REASON_NO_SERVICE);
	/* Without options or extension headers, which a reply would have to reverse. */
	if (p->icmp == ICMP_ECHO &&
	    p->transport - p->ip == (p->flow.ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)))
		return echo_reply(ctx, &work->frame, p, outer_settings.hop_limit);
	return pass();
}

/*
 * The chain of a packet of a QUIC service, and how many of it the packet visits. A connection ID
 * that a server gave out leads to that server alone, which takes it. Others are the client's own:
 * they go along the bucket's chain, as TCP does.
 */
static __always_inline struct chain *quic_chain(struct xdp_md *ctx, const struct packet *p,
						__u32 service, struct chain *chain, __u32 *visits)
{
	__u32 backend = 0;
	struct chain *owner;

	if (p->fragment)
		return chain;
	if (!p->icmp)
		backend = quic_owner(ctx, p, service);
	owner = backend ? chain_of_owner() : 0;
	if (!owner) {
		*visits = quic_opens(ctx, p) ? chain->candidates : chain->length;
		return chain;
	}
	owner->ids[0] = bpf_htons(backend);
	owner->length = 1;
	*visits = 1;
	return owner;
}

/* Tells the sender of a packet why it goes no further. Not inlined, to spare the stack. */
static __noinline int edge_refuse(struct xdp_md *ctx, const struct frame *f, const struct packet *p,
				  enum answer_kind kind, __u32 mtu)
{
	return error_answer(ctx, f, p, kind, mtu, outer_settings.hop_limit);
}

/* Sends the packet of edge_work to its service. hash: that of its flow; admitted: it is within the
 * service's limit. Not static, so that the verifier looks at it once. */
__noinline int edge_forward(struct xdp_md *ctx, const struct service *service, __u64 hash,
			    bool admitted)
{
	struct edge_work *work = edge_work_here();
	struct encap w = { .encapsulation = settings.encapsulation,
			   .cache_event = CACHE_EVENT_NONE,
			   .service = service,
			   .hash = hash };
	struct packet *p;
	struct frame *f;
	__u32 l2_before;

	if (!work || !service)
		return XDP_ABORTED;
	p = &work->packet;
	f = &work->frame;
	work->source = address_read(&settings.domain.source);
	l2_before = frame_l2_length(f);
	if (hops_read(ctx, p) <= 1)
		return edge_refuse(ctx, f, p, ANSWER_TIME_EXCEEDED, 0);
	w.chain = chain_find(service, w.hash);
	if (!admitted && !syn_admit(p, service))
		return drop(REASON_NEW_CONNECTIONS);
	if (!w.chain)
		return drop(REASON_NO_BACKEND);
	w.chain = with_former(service, &p->flow, w.chain);
	w.visits = chain_visits(w.chain, p);
	if (p->flow.protocol != IPPROTO_TCP && service->quic)
		w.chain = quic_chain(ctx, p, service->index, w.chain, &w.visits);
	else if (flow_cache.sets && w.visits > 1 && p->flow.protocol == IPPROTO_TCP &&
		 !is_first_syn(p))
		w.chain = cached_chain(w.chain, w.visits, w.hash, &w.cache_event);
	cache_count(w.cache_event);
	w.copies = copies_wanted(ctx, service, p, p->ip, p->transport) && !f->tags_length;
	if (!encap_begin(&w))
		return drop(REASON_NO_BACKEND);
	w.hop = next_hop_for(ctx, &work->source, &w.destination, encap_first(&w), w.hash);
	if (!w.hop || w.hop->how == NEXT_HOP_NONE)
		return drop(REASON_NO_ROUTE);
	if (unlikely(!encap_fits(&w, p)))
		return edge_refuse(ctx, f, p, ANSWER_TOO_BIG, w.hop->mtu - encap_overhead(&w));
	if (w.hop->how == NEXT_HOP_SEND && !w.second)
		next_hop_apply(ctx, w.hop, f);
	hops_count(ctx, p);
	return encap_send(ctx, f, l2_before, p, &w);
}

/* ===== Program ===== */

/* Parses the packet into edge_work. Returns PARSED, PARSED_FOR_EDGE: it is for the edge itself, or
 * what the program returns. */
static __always_inline int edge_parse(struct xdp_md *ctx, struct edge_work *work)
{
	struct cursor c = cursor_at_start(ctx);
	struct packet *p = &work->packet;
	bool for_edge = false;
	int reason;

	*p = (struct packet){};
	reason = frame_parse(&c, &work->frame);
	if (reason)
		return drop(reason);
	if (work->frame.ethertype == bpf_htons(ETH_P_IP))
		reason = ipv4_forward_parse(ctx, &c, p);
	else if (work->frame.ethertype == bpf_htons(ETH_P_IPV6))
		reason = edge_parse_ipv6(ctx, &c, p, &for_edge);
	else
		return pass();
	if (reason)
		return drop(reason);
	work->offset = c.offset;
	work->left = c.left;
	if (unlikely(for_edge))
		return PARSED_FOR_EDGE;
	/* Whatever the way here was: for the verifier, all of them meet in the work. */
	barrier();
	cursor_set(&c, ctx, work->offset, work->left);
	transport_parse(ctx, &c, p);
	return PARSED;
}

/* The plain packet's way; then the general one for what that has left. */
static __always_inline int edge_judge(struct xdp_md *ctx)
{
	const struct cached_service *cached; /* set where it is read: else each packet would pay */
	int plain = edge_plain(ctx, &cached), verdict;
	struct edge_work *work;

	if (likely(plain >= 0))
		return plain;
	work = edge_work_here();
	if (!work)
		return XDP_ABORTED;
	if (plain == NOT_PLAIN || plain == PLAIN_ADMITTED) {
		verdict = edge_parse(ctx, work);
		if (unlikely(verdict == PARSED_FOR_EDGE))
			return edge_itself(ctx, work);
		if (verdict != PARSED)
			return verdict;
		cached = service_find(&work->packet);
	}
	if (plain == PLAIN_UNSERVED || unlikely(!cached))
		return without_service(ctx, work);
	return edge_forward(ctx, &cached->service, service_flow_hash(cached, &work->packet.flow),
			    plain != NOT_PLAIN);
}

SEC("xdp.frags")
int edge(struct xdp_md *ctx)
{
	return CAPTURED(ctx, edge_judge(ctx));
}

/* Arriving at the kernel (TC): what edge has noted a copy of is sent twice. */
SEC("tc")
int edge_copy(struct __sk_buff *skb)
{
	return copy_send(skb);
}

char _license[] SEC("license") = "Dual BSD/GPL";
