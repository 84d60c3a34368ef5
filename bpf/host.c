// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The host: a packet that was offered to it is taken or passed on to the next
 * candidate. Whether it is taken is decided by the kernel's socket table and, for
 * a new connection, by the acceptance policy. Specification: docs/reference/dataplane.md, "Host".
 */
#define CAPTURES

#include "include/accept.h"
#include "include/backlog.h"
#include "include/end_dt_cond.h"
#include "include/guard.h"
#include "include/hmac.h"
#include "include/host.h"
#include "include/inner.h"
#include "include/end_learn.h"
#include "include/offer_copies.h"
#include "include/pass_on.h"
#include "include/quicflow.h"
#include "include/refused_syn.h"
#include "include/signals.h"
#include "include/socket.h"
#include "include/sockops.h"
#include "include/decap.h"

/* ===== Steps ===== */

#define SERVICE_QUIC 0x80000000

/* With SERVICE_QUIC for one of QUIC. */
static __always_inline __u32 service_index(const struct packet *p)
{
	struct service_key key = service_key_of(&p->flow.destination, service_kind(&p->flow));
	struct service *service = service_by_port(&key);

	if (!service)
		return 0;
	return service->quic ? service->index | SERVICE_QUIC : service->index;
}

/*
 * The outer flow label is the flow hash's, but for a note of the candidate before in its upper 12
 * bits. Its lower 8 bits stay: they choose among equal paths. A label whose upper 12 bits are 0, as
 * that of a health check, has no note and gets none.
 */
#define NOTE_LABEL_SHIFT 8

static __always_inline __u32 label_of(__u64 hash)
{
	__u32 label = hash & 0xfffff;

	return label ? label : 1;
}

/* Not inlined, to spare the stack of what leaves. Not static: behind a call of a static function,
 * Linux 6.1 loses sight of what its caller keeps. */
__noinline __u64 host_flow_hash(const struct flow *f)
{
	return f ? flow_hash(&settings.domain.secret, f) : 0;
}

/* A first SYN. */
static __always_inline bool opens(const struct packet *p)
{
	return p->flow.protocol == IPPROTO_TCP && is_first_syn(p);
}

/*
 * A first SYN for a service or for the last candidate: SRLB service hunting. Not static, so that
 * the verifier looks at it once, and not for each way in which a packet can have come here.
 */
__noinline int offer_new_connection(struct xdp_md *ctx, const struct frame *f,
				    const struct outer *outer, const struct packet *p,
				    __u32 service)
{
	struct host_traffic *t;
	struct offer offer = {};
	struct ipv6hdr *ip;
	__u32 label, difference, answer = 0;
	bool refused;
	__u64 hash;

	if (!f || !outer || !p)
		return false;
	t = bpf_map_lookup_elem(&served, &service);
	offer.left = segments_left(ctx, outer->srh);
	ip = (void *)(long)ctx->data + (frame_l2_length(f) & OFFSET_MAX);
	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return false;
	offer.left += argument_ids(outer, ip);
	if (!t)
		return !offer.left;
	if (!offer.left) {
		t->forced++;
		if (!accept_learns(service))
			return true;
	}
	hash = outer->hash;
	label = bpf_ntohl(*(__be32 *)ip) & 0xfffff;
	difference = label ^ label_of(hash);
	if (label >> NOTE_LABEL_SHIFT && !(difference & ((1 << NOTE_LABEL_SHIFT) - 1)))
		offer.told = difference >> NOTE_LABEL_SHIFT;
	refused = offer.left && refused_lately(hash, settings.refusal_jiffies);
	if (!refused) {
		backlog_report(ctx, p, service);
		answer = accept_decide(service, &offer);
	}
	if (!offer.left)
		return true;
	t->offered++;
	if (answer == ACCEPTED) {
		t->accepted++;
		return true;
	}
	t->refused++;
	if (!refused)
		refusal_remember(hash);
	if (answer && label >> NOTE_LABEL_SHIFT) /* replaces the note of the candidate before */
		*(__be32 *)ip ^= bpf_htonl((answer ^ offer.told) << NOTE_LABEL_SHIFT);
	return false;
}

enum quic_place {
	QUIC_ELSEWHERE,
	QUIC_COMES_ALONE, /* nobody else can have it */
	QUIC_HERE,
	QUIC_NEW, /* it is offered as a first SYN is */
};

/*
 * A packet to a QUIC server: others than those that open a connection are for the host that took
 * it. What comes here alone, because its connection ID says so, is taken.
 */
__noinline int place_quic(struct xdp_md *ctx, const struct outer *outer, const struct packet *p)
{
	bool left;

	if (!outer || !p)
		return QUIC_ELSEWHERE;
	left = outer->argument || segments_left(ctx, outer->srh);
	if (quic_is_here(outer->hash, settings.refusal_jiffies))
		return QUIC_HERE;
	if (!quic_opens(ctx, p))
		return left ? QUIC_ELSEWHERE : QUIC_COMES_ALONE;
	return left && !quic_has_server(ctx, p) ? QUIC_ELSEWHERE : QUIC_NEW;
}

static __always_inline bool takes_quic(struct xdp_md *ctx, const struct frame *f,
				       const struct outer *outer, const struct packet *p,
				       __u32 service)
{
	int place = place_quic(ctx, outer, p);

	if (place < QUIC_HERE)
		return place == QUIC_COMES_ALONE;
	if (place == QUIC_NEW && !offer_new_connection(ctx, f, outer, p, service))
		return false;
	if (!p->icmp)
		quic_remember(outer->hash);
	return true;
}

static __always_inline bool takes(struct xdp_md *ctx, struct frame *f, const struct outer *outer,
				  const struct packet *p, bool candidates_left, __u32 service,
				  bool quic)
{
	if (unlikely(quic))
		return takes_quic(ctx, f, outer, p, service);
	if (!candidates_left) {
		if (opens(p))
			offer_new_connection(ctx, f, outer, p, service);
		return true;
	}
	if (p->flow.protocol != IPPROTO_TCP)
		return false;
	if (connection_is_here(ctx, p))
		return true;
	return opens(p) && service && offer_new_connection(ctx, f, outer, p, service);
}

/* Whether a decapsulating SID is for what is behind the outer headers. */
static __always_inline bool decapsulates(const struct outer *outer)
{
	if (outer->next == IPPROTO_IPIP)
		return outer->behavior != BEHAVIOR_END_DT6 &&
		       outer->behavior != BEHAVIOR_END_DT6_COND;
	if (outer->next == IPPROTO_IPV6)
		return outer->behavior != BEHAVIOR_END_DT4 &&
		       outer->behavior != BEHAVIOR_END_DT4_COND;
	return false;
}

/* For how many jiffies copies of a packet are looked for. A SYN that was refused stays so. */
static __always_inline __u32 copy_window(const struct packet *inner)
{
	return opens(inner) ? settings.refusal_jiffies : copy_jiffies;
}

/*
 * The ends that ask whose connection it is: End.OFFER, which passes on what it does not take, and
 * End.DT4.COND, End.DT6.COND, End.DT46.COND, which send strays back.
 */
static __always_inline int end_by_connection(struct xdp_md *ctx, struct cursor *c, struct frame *f,
					     struct outer *outer, struct packet *inner)
{
	bool offer = outer->behavior == BEHAVIOR_END_OFFER;
	bool left = outer->argument || segments_left(ctx, outer->srh);
	struct host_traffic *t;
	int reason = REASON_NONE, seen = COPY_FIRST;
	__u32 service;
	__u64 copy;
	bool quic, taken;

	if (!offer && left)
		return drop(REASON_SEGMENTS_LEFT);
	if (!decapsulates(outer))
		return drop(REASON_UPPER_LAYER);
	if (unlikely(!inner_parse_plain(*c, outer->next, inner)))
		reason = inner_parse_at(ctx, inner, c->offset, c->left, outer->next);
	if (reason)
		return drop(reason);
	/* What the ways through the parser have found is one state to the verifier from here on. */
	barrier();
	service = service_index(inner);
	quic = service & SERVICE_QUIC;
	service &= ~SERVICE_QUIC;
	if (quic || opens(inner) || outer->copy)
		outer->hash = flow_hash(&settings.domain.secret, &inner->flow);
	t = bpf_map_lookup_elem(&served, &service);
	copy = outer->copy ? copy_identity(ctx, inner, outer->hash) : 0;
	if (copy)
		seen = copy_judge(copy, outer->copy - 1, copy_window(inner));
	if (unlikely(seen == COPY_TAKEN))
		return drop(REASON_DUPLICATE);
	if (offer)
		taken = !(left && seen == COPY_PASSED) &&
			takes(ctx, f, outer, inner, left, service, quic);
	else
		taken = !is_stray(ctx, inner);
	if (offer && !taken && pass_to_self(ctx, f, outer))
		taken = takes(ctx, f, outer, inner, false, service, quic);
	if (!taken) {
		if (t)
			traffic_add(&t->passed_on, inner->length);
		if (copy && !seen)
			copy_passed_on(copy, copy_window(inner));
		return offer ? pass_on(ctx, f, outer->srh, outer->argument) :
			       send_back(ctx, f, outer, inner);
	}
	reason = ecn_take(ctx, inner, outer->traffic_class);
	if (reason)
		return drop(reason);
	if (unlikely(inner->fragment == FRAGMENT_FIRST) && inner->flow.protocol == IPPROTO_TCP)
		fragment_remember(inner);
	if (has_learners() && offer && service && opens(inner))
		asker_remember(ctx, frame_l2_length(f), outer->hash, outer->sid,
			       settings.refusal_jiffies);
	if (service && inner->flow.protocol == IPPROTO_TCP && (inner->tcp_flags & TCP_FLAG_SYN))
		mss_clamp(ctx, inner->transport,
			  inner->flow.ipv4 ? settings.mss_ipv4 : settings.mss_ipv6);
	if (t)
		traffic_add(&t->taken, inner->length);
	return decapsulate(ctx, f, inner, outer->length);
}

/* The inner header of a decapsulating SID: version and family only, the kernel checks the rest. */
static __always_inline int inner_header(struct cursor *c, const struct outer *outer,
					struct packet *inner)
{
	bool ipv4 = outer->next == IPPROTO_IPIP;

	if (!decapsulates(outer))
		return REASON_UPPER_LAYER;
	if (!cursor_has(c, ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)))
		return REASON_TRUNCATED;
	inner->ip = c->offset;
	inner->flow.ipv4 = ipv4;
	if (*(__u8 *)c->pos >> 4 != (ipv4 ? 4 : 6))
		return REASON_BAD_IP_HEADER;
	inner->traffic_class = ipv4 ? ((__u8 *)c->pos)[1] : bpf_ntohs(*(__be16 *)c->pos) >> 4;
	return REASON_NONE;
}

static __always_inline int end_dt(struct xdp_md *ctx, struct cursor *c, struct frame *f,
				  const struct outer *outer, struct packet *inner)
{
	int reason;

	if (outer->argument || segments_left(ctx, outer->srh))
		return drop(REASON_SEGMENTS_LEFT);
	reason = inner_header(c, outer, inner);
	if (reason)
		return drop(reason);
	reason = ecn_take(ctx, inner, outer->traffic_class);
	if (reason)
		return drop(reason);
	return decapsulate(ctx, f, inner, outer->length);
}

/* Reads the outer headers of a packet to a local SID. Returns 0, a reason to drop, or -1: not for
 * us. */
static __always_inline int outer_parse(struct xdp_md *ctx, struct cursor *c, struct packet *p,
				       struct outer *outer)
{
	int reason = ipv6_parse(c, p);
	__u32 sid;

	if (reason)
		return reason;
	sid = sid_find(&p->flow.destination);
	if (sid >= SIDS_MAX)
		return guard_transit(ctx, c, p, &settings.domain);
	if (!infrastructure_contains(&settings.domain.infrastructure, &p->flow.source))
		return REASON_OUTSIDE_DOMAIN;
	if (is_extension(p->flow.protocol)) {
		reason = packet_walk(ctx, c, p, SRH_WANTED, true, &outer->srh);
		if (reason)
			return reason;
	}
	if (hmac_rule) {
		reason = hmac_check(ctx, p, outer->srh);
		if (reason)
			return reason;
	}
	outer->sid = sid;
	outer->behavior = settings.sids[sid].behavior;
	outer->argument = has_argument(&settings.sids[sid], &p->flow.destination);
	if (outer->argument && outer->behavior == BEHAVIOR_END_OFFER &&
	    unlikely(may_have_mark(p->flow.destination.word[0]) ||
		     may_have_mark(p->flow.destination.word[1])))
		copy_mark_read(outer, &p->flow.destination);
	outer->length = p->length - c->left;
	outer->traffic_class = p->traffic_class;
	outer->next = p->flow.protocol;
	return REASON_NONE;
}

/* ===== Programs ===== */

static __always_inline int host_process(struct xdp_md *ctx)
{
	struct cursor c = cursor_at_start(ctx);
	struct packet p = {}, *inner;
	struct outer outer = {};
	struct frame f;
	int reason = frame_parse(&c, &f);

	if (reason)
		return drop(reason);
	if (f.ethertype != bpf_htons(ETH_P_IPV6))
		return pass();
	reason = outer_parse(ctx, &c, &p, &outer);
	if (reason < 0)
		return pass();
	if (reason)
		return drop(reason);
	inner = inner_here();
	if (!inner)
		return XDP_ABORTED;
	*inner = (struct packet){};
	if (outer.behavior == BEHAVIOR_END_OFFER || outer.behavior >= BEHAVIOR_END_DT4_COND)
		return end_by_connection(ctx, &c, &f, &outer, inner);
	return end_dt(ctx, &c, &f, &outer, inner);
}

SEC("xdp.frags")
int host(struct xdp_md *ctx)
{
	return CAPTURED(ctx, host_process(ctx));
}

/* A SYN-ACK of a service goes by way of the edge that asked for it. */
static __noinline int leave_by_edge(struct __sk_buff *skb, struct packet *p, __u32 service)
{
	struct host_signals *s = bpf_map_lookup_elem(&signals, &service);
	struct address source = address_read(&settings.domain.source), owner;
	struct asker *asker;
	__u64 hash;
	int verdict;

	flow_turn(&p->flow);
	hash = host_flow_hash(&p->flow);
	asker = asker_find(skb, hash);
	if (!asker || !s)
		return TC_ACT_UNSPEC;
	owner = address_read(&settings.sids[asker->sid % SIDS_MAX].prefix.address);
	verdict = learn_send(skb, p, asker, hash, &source, &owner);
	if (verdict == TC_ACT_UNSPEC)
		s->not_routed++;
	else
		s->by_edge++;
	return verdict;
}

/*
 * Whether a RST is about a packet of a connection that is not here. The last of a chain answers
 * those that no host has, from any sender: they say nothing of the server. RSTs about SYNs, and
 * those by which a server ends a connection, have ACK. If the accept queue has no room, the
 * connection is still a request, and the RST is about what this host's SYN-ACK asked for.
 */
static __noinline bool is_about_stray(struct __sk_buff *skb, struct packet *p)
{
	struct initial_numbers numbers = {};
	struct bpf_sock *sk;
	bool stray = false;

	if (p->tcp_flags & TCP_FLAG_ACK)
		return false;
	flow_turn(&p->flow);
	sk = socket_lookup((void *)skb, p, BPF_F_CURRENT_NETNS);
	if (!sk)
		return true;
	if (sk->state == TCP_STATE_LISTEN)
		stray = true;
	else if (sk->state == TCP_STATE_NEW_SYN_RECV)
		stray = numbers_of_request(sk, &numbers) && p->sequence != numbers.sent + 1;
	bpf_sk_release(sk);
	return stray;
}

/*
 * Leaving: SYN-ACKs of this host's services get the MSS that fits the way back in, and go by way of
 * the edge if that wants it; RSTs are counted (TC egress).
 */
SEC("tc")
int host_leave(struct __sk_buff *skb)
{
	struct cursor c = {
		.pos = (void *)(long)skb->data,
		.end = (void *)(long)skb->data_end,
		.left = skb->len,
	};
	struct packet p = {};
	struct service_key key = {};
	struct host_signals *s;
	struct service *service;
	struct frame f;
	int reason = frame_parse(&c, &f);

	if (reason)
		return TC_ACT_UNSPEC;
	if (f.ethertype == bpf_htons(ETH_P_IP))
		reason = ipv4_parse(&c, &p);
	else if (f.ethertype == bpf_htons(ETH_P_IPV6))
		reason = ipv6_parse(&c, &p);
	else
		return TC_ACT_UNSPEC;
	if (reason || p.fragment || p.flow.protocol != IPPROTO_TCP || !tcp_parse(&c, &p) ||
	    !(is_syn_ack(&p) || p.tcp_flags & TCP_FLAG_RST))
		return TC_ACT_UNSPEC;
	key.vip = p.flow.source;
	key.ipv4 = p.flow.ipv4;
	key.port = p.flow.ports;
	key.protocol = IPPROTO_TCP;
	service = service_by_port(&key);
	if (!service)
		return TC_ACT_UNSPEC;
	if (is_syn_ack(&p)) {
		mss_clamp_skb(skb, p.transport,
			      p.flow.ipv4 ? settings.mss_ipv4 : settings.mss_ipv6);
		return has_learners() ? leave_by_edge(skb, &p, service->index) : TC_ACT_UNSPEC;
	}
	s = bpf_map_lookup_elem(&signals, &service->index);
	if (!s)
		return TC_ACT_UNSPEC;
	s->resets++;
	if (is_about_stray(skb, &p))
		s->stray_resets++;
	return TC_ACT_UNSPEC;
}

/* Busy connections: counted from when they are established until the server closes (sockops,
 * cgroup). */
SEC("sockops")
int host_sockets(struct bpf_sock_ops *ops)
{
	return socket_count(ops, settings.netns_cookie);
}

char _license[] SEC("license") = "Dual BSD/GPL";
