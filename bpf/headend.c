// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The head-end of SR policies: traffic that a rule chooses is encapsulated along one
 * segment list, or along several at once, with a number by which the egress tells
 * copies. Numbers are taken after segmentation: in XDP, on frames as they are on the
 * wire. Packets that start on this machine are sent through a pair of interfaces,
 * the loop, for that. Specification: docs/reference/dataplane.md, "Head-end".
 */
#include "include/copies.h"
#include "include/flow_changes.h"
#include "include/flow_groups.h"
#include "include/flow_paths.h"
#include "include/icmp_reply.h"
#include "include/guard.h"
#include "include/hop_limit.h"
#include "include/nexthop.h"
#include "include/on_link.h"
#include "include/options.h"
#include "include/policy.h"
#include "include/srh.h"

#include <linux/pkt_cls.h>

/* ===== Configuration ===== */

struct headend_settings {
	struct domain domain;
	struct eth_addresses
		loop_addresses; /* with which the kernel takes in what comes out of the loop */
	__u32 loop_inner; /* interface index of the loop's end where frames come out */
	__u32 loop_outer; /* of the end that frames are sent into */
	enum side side; /* of the interface */
	__u8 reserved[3];
};

const volatile struct headend_settings settings = {};

/* ===== Tables ===== */

/* By policy, and in it by list. */
struct policy_traffic {
	struct traffic lists[LISTS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, POLICIES_MAX);
	__type(key, __u32);
	__type(value, struct policy_traffic);
} policy_traffic SEC(".maps");

/* What a packet contributes to its outer headers. */
struct load {
	__u64 number;
	__u32 timestamp;
	__u32 label;
	__u32 length;
	__u16 cut; /* octets at the start of its frame that give way */
	__u8 traffic_class;
	bool ipv4;
};

#define ANSWER_HOP_LIMIT 64

/* ===== Encapsulation ===== */

/* Fills in the number, where the list has one. */
static __always_inline bool number_write(__u64 *words, void *end, const struct list *list,
					 const struct load *load)
{
	__u32 at = list->number_at[0] & 31;
	__be32 *pos = (__be32 *)(words + at);

	if (list->redundancy == REDUNDANCY_NONE)
		return true;
	if ((void *)(pos + 2) > end)
		return false;
	if (list->redundancy == REDUNDANCY_TLV) {
		pos[0] = bpf_htonl(load->number);
		pos[1] = bpf_htonl(load->timestamp);
		return true;
	}
	pos[1] |= bpf_htonl((load->number & 0xffff) << SID_NUMBER_SHIFT);
	at = list->number_at[1] & 31;
	if (!at)
		return true;
	pos = (__be32 *)(words + at);
	if ((void *)(pos + 2) > end)
		return false;
	pos[1] |= bpf_htonl((load->number & 0xffff) << SID_NUMBER_SHIFT);
	return true;
}

/*
 * H.Encaps along a list, RFC 8986 section 5: what is cut at the start of the frame gives way to the
 * L2 header that f holds and the list's headers.
 */
static __always_inline int headers_write(struct xdp_md *ctx, struct frame *f,
					 const struct list *list, const struct load *load)
{
	__u32 grow = list->words * sizeof(__u64);
	void *end, *next;
	struct ipv6hdr *ip;
	__u64 *word;

	f->ethertype = bpf_htons(ETH_P_IPV6);
	ip = outer_room(ctx, f, load->cut, grow);
	if (!ip)
		return REASON_NO_HEADROOM;
	end = (void *)(long)ctx->data_end;
	word = (void *)ip;
	for (int i = 0; i < HEADER_WORDS; i++) {
		if (i >= list->words)
			break;
		if ((void *)(word + i + 1) > end)
			return REASON_NO_HEADROOM;
		word[i] = list->header[i];
	}
	next = (void *)ip + (list->next & 63);
	if (next + 1 > end)
		return REASON_NO_HEADROOM;
	*(__be32 *)ip = bpf_htonl(6 << 28 | load->traffic_class << 20 | load->label);
	ip->payload_len = bpf_htons(load->length + grow - sizeof(*ip));
	*(__u8 *)next = load->ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6;
	return number_write(word, end, list, load) ? REASON_NONE : REASON_NO_HEADROOM;
}

static __always_inline void list_count(__u32 policy, __u32 list, __u32 bytes)
{
	struct policy_traffic *t = bpf_map_lookup_elem(&policy_traffic, &policy);

	if (t && list < LISTS_MAX)
		traffic_add(&t->lists[list], bytes);
}

/* Of what the kernel may be given when it comes out of the loop: to the inner end. */
static __always_inline struct eth_addresses loop_addresses(void)
{
	const volatile __u32 *word = settings.loop_addresses.word;

	return (struct eth_addresses){ { word[0], word[1], word[2] } };
}

/* Tells the sender of a packet that does not fit: mtu is what would. Not inlined, to spare the
 * stack. */
static __noinline int refuse_too_big(struct xdp_md *ctx, struct frame *f, const struct packet *p,
				     __u32 mtu)
{
	int verdict = error_answer(ctx, f, p, ANSWER_TOO_BIG, mtu, ANSWER_HOP_LIMIT);
	void *data = (void *)(long)ctx->data;

	if (verdict != XDP_TX || ctx->ingress_ifindex != settings.loop_inner)
		return verdict;
	if (data + ETH_ADDRESSES > (void *)(long)ctx->data_end)
		return XDP_DROP;
	*(struct eth_addresses *)data = loop_addresses();
	return XDP_PASS; /* the sender is this machine */
}

/* ===== Actions ===== */

/* The sequence number of the packet, atomically across CPUs. */
static __always_inline __u64 number_take(__u32 policy)
{
	struct sequence *s = bpf_map_lookup_elem(&sequences, &policy);

	return s ? __sync_fetch_and_add(&s->next, 1) : 0;
}

static __always_inline __u32 list_of_flow(const struct rule *r, __u64 hash)
{
	__u32 share = hash >> 32, i;

	for (i = 0; i < LISTS_MAX - 1; i++)
		if (i + 1 >= r->lists || share <= r->shares[i])
			break;
	return i;
}

static __always_inline __u32 list_in_turn(const struct rule *r)
{
	__u32 policy = r->policy, turn;
	struct sequence *s = bpf_map_lookup_elem(&sequences, &policy);

	if (!s || !r->turns)
		return 0;
	turn = __sync_fetch_and_add(&s->turn, 1) % r->turns;
	return r->schedule[turn & (SCHEDULE_MAX - 1)];
}

/* The next hop on the way to a list's first segment. */
static __always_inline struct next_hop *list_hop(struct xdp_md *ctx, const struct list *list,
						 __u32 label)
{
	struct address source = address_read(&settings.domain.source);
	struct address destination = { { list->header[3], list->header[4] } };

	return next_hop_for(ctx, &source, &destination, list->hop, label);
}

/* Encapsulates along a list, and sends to its next hop. Not inlined, for the verifier's sake. */
static __noinline int list_send(struct xdp_md *ctx, struct frame *f, const struct list *list,
				const struct next_hop *hop, const struct load *load)
{
	int reason;

	if (!hop || hop->how == NEXT_HOP_NONE)
		return drop(REASON_NO_ROUTE);
	if (hop->mtu && load->length + list->words * sizeof(__u64) > hop->mtu)
		return drop(REASON_PACKET_TOO_BIG);
	if (hop->how == NEXT_HOP_SEND)
		next_hop_apply(ctx, hop, f);
	else if (ctx->ingress_ifindex == settings.loop_inner)
		f->addresses = loop_addresses();
	reason = headers_write(ctx, f, list, load);
	if (reason)
		return drop(reason);
	return next_hop_leave(ctx, hop);
}

/*
 * Whether this node is a hop of the packet's. What comes out of the loop starts here, or has been
 * counted by the kernel: it was on its way out.
 */
static __always_inline bool is_hop(struct xdp_md *ctx)
{
	return ctx->ingress_ifindex != settings.loop_inner;
}

/* What of an outer packet fits the way to a list's first segment, without the list's headers; 0:
 * not known. */
static __always_inline __u32 list_mtu(const struct list *list, const struct next_hop *hop)
{
	return hop && hop->mtu ? hop->mtu - list->words * sizeof(__u64) : 0;
}

/* One list for the packet. */
static __always_inline int send_along(struct xdp_md *ctx, struct frame *f, const struct packet *p,
				      const struct rule *r, __u32 index, __u64 hash)
{
	const struct list *list = &r->list[index & (LISTS_MAX - 1)];
	struct load load = {
		.label = flow_label(hash),
		.length = p->length,
		.cut = frame_l2_length(f),
		.traffic_class = p->traffic_class,
		.ipv4 = p->flow.ipv4,
	};
	struct next_hop *hop = list_hop(ctx, list, load.label);
	__u32 mtu = list_mtu(list, hop);

	if (mtu && p->length > mtu)
		return refuse_too_big(ctx, f, p, mtu);
	if (is_hop(ctx))
		hops_count(ctx, p);
	if (list->redundancy != REDUNDANCY_NONE) {
		load.number = number_take(r->policy);
		load.timestamp = timestamp_us();
	}
	list_count(r->policy, index, p->length);
	return list_send(ctx, f, list, hop, &load);
}

/*
 * What fits all of the rule's lists; 0: not known. Not asked for a packet that fits any IPv6 path.
 * Not inlined, to spare the stack.
 */
static __noinline __u32 lists_mtu(struct xdp_md *ctx, const struct rule *r, __u32 label)
{
	__u32 least = 0;

	for (__u32 i = 0; i < LISTS_MAX; i++) {
		__u32 mtu;

		if (i >= r->lists)
			break;
		mtu = list_mtu(&r->list[i], list_hop(ctx, &r->list[i], label));
		if (mtu && (!least || mtu < least))
			least = mtu;
	}
	return least;
}

/* All lists: number the packet, and send as many copies of it into the loop as there are. */
static __noinline int mirror(struct xdp_md *ctx, const struct packet *p, const struct rule *r,
			     __u32 index, __u64 hash)
{
	struct copy_note note = {
		.ethertype = bpf_htons(ETH_P_COPY),
		.hash = hash,
		.policy = r->policy,
		.rule = index,
		.l2 = p->ip,
		.length = p->length,
		.traffic_class = p->traffic_class,
		.ipv4 = p->flow.ipv4,
	};
	__u32 n = r->lists;
	void *copies = bpf_map_lookup_elem(&broadcasts, &n);
	struct copy_note *place;

	if (!copies)
		return drop(REASON_NO_PATH);
	if (is_hop(ctx))
		hops_count(ctx, p);
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(note)))
		return drop(REASON_NO_HEADROOM);
	place = (void *)(long)ctx->data;
	if ((void *)(place + 1) > (void *)(long)ctx->data_end)
		return drop(REASON_NO_HEADROOM);
	note.addresses = loop_addresses();
	note.number = number_take(r->policy);
	note.timestamp = timestamp_us();
	*place = note;
	count_in(&outcomes, OUTCOME_COPIED);
	return bpf_redirect_map(copies, 0, BPF_F_BROADCAST);
}

/* Not inlined, to spare the stack. */
static __noinline __u64 packet_hash(const struct packet *p)
{
	return flow_hash(&settings.domain.secret, &p->flow);
}

/* What no list is for: the verdict, or -1. */
static __always_inline int refuse(struct xdp_md *ctx, const struct packet *p)
{
	if (p->error == REASON_IP_OPTIONS)
		return drop(p->error);
	if (is_hop(ctx) && hops_read(ctx, p) <= 1) {
		count_in(&drops, REASON_HOP_LIMIT);
		return XDP_PASS; /* the kernel answers Time Exceeded */
	}
	return -1;
}

/*
 * The list of a packet's own flow, or else of the group of its destination: its number from 1 in
 * the upper half, 0: there is none; and below it the flow label. Nothing is chosen anew for a
 * packet that is refused. Not inlined, for the verifier's sake.
 */
__noinline __u64 flow_list(const struct packet *p, bool refused)
{
	struct flow_path *path;
	struct flow_group *group;
	__u64 hash;

	if (!p)
		return 0;
	if (has_flow_paths) {
		path = flow_path_at(p);
		if (path)
			return (path->list + 1ULL) << 32 | flow_label(packet_hash(p));
	}
	if (!has_flow_groups)
		return 0;
	group = flow_group_of(p);
	if (!group)
		return 0;
	if (refused)
		return 1ULL << 32;
	hash = packet_hash(p);
	return (flow_choose(group, p, hash) + 1ULL) << 32 | flow_label(hash);
}

/* The list of the packet's flow, which has no numbers: the verdict, or -1 if there is none. */
static __always_inline int steer_flow(struct xdp_md *ctx, struct frame *f, const struct packet *p)
{
	bool refused = p->error == REASON_IP_OPTIONS || (is_hop(ctx) && hops_read(ctx, p) <= 1);
	__u64 found = flow_list(p, refused);
	__u32 index = (found >> 32) - 1;
	const struct list *list = bpf_map_lookup_elem(&flow_lists, &index);
	struct traffic *traffic = bpf_map_lookup_elem(&flow_traffic, &index);
	struct load load = {
		.length = p->length,
		.cut = frame_l2_length(f),
		.label = found,
		.traffic_class = p->traffic_class,
		.ipv4 = p->flow.ipv4,
	};
	struct next_hop *hop;
	__u32 mtu;

	if (!found)
		return -1;
	if (refused)
		return refuse(ctx, p);
	if (!list || !traffic)
		return drop(REASON_NO_PATH);
	hop = list_hop(ctx, list, load.label);
	mtu = list_mtu(list, hop);
	if (mtu && p->length > mtu)
		return refuse_too_big(ctx, f, p, mtu);
	if (is_hop(ctx))
		hops_count(ctx, p);
	traffic_add(traffic, p->length);
	if (has_flow_groups)
		way_count(list, p->length);
	return list_send(ctx, f, list, hop, &load);
}

static __always_inline int steer(struct xdp_md *ctx, struct frame *f, const struct packet *p,
				 struct rule *r, __u32 index)
{
	int verdict = refuse(ctx, p);
	__u32 mtu = 0;
	__u64 hash;

	if (verdict >= 0)
		return verdict;
	if (r->mtu && p->length > r->mtu)
		return refuse_too_big(ctx, f, p, r->mtu);
	hash = packet_hash(p);
	switch (r->action) {
	case ACTION_PATH:
		return send_along(ctx, f, p, r, 0, hash);
	case ACTION_SPLIT_FLOW:
		return send_along(ctx, f, p, r, list_of_flow(r, hash), hash);
	case ACTION_SPLIT_PACKET:
		return send_along(ctx, f, p, r, list_in_turn(r), hash);
	case ACTION_MIRROR:
		if (p->length + HEADER_WORDS * sizeof(__u64) > IPV6_MTU_MIN)
			mtu = lists_mtu(ctx, r, flow_label(hash));
		if (mtu && p->length > mtu)
			return refuse_too_big(ctx, f, p, mtu);
		return mirror(ctx, p, r, index, hash);
	default:
		return drop(REASON_NO_PATH);
	}
}

/* ===== Programs ===== */

/* A copy comes out of the loop: it takes the next of its policy's lists. */
static __always_inline int copy_send(struct xdp_md *ctx, const struct copy_note *note)
{
	__u32 policy = note->policy, index = note->rule, copy;
	struct load load = {
		.number = note->number,
		.timestamp = note->timestamp,
		.label = flow_label(note->hash),
		.length = note->length,
		.cut = sizeof(*note) + note->l2,
		.traffic_class = note->traffic_class,
		.ipv4 = note->ipv4,
	};
	const struct list *list;
	struct frame f = {};
	struct rule *r;

	copy = copy_claim(policy, note->number);
	r = rule_of_policy(policy, index); /* the table may have been replaced meanwhile */
	if (!r || copy >= LISTS_MAX || copy >= r->lists)
		return drop(REASON_NO_PATH);
	list_count(policy, copy, load.length);
	list = &r->list[copy & (LISTS_MAX - 1)];
	return list_send(ctx, &f, list, list_hop(ctx, list, load.label), &load);
}

static __noinline int copy_arrive(struct xdp_md *ctx)
{
	struct copy_note *note = (void *)(long)ctx->data;

	if ((void *)(note + 1) > (void *)(long)ctx->data_end)
		return drop(REASON_TRUNCATED);
	return copy_send(ctx, note);
}

static __always_inline bool is_copy(struct xdp_md *ctx)
{
	struct copy_note *note = (void *)(long)ctx->data;

	return ctx->ingress_ifindex == settings.loop_inner &&
	       (void *)(note + 1) <= (void *)(long)ctx->data_end &&
	       note->ethertype == bpf_htons(ETH_P_COPY);
}

static __always_inline int headend_parse_ipv6(struct xdp_md *ctx, struct cursor *c,
					      struct packet *p)
{
	int reason = ipv6_parse(c, p);
	bool outside;
	__u32 srh;

	if (reason)
		return reason;
	outside = is_outside(settings.side, &settings.domain, &p->flow.source);
	if (outside) {
		reason = guard_addresses(&settings.domain, p);
		if (reason)
			return reason;
	}
	if (is_extension(p->flow.protocol))
		reason = packet_walk(ctx, c, p, outside ? SRH_REFUSED : SRH_IS_ROUTING_HEADER,
				     false, &srh);
	if (outside && p->flow.protocol == IPPROTO_ICMPV6 && !reason)
		reason = guard_error(&settings.domain, c, p);
	return reason;
}

/* Reads a frame. Returns 0, a reason to drop, or -1: it is the kernel's. Not inlined, to spare the
 * stack. */
static __noinline int packet_read(struct xdp_md *ctx, struct frame *f, struct packet *p)
{
	struct cursor c = cursor_at_start(ctx);
	int reason = frame_parse(&c, f);

	if (reason)
		return reason;
	if (f->ethertype == bpf_htons(ETH_P_IP)) {
		reason = ipv4_forward_parse(ctx, &c, p);
	} else if (f->ethertype == bpf_htons(ETH_P_IPV6)) {
		reason = headend_parse_ipv6(ctx, &c, p);
	} else {
		return -1;
	}
	if (reason)
		return reason;
	ports_parse(&c, p);
	return stays_on_link(&c, f, p) ? -1 : 0;
}

/* Not inlined, to spare the stack of copies. */
static __noinline int packet_arrive(struct xdp_md *ctx)
{
	struct packet p = {};
	struct frame f = {};
	int reason = packet_read(ctx, &f, &p);
	struct rule *r;
	__u32 index;
	int verdict;

	if (reason < 0)
		return pass();
	if (reason)
		return drop(reason);
	if (has_flow_paths) {
		verdict = steer_flow(ctx, &f, &p);
		if (verdict >= 0)
			return verdict;
	}
	r = rule_choose(&p, &index);
	return r ? steer(ctx, &f, &p, r, index) : pass();
}

SEC("xdp")
int headend(struct xdp_md *ctx)
{
	return is_copy(ctx) ? copy_arrive(ctx) : packet_arrive(ctx);
}

/* Our own packets, encapsulated, that the kernel sends. */
static __always_inline bool is_encapsulated(const struct packet *p)
{
	return !p->flow.ipv4 && p->flow.source.word[0] == settings.domain.source.word[0] &&
	       p->flow.source.word[1] == settings.domain.source.word[1] &&
	       (p->flow.protocol == IPPROTO_ROUTING || p->flow.protocol == IPPROTO_IPIP ||
		p->flow.protocol == IPPROTO_IPV6);
}

/* Leaving, or arriving where there is no native XDP (TC): what a rule chooses goes into the loop,
 * segmented on the way. */
SEC("tc")
int headend_divert(struct __sk_buff *skb)
{
	struct cursor c = {
		.pos = (void *)(long)skb->data,
		.end = (void *)(long)skb->data_end,
		.left = skb->len,
	};
	struct packet p = {};
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
	if (reason || is_encapsulated(&p))
		return TC_ACT_UNSPEC;
	ports_parse(&c, &p);
	if (stays_on_link(&c, &f, &p) ||
	    (!(has_flow_paths && flow_path_at(&p)) && !(has_flow_groups && flow_group_of(&p)) &&
	     rule_find(&p) == RULES_MAX))
		return TC_ACT_UNSPEC;
	/* It is for the inner end, or the kernel would not take back what is given to it there. */
	f.addresses = loop_addresses();
	if (bpf_skb_store_bytes(skb, 0, &f.addresses, sizeof(f.addresses), 0))
		return TC_ACT_SHOT;
	return bpf_redirect(settings.loop_outer, 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
