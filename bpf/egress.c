// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The egress of protected traffic: End.MERGE decapsulates the first copy of each
 * packet and drops the others. It decides first and strips after, so that a
 * duplicate costs little. Specification: docs/reference/dataplane.md, "Egress".
 */
#include "include/guard.h"
#include "include/inner.h"
#include "include/recovery.h"
#include "include/decap.h"

#include <linux/pkt_cls.h>

/* ===== Configuration ===== */

#define MERGE_SIDS_MAX 16
#define INSTANCES_MAX 256
#define MEMBERS_MAX 8 /* paths of an instance */

struct merge_sid {
	struct prefix prefix; /* what is behind it is the argument of the SID form */
	__u32 mark; /* for the kernel's routing of what is decapsulated; 0: none */
	bool used;
	__u8 reserved[3];
};

struct merge_settings {
	struct domain domain;
	struct merge_sid sids[MERGE_SIDS_MAX]; /* longest prefix first */
};

const volatile struct merge_settings settings = {};

/* ===== Tables ===== */

struct member_key {
	__u32 sid; /* its number */
	__u32 flow;
};

/* Which instance a flow id is a path of. */
struct member {
	__u32 instance;
	__u32 path;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, INSTANCES_MAX *MEMBERS_MAX);
	__type(key, struct member_key);
	__type(value, struct member);
} members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, INSTANCES_MAX);
	__type(key, __u32);
	__type(value, struct recovery_settings);
} instances SEC(".maps");

/* A cache line each: instances are on different CPUs. */
struct recovery_slot {
	struct recovery recovery;
	__u64 reserved[5];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, INSTANCES_MAX);
	__type(key, __u32);
	__type(value, struct recovery_slot);
} recoveries SEC(".maps");

struct history {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_INNER_MAP); /* they differ in size */
	__uint(max_entries, 2);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u64));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, INSTANCES_MAX);
	__type(key, __u32);
	__array(values, struct history);
} histories SEC(".maps");

/* What came by one path. The delay is from the TLV's timestamp to here, in us, by the two machines'
 * clocks. */
struct path_counters {
	__u64 packets;
	__u64 bytes; /* of inner packets */
	__u64 first; /* of the packets, those that came before their copies */
	__u64 seen_ns; /* when the latest came */
	__s64 delay_sum;
	__u64 delay_squares;
	__u64 delays; /* in the sums */
	__s32 delay_least;
	__s32 delay_most;
};

struct instance_counters {
	struct recovery_counters recovery;
	struct path_counters paths[MEMBERS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, INSTANCES_MAX);
	__type(key, __u32);
	__type(value, struct instance_counters);
} instance_counters SEC(".maps");

/* Where packets go that are to be put in order, by a process: see datapath.Order. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} order_port SEC(".maps");

/* When the process was there last (monotonic, ns). Without it packets pass as they come. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} order_alive SEC(".maps");

#define ORDER_PATIENCE_NS 500000000ULL

/* In front of such a packet: an Ethernet header, of which the payload is a note and the frame. */
struct order_note {
	struct eth_addresses addresses; /* 0: only the process looks at it */
	__be16 ethertype; /* ETH_P_ORDER */
	__u16 instance;
	__u32 number;
	__u16 l2; /* length of the frame's L2 header */
	__u16 generation; /* in which the number was given: another one's numbers are of no order
			     with it */
};

#define ETH_P_ORDER 0x88b6 /* IEEE 802: local experimental EtherType 2 */

/* Nothing else brings the type into the object's BTF, of which its Go twin is made. */
const struct order_note *order_note_type __attribute__((unused));

/* ===== Steps ===== */

static __always_inline __u32 merge_sid_find(const struct address *destination)
{
	for (__u32 i = 0; i < MERGE_SIDS_MAX && settings.sids[i].used; i++)
		if (prefix_contains(&settings.sids[i].prefix, destination))
			return i;
	return MERGE_SIDS_MAX;
}

static __always_inline void path_delay(struct path_counters *path, const struct number *q)
{
	__s32 delay = timestamp_us() - q->timestamp;

	if (!path->delays || delay < path->delay_least)
		path->delay_least = delay;
	if (!path->delays || delay > path->delay_most)
		path->delay_most = delay;
	path->delays++;
	path->delay_sum += delay;
	path->delay_squares += (__s64)delay * delay;
}

static __always_inline void path_count(struct path_counters *path, const struct number *q,
				       bool passed, __u32 bytes, __u64 now)
{
	path->packets++;
	path->bytes += bytes;
	path->first += passed;
	path->seen_ns = now;
	if (q->form == REDUNDANCY_TLV)
		path_delay(path, q);
}

/* One try of elimination. Returns as recovery_decide. A global function, so that the verifier
 * follows it once for all tries. */
__noinline int eliminate_try(struct number *q, __u32 sid, __u32 bytes, bool last)
{
	struct member_key key = { .sid = sid };
	struct recovery_settings *settings;
	struct instance_counters *counters;
	__u64 now = bpf_ktime_get_coarse_ns(); /* good to some ms, at a tenth of the cost */
	struct recovery_slot *slot;
	struct member *member;
	__u32 instance;
	void *history;
	int reason;

	if (!q)
		return REASON_UNKNOWN_FLOW;
	key.flow = q->flow;
	member = bpf_map_lookup_elem(&members, &key);
	if (!member)
		return REASON_UNKNOWN_FLOW;
	instance = member->instance;
	settings = bpf_map_lookup_elem(&instances, &instance);
	slot = bpf_map_lookup_elem(&recoveries, &instance);
	history = bpf_map_lookup_elem(&histories, &instance);
	counters = bpf_map_lookup_elem(&instance_counters, &instance);
	if (!settings || !slot || !history || !counters)
		return REASON_UNKNOWN_FLOW;
	reason = recovery_decide(&slot->recovery, settings, history, q, now, &counters->recovery,
				 last);
	if (unlikely(reason == AGAIN))
		return AGAIN;
	path_count(&counters->paths[member->path % MEMBERS_MAX], q, !reason, bytes, now);
	if (!reason && settings->ordered)
		q->ordered = instance + 1;
	return reason;
}

/* Elimination. Returns 0: this copy goes on, or the reason to drop it. */
static __always_inline int eliminate(struct number *q, __u32 sid, __u32 bytes)
{
	int reason = AGAIN;

	for (int i = 0; i < TRIES && reason == AGAIN; i++)
		reason = eliminate_try(q, sid, bytes, i == TRIES - 1);
	return reason;
}

/* What remains of the outer headers. */
struct outer {
	__u32 sid;
	__u32 length; /* of all of them */
	struct number number;
	__u8 traffic_class;
	__u8 next;
	__u16 reserved;
};

/* The number that a packet has: in the SID's argument, or in the SRH. */
static __always_inline void number_read(struct xdp_md *ctx, const struct address *destination,
					__u32 srh, struct outer *outer)
{
	const volatile struct address *mask =
		&settings.sids[outer->sid % MERGE_SIDS_MAX].prefix.mask;

	if ((destination->word[0] & ~mask->word[0]) || (destination->word[1] & ~mask->word[1]))
		number_from_sid(destination, &outer->number);
	else if (srh)
		number_from_tlv(ctx, srh, &outer->number);
}

/* Reads the outer headers of a packet to a SID of ours. Returns 0, a reason to drop, or -1: not for
 * us. */
static __always_inline int merge_parse(struct xdp_md *ctx, struct cursor *c, struct packet *p,
				       struct outer *outer)
{
	int reason = ipv6_parse(c, p);
	__u32 srh = 0;

	if (reason)
		return reason;
	outer->sid = merge_sid_find(&p->flow.destination);
	if (outer->sid >= MERGE_SIDS_MAX)
		return guard_transit(ctx, c, p, &settings.domain);
	if (!infrastructure_contains(&settings.domain.infrastructure, &p->flow.source))
		return REASON_OUTSIDE_DOMAIN;
	if (is_extension(p->flow.protocol)) {
		reason = packet_walk(ctx, c, p, SRH_WANTED, true, &srh);
		if (reason)
			return reason;
	}
	if (segments_left(ctx, srh))
		return REASON_SEGMENTS_LEFT;
	outer->length = p->length - c->left;
	outer->traffic_class = p->traffic_class;
	outer->next = p->flow.protocol;
	number_read(ctx, &p->flow.destination, srh, outer);
	return REASON_NONE;
}

/* Version and family of the inner packet; the kernel checks the rest. */
static __always_inline int merge_inner(struct cursor *c, const struct outer *outer,
				       struct packet *inner)
{
	bool ipv4 = outer->next == IPPROTO_IPIP;

	if (!ipv4 && outer->next != IPPROTO_IPV6)
		return REASON_UPPER_LAYER;
	if (!cursor_has(c, ipv4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)))
		return REASON_TRUNCATED;
	inner->ip = c->offset;
	inner->length = c->left;
	inner->flow.ipv4 = ipv4;
	if (*(__u8 *)c->pos >> 4 != (ipv4 ? 4 : 6))
		return REASON_BAD_IP_HEADER;
	inner->traffic_class = ipv4 ? ((__u8 *)c->pos)[1] : bpf_ntohs(*(__be16 *)c->pos) >> 4;
	return REASON_NONE;
}

static __always_inline __u32 mark_of(const struct outer *outer)
{
	return settings.sids[outer->sid % MERGE_SIDS_MAX].mark;
}

/* The kernel routes what is decapsulated by this mark, once merge_mark has put it on. */
static __always_inline int mark_write(struct xdp_md *ctx, __u32 mark)
{
	__u32 *meta;

	if (!mark)
		return REASON_NONE;
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*meta)))
		return REASON_NO_HEADROOM;
	meta = (void *)(long)ctx->data_meta;
	if ((void *)(meta + 1) > (void *)(long)ctx->data)
		return REASON_NO_HEADROOM;
	*meta = mark;
	return REASON_NONE;
}

/*
 * All that can still end a packet, before its number is entered: else its other copies would be
 * dropped as duplicates of one that did not pass.
 */
static __always_inline int merge_check(struct xdp_md *ctx, const struct outer *outer,
				       const struct packet *inner)
{
	if (ecn_combine(inner->traffic_class, outer->traffic_class) < 0)
		return REASON_ECN;
	return mark_write(ctx, mark_of(outer));
}

static __always_inline bool order_is_alive(void)
{
	__u32 zero = 0;
	__u64 *alive = bpf_map_lookup_elem(&order_alive, &zero);

	return alive && (__s64)(bpf_ktime_get_coarse_ns() - *alive) < (__s64)ORDER_PATIENCE_NS;
}

/* Gives a decapsulated packet to the process that puts packets in order. */
static __always_inline int order_send(struct xdp_md *ctx, const struct frame *f,
				      const struct outer *outer)
{
	const struct number *number = &outer->number;
	struct order_note *note;

	/* The process has no use for a mark. What was in front of the outer headers is room enough.
	 */
	if (mark_of(outer) && bpf_xdp_adjust_meta(ctx, sizeof(__u32)))
		return drop(REASON_NO_HEADROOM);
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(*note)))
		return drop(REASON_NO_HEADROOM);
	note = (void *)(long)ctx->data;
	if ((void *)(note + 1) > (void *)(long)ctx->data_end)
		return drop(REASON_NO_HEADROOM);
	*note = (struct order_note){
		.ethertype = bpf_htons(ETH_P_ORDER),
		.instance = number->ordered - 1,
		.number = number->number,
		.l2 = frame_l2_length(f),
		.generation = number->generation,
	};
	return bpf_redirect_map(&order_port, 0, 0);
}

/* ===== Programs ===== */

SEC("xdp")
int merge(struct xdp_md *ctx)
{
	struct cursor c = cursor_at_start(ctx);
	struct outer outer = {};
	struct packet p = {}; /* the outer one, then the inner one: the stack is small */
	struct frame f;
	int verdict, reason = frame_parse(&c, &f);

	if (reason)
		return drop(reason);
	if (f.ethertype != bpf_htons(ETH_P_IPV6))
		return pass();
	reason = merge_parse(ctx, &c, &p, &outer);
	if (reason < 0)
		return pass();
	if (reason)
		return drop(reason);
	p = (struct packet){};
	reason = merge_inner(&c, &outer, &p);
	if (!reason)
		reason = merge_check(ctx, &outer, &p);
	if (!reason && outer.number.form != REDUNDANCY_NONE)
		reason = eliminate(&outer.number, outer.sid, p.length);
	if (!reason)
		reason = ecn_take(ctx, &p, outer.traffic_class);
	if (reason)
		return drop(reason);
	verdict = decapsulate(ctx, &f, &p, outer.length);
	if (verdict == XDP_PASS && outer.number.ordered && order_is_alive())
		return order_send(ctx, &f, &outer);
	return verdict;
}

/* What merge has marked keeps its mark on the way through the stack (TC ingress): a rule leads it
 * to its table. */
SEC("tc")
int merge_mark(struct __sk_buff *skb)
{
	__u32 *meta = (void *)(long)skb->data_meta;

	if ((void *)(meta + 1) <= (void *)(long)skb->data)
		skb->mark = *meta;
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "Dual BSD/GPL";
