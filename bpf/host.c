// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The host: a packet that was offered to it is taken or passed on to the next
 * candidate. Whether it is taken is decided by the kernel's socket table and, for
 * a new connection, by the acceptance policy. Specification: docs/dataplane.md, "Host".
 */
#include "include/accept.h"
#include "include/nexthop.h"
#include "include/socket.h"
#include "include/srh.h"
#include "include/take.h"

#include <linux/pkt_cls.h>

/* ===== Configuration ===== */

#define SID_LENGTHS_MAX 4

struct host_settings {
	struct secret secret;
	struct infrastructure infrastructure;
	struct address sid_masks[SID_LENGTHS_MAX]; /* of the local SIDs' prefixes, longest first; word[0] == 0: unused */
	__u64 netns_cookie; /* of the sockets that count as busy */
	__u32 refusal_jiffies; /* how long a refused SYN stays refused */
	__u16 mss_ipv4;
	__u16 mss_ipv6;
};

const volatile struct host_settings settings = {};

enum behavior {
	BEHAVIOR_END_OFFER = 1,
	BEHAVIOR_END_DT4,
	BEHAVIOR_END_DT6,
	BEHAVIOR_END_DT46,
};

/* ===== Tables ===== */

struct sid {
	__u32 behavior; /* enum behavior */
	__u32 reserved;
	struct address argument_mask;
};

/* Local SIDs by their prefix's address; tried once per prefix length in use. */
struct sid_key {
	struct address prefix;
	struct address mask;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct sid_key);
	__type(value, struct sid);
} local_sids SEC(".maps");

/* Per service; index 0 is for packets without a service of this host. */
struct host_traffic {
	__u64 offered; /* first SYNs that arrived with candidates left */
	__u64 accepted; /* of these, taken by the policy */
	__u64 refused; /* of these, passed on by the policy or because they were refused before */
	__u64 forced; /* first SYNs taken as the last candidate */
	struct traffic taken;
	struct traffic passed_on;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct host_traffic);
} host_traffic SEC(".maps");

/*
 * SYNs refused lately: the upper half of the flow hash and the time in jiffies, by the lower
 * half. One slot per hash: a newer refusal overwrites an older one, which may then be decided anew.
 */
#define REFUSALS 65536

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REFUSALS);
	__type(key, __u32);
	__type(value, __u64);
} refusals SEC(".maps");

/* ===== Steps ===== */

static __always_inline struct sid *sid_find(const struct address *destination)
{
#pragma unroll
	for (int i = 0; i < SID_LENGTHS_MAX; i++) {
		struct sid_key key;
		struct sid *sid;

		key.mask = address_read(&settings.sid_masks[i]);
		if (!key.mask.word[0])
			break;
		key.prefix.word[0] = destination->word[0] & key.mask.word[0];
		key.prefix.word[1] = destination->word[1] & key.mask.word[1];
		sid = bpf_map_lookup_elem(&local_sids, &key);
		if (sid)
			return sid;
	}
	return 0;
}

static __always_inline bool has_argument(const struct sid *sid, const struct address *destination)
{
	return (destination->word[0] & sid->argument_mask.word[0]) || (destination->word[1] & sid->argument_mask.word[1]);
}

static __always_inline bool refused_lately(__u64 hash)
{
	__u32 slot = hash % REFUSALS;
	__u64 *refusal = bpf_map_lookup_elem(&refusals, &slot);
	__u32 now = bpf_jiffies64();

	return refusal && *refusal && *refusal >> 32 == hash >> 32 && now - (__u32)*refusal < settings.refusal_jiffies;
}

static __always_inline void refusal_remember(__u64 hash)
{
	__u32 slot = hash % REFUSALS;
	__u64 *refusal = bpf_map_lookup_elem(&refusals, &slot);

	if (refusal)
		*refusal = (hash >> 32) << 32 | (__u32)bpf_jiffies64();
}

static __always_inline __u32 service_index(const struct packet *p)
{
	struct service_key key = {
		.vip = p->flow.destination,
		.port = p->flow.ports >> 16,
		.protocol = p->flow.protocol,
	};
	struct service *service = service_by_port(&key);

	return service ? service->index : 0;
}

/* A new connection that has another candidate: SRLB service hunting. */
static __always_inline bool takes_new_connection(const struct packet *p, __u32 service, struct host_traffic *t)
{
	__u64 hash;
	bool accepted;

	if (!service)
		return false;
	hash = flow_hash(&settings.secret, &p->flow);
	accepted = !refused_lately(hash) && accept_decide(service);
	if (!accepted)
		refusal_remember(hash);
	if (t) {
		t->offered++;
		if (accepted)
			t->accepted++;
		else
			t->refused++;
	}
	return accepted;
}

static __always_inline bool takes(struct xdp_md *ctx, const struct packet *p, bool candidates_left, __u32 service,
				  struct host_traffic *t)
{
	bool opens = p->flow.protocol == IPPROTO_TCP && is_first_syn(p);

	if (!candidates_left) {
		if (opens && t)
			t->forced++;
		return true;
	}
	if (p->flow.protocol != IPPROTO_TCP)
		return false;
	if (connection_is_here(ctx, p, (void *)(long)ctx->data_end))
		return true;
	return opens && takes_new_connection(p, service, t);
}

/* Moves on to the next segment and sends the packet there. */
static __always_inline int pass_on(struct xdp_md *ctx, struct frame *f, struct ipv6hdr *ip, struct routing_header *srh,
				   bool argument)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct address source, destination;
	struct next_hop uncached = {}, *hop = &uncached;
	__u32 shrink = frame_l2_length(f);

	if ((void *)(ip + 1) > end)
		return drop(REASON_TRUNCATED);
	if (argument) {
		carrier_shift(ip);
	} else {
		struct address *segment;

		if (!srh || (void *)(srh + 1) > end || !srh->segments_left)
			return drop(REASON_BAD_SRH);
		srh->segments_left--;
		segment = (struct address *)(srh + 1) + srh->segments_left;
		if ((void *)(segment + 1) > end)
			return drop(REASON_TRUNCATED);
		address_store(&ip->daddr, segment);
	}
	if (ip->hop_limit <= 1) {
		count_in(&drops, REASON_HOP_LIMIT);
		return XDP_PASS; /* the kernel answers Time Exceeded */
	}

	source = address_load(&ip->saddr);
	destination = address_load(&ip->daddr);
	if (argument)
		hop = next_hop_for(ctx, &source, &destination, bpf_ntohs(((__be16 *)&ip->daddr)[2]),
				   bpf_ntohl(*(__be32 *)ip));
	else
		next_hop_resolve(ctx, &source, &destination, bpf_ntohl(*(__be32 *)ip), hop);
	if (!hop || hop->how == NEXT_HOP_NONE)
		return drop(REASON_NO_ROUTE);
	if (hop->how == NEXT_HOP_HAND) {
		count_in(&outcomes, OUTCOME_HANDED);
		return XDP_PASS;
	}
	if (sizeof(*ip) + bpf_ntohs(ip->payload_len) > hop->mtu)
		return drop(REASON_PACKET_TOO_BIG);
	ip->hop_limit--;
	next_hop_apply(ctx, hop, f);
	shrink -= frame_l2_length(f);
	if (shrink && bpf_xdp_adjust_head(ctx, shrink))
		return drop(REASON_TRUNCATED);
	data = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (!frame_write(f, data, end))
		return drop(REASON_TRUNCATED);
	return next_hop_send(ctx, hop);
}

static __always_inline int inner_parse(struct cursor *c, __u8 next, struct packet *inner)
{
	struct walk walk = {};
	int reason;

	if (next == IPPROTO_IPIP) {
		reason = ipv4_parse(c, inner);
	} else if (next == IPPROTO_IPV6) {
		reason = ipv6_parse(c, inner);
		walk.next = inner->flow.protocol;
		if (!reason && unlikely(is_extension(walk.next))) {
			reason = walk_extensions(c, &walk, SRH_IS_ROUTING_HEADER);
			inner->flow.protocol = walk.next;
			inner->error = walk.error;
		}
	} else {
		return REASON_UPPER_LAYER;
	}
	if (reason)
		return reason;
	transport_parse(c, inner);
	return inner->error;
}

static __always_inline int end_offer(struct xdp_md *ctx, struct cursor *c, struct frame *f, const struct packet *outer,
				     const struct walk *walk, const struct sid *sid)
{
	bool argument = has_argument(sid, &outer->flow.destination);
	struct routing_header *srh = walk->srh;
	struct host_traffic *t;
	struct packet inner = {};
	void *end = (void *)(long)ctx->data_end;
	bool candidates_left = argument;
	__u32 service;
	int reason;

	if (srh && (void *)(srh + 1) <= end && srh->segments_left)
		candidates_left = true;
	reason = inner_parse(c, walk->next, &inner);
	if (reason)
		return drop(reason);

	service = service_index(&inner);
	t = bpf_map_lookup_elem(&host_traffic, &service);
	if (!takes(ctx, &inner, candidates_left, service, t)) {
		if (t)
			traffic_add(&t->passed_on, inner.length);
		return pass_on(ctx, f, outer->ip, srh, argument);
	}
	reason = ecn_take(&inner, outer->traffic_class, end);
	if (reason)
		return drop(reason);
	if (inner.flow.protocol == IPPROTO_TCP && is_first_syn(&inner) && (void *)(inner.tcp + 1) <= end)
		mss_clamp(inner.tcp, end, inner.flow.ipv4 ? settings.mss_ipv4 : settings.mss_ipv6);
	if (t)
		traffic_add(&t->taken, inner.length);
	return decapsulate(ctx, f, &inner);
}

/* The inner header of a decapsulating SID: version and family only, the kernel checks the rest. */
static __always_inline int inner_header(struct cursor *c, __u8 next, __u32 behavior, struct packet *inner)
{
	bool ipv4 = next == IPPROTO_IPIP;

	if (!(ipv4 && behavior != BEHAVIOR_END_DT6) && !(next == IPPROTO_IPV6 && behavior != BEHAVIOR_END_DT4))
		return REASON_UPPER_LAYER;
	if (!cursor_has(c, ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)))
		return REASON_TRUNCATED;
	inner->ip = c->pos;
	inner->flow.ipv4 = ipv4;
	if (*(__u8 *)c->pos >> 4 != (ipv4 ? 4 : 6))
		return REASON_BAD_IP_HEADER;
	inner->traffic_class = ipv4 ? ((__u8 *)c->pos)[1] : bpf_ntohs(*(__be16 *)c->pos) >> 4;
	return REASON_NONE;
}

static __always_inline int end_dt(struct xdp_md *ctx, struct cursor *c, struct frame *f, const struct packet *outer,
				  const struct walk *walk, const struct sid *sid)
{
	struct routing_header *srh = walk->srh;
	struct packet inner = {};
	void *end = (void *)(long)ctx->data_end;
	int reason;

	if (has_argument(sid, &outer->flow.destination) || (srh && (void *)(srh + 1) <= end && srh->segments_left))
		return drop(REASON_SEGMENTS_LEFT);
	reason = inner_header(c, walk->next, sid->behavior, &inner);
	if (reason)
		return drop(reason);
	reason = ecn_take(&inner, outer->traffic_class, end);
	if (reason)
		return drop(reason);
	return decapsulate(ctx, f, &inner);
}

/* ===== Programs ===== */

SEC("xdp.frags")
int host(struct xdp_md *ctx)
{
	struct cursor c = {
		.pos = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
		.left = bpf_xdp_get_buff_len(ctx),
	};
	struct packet outer = {};
	struct walk walk = {};
	struct frame f;
	struct sid *sid;
	int reason = frame_parse(&c, &f);

	if (reason)
		return drop(reason);
	if (f.ethertype != bpf_htons(ETH_P_IPV6))
		return pass();
	reason = ipv6_parse(&c, &outer);
	if (reason)
		return drop(reason);
	sid = sid_find(&outer.flow.destination);
	if (!sid)
		return pass();
	if (!infrastructure_contains(&settings.infrastructure, &outer.flow.source))
		return drop(REASON_OUTSIDE_DOMAIN);

	walk.next = outer.flow.protocol;
	reason = walk_extensions(&c, &walk, SRH_WANTED);
	if (!reason)
		reason = walk.error;
	if (reason)
		return drop(reason);
	if (sid->behavior == BEHAVIOR_END_OFFER)
		return end_offer(ctx, &c, &f, &outer, &walk, sid);
	return end_dt(ctx, &c, &f, &outer, &walk, sid);
}

/* Leaving: SYN-ACKs of this host's services get the MSS that fits the way back in (TC egress). */
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
	if (reason || p.error || p.flow.protocol != IPPROTO_TCP || !tcp_parse(&c, &p) || !is_syn_ack(&p))
		return TC_ACT_UNSPEC;
	key.vip = p.flow.source;
	key.port = p.flow.ports;
	key.protocol = IPPROTO_TCP;
	if (service_by_port(&key))
		mss_clamp_skb(skb, p.tcp, c.end, frame_l2_length(&f) + p.length - c.left,
			      p.flow.ipv4 ? settings.mss_ipv4 : settings.mss_ipv6);
	return TC_ACT_UNSPEC;
}

/* The service of a local socket, 0: none. */
static __always_inline __u32 socket_service(struct bpf_sock_ops *ops)
{
	struct service_key key = {
		.port = bpf_htons(ops->local_port),
		.protocol = IPPROTO_TCP,
	};
	struct service *service;

	if (ops->family == AF_INET) {
		key.vip = address_from_ipv4(ops->local_ip4);
	} else {
		/* The context is read in 32-bit words: volatile keeps the compiler from joining them. */
		volatile __u32 *word = ops->local_ip6;

		key.vip.word[0] = (__u64)word[0] | (__u64)word[1] << 32;
		key.vip.word[1] = (__u64)word[2] | (__u64)word[3] << 32;
	}
	service = service_by_port(&key);
	return service ? service->index : 0;
}

static __always_inline bool is_busy_state(__u32 state)
{
	return state == TCP_STATE_ESTABLISHED || state == TCP_STATE_CLOSE_WAIT;
}

/* Busy connections: counted from when they are established until the server closes (sockops, cgroup). */
SEC("sockops")
int host_sockets(struct bpf_sock_ops *ops)
{
	bool before, after;
	__u32 service;
	__s32 *connections;

	if (ops->op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		if (bpf_get_netns_cookie(ops) == settings.netns_cookie && socket_service(ops))
			bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
		return 1;
	}
	if (ops->op != BPF_SOCK_OPS_STATE_CB)
		return 1;
	before = is_busy_state(ops->args[0]);
	after = is_busy_state(ops->args[1]);
	if (before == after || bpf_get_netns_cookie(ops) != settings.netns_cookie)
		return 1;
	service = socket_service(ops);
	connections = service ? bpf_map_lookup_elem(&busy, &service) : 0;
	if (connections)
		__sync_fetch_and_add(connections, after ? 1 : -1);
	return 1;
}

char _license[] SEC("license") = "Dual BSD/GPL";
