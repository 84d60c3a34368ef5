// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the sink remembers of each flow, and what about it is worth a report: a pause, a long queue,
 * another path, a beginning, an end. A pause is known when the next packet comes, with or without
 * telemetry; user space looks for those without a next packet.
 */
#pragma once

#include "address.h"
#include "int.h"

#include <linux/ip.h>

#define TELEMETRY_FLOWS 65536
#define TELEMETRY_HOPS_MAX 16 /* hops whose queue and node are looked at */

enum telemetry_reason {
	TELEMETRY_EACH = 1, /* the packet has telemetry */
	TELEMETRY_GAP = 2, /* no packet of the flow came for long */
	TELEMETRY_QUEUE = 4, /* a queue on the way is above the threshold */
	TELEMETRY_QUEUE_CHANGE = 8, /* the longest queue on the way is another by so many octets */
	TELEMETRY_NEW = 16, /* the flow was not known */
	TELEMETRY_PATH = 32, /* other nodes than before */
	TELEMETRY_END = 64, /* FIN or RST */
};

#define TELEMETRY_REASONS 7 /* bits */

/* What is worth a report. It may change at any time. */
struct telemetry_watch {
	__u64 gap_ns; /* least pause that counts; 0: none */
	__u64 flow_interval_ns; /* between two reports of a flow, at least */
	__u32 gap_rtts; /* and at least so many round-trip times, where one is known */
	__u32 queue; /* octets that a queue has to exceed */
	__u32 queue_change; /* octets */
	__u32 reasons; /* enum telemetry_reason, those that are reported */
	__u32 limit; /* reports in a second */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct telemetry_watch);
} telemetry_watches SEC(".maps");

struct telemetry_flow_key {
	struct address source; /* IPv4 as ::ffff:0:0/96 */
	struct address destination;
	__be16 source_port;
	__be16 destination_port;
	__u8 protocol;
	__u8 version; /* of IP */
	__u8 reserved[2];
};

enum telemetry_flow_state {
	TELEMETRY_ENDED = 1,
	TELEMETRY_OPENING = 2, /* a SYN came, and nothing since */
	TELEMETRY_HAS_PATH = 4,
	TELEMETRY_HAS_QUEUE = 8,
};

struct telemetry_flow {
	__u64 last_ns; /* monotonic: when the last packet came */
	__u64 report_ns; /* when the last report was made; 0: none yet */
	__u64 opening_ns; /* when the SYN came */
	__u64 rtt_ns; /* from the SYN to what followed; 0: unknown */
	__u32 queue; /* octets, when it last changed enough */
	__u32 path; /* hash of its nodes */
	__u32 state;
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TELEMETRY_FLOWS);
	__type(key, struct telemetry_flow_key);
	__type(value, struct telemetry_flow);
} telemetry_flows SEC(".maps");

/* Reports of the current second. */
struct telemetry_budget {
	__u64 since_ns;
	__u64 reports;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct telemetry_budget);
} telemetry_budgets SEC(".maps");

#define TCP_FIN 1
#define TCP_SYN 2
#define TCP_RST 4
#define TCP_ACK 16
#define TCP_FLAGS_AT 13 /* octet of the header that has them */

/* Mask: outer headers, the longest stack and inner options are shorter. */
#define INNER_AT_MAX 4095

/* What one packet says. */
struct telemetry_sight {
	__u64 now_ns;
	__u64 gap_ns; /* since the packet before, 0 if that is not known */
	__u32 queue; /* the longest on the way, in octets */
	__u32 path;
	__u32 has; /* TELEMETRY_HAS_PATH, TELEMETRY_HAS_QUEUE */
	__u32 tcp; /* flags */
	__u32 carries; /* telemetry */
	__u32 reserved;
};

/* So many octets of the frame, 0 if it does not have them. */
static __always_inline void *frame_at(struct __sk_buff *skb, __u32 at, __u32 octets)
{
	void *from;

	if (at > INNER_AT_MAX)
		return 0;
	barrier_var(at);
	at &= INNER_AT_MAX;
	from = packet_start(skb) + at;
	if (likely(from + octets <= packet_end(skb)))
		return from;
	if (at + octets > skb->len || bpf_skb_pull_data(skb, at + octets))
		return 0;
	from = packet_start(skb) + at;
	return from + octets <= packet_end(skb) ? from : 0;
}

static __always_inline __u32 get_be16(const void *from)
{
	return bpf_ntohs(*(const __be16 *)from);
}

/*
 * Reads protocol, ports, and TCP's flags, at an offset from the start of the frame. What is read
 * again in words of 4 octets, as the kernel's hash does, is written so: a processor does not
 * forward two smaller stores to one load.
 */
static __always_inline void transport_read(struct __sk_buff *skb, __u32 at, __u32 version,
					   __u32 protocol, struct telemetry_flow_key *key,
					   __u32 *tcp)
{
	bool is_tcp = protocol == IPPROTO_TCP;
	__u8 *transport;

	*(__be32 *)&key->protocol = bpf_htonl(protocol << 24 | version << 16);
	if (!is_tcp && protocol != IPPROTO_UDP)
		return;
	transport = frame_at(skb, at, is_tcp ? TCP_FLAGS_AT + 1 : 4);
	if (!transport)
		return;
	*(__be32 *)&key->source_port =
		bpf_htonl(get_be16(transport) << 16 | get_be16(transport + 2));
	if (is_tcp)
		*tcp = transport[TCP_FLAGS_AT];
}

/* Reads the innermost flow, at an offset from the start of the frame. False if there is none. */
static __always_inline bool inner_flow(struct __sk_buff *skb, __u32 at, __u32 protocol,
				       struct telemetry_flow_key *key, __u32 *tcp)
{
	struct ipv6hdr *ip6;
	struct iphdr *ip4;
	__u8 *options;

	if (protocol == IPPROTO_IPV6) {
		ip6 = frame_at(skb, at, sizeof(*ip6));
		if (!ip6 || ip6->version != 6)
			return false;
		key->source = address_load(&ip6->saddr);
		key->destination = address_load(&ip6->daddr);
		protocol = ip6->nexthdr;
		at += sizeof(*ip6);
		options = protocol == IPPROTO_HOPOPTS ? frame_at(skb, at, 2) : 0;
		if (options) {
			protocol = options[0];
			at += 8 + 8 * options[1];
		}
		transport_read(skb, at, 6, protocol, key, tcp);
		return true;
	}
	ip4 = protocol == IPPROTO_IPIP ? frame_at(skb, at, sizeof(*ip4)) : 0;
	if (!ip4 || ip4->version != 4 || ip4->ihl < 5)
		return false;
	key->source = address_from_ipv4(ip4->saddr);
	key->destination = address_from_ipv4(ip4->daddr);
	protocol = ip4->protocol;
	if (ip4->frag_off & bpf_htons(0x3fff)) /* it has no ports that belong to all fragments */
		at = INNER_AT_MAX + 1;
	else
		at += 4 * ip4->ihl;
	transport_read(skb, at, 4, protocol, key, tcp);
	return true;
}

/* A stack in a frame. */
struct int_stack {
	__u32 at; /* from the start of the frame */
	__u32 words;
	__u32 hop; /* words */
	__u32 has; /* TELEMETRY_HAS_PATH, TELEMETRY_HAS_QUEUE: what each hop tells */
	__u32 queue_at; /* words into a hop; its node is in the first */
	__u32 node_mask;
	__u32 queue_mask;
};

/* A stack of INT, which says of each hop what the instructions ask for. */
static __always_inline void stack_of_int(struct int_stack *stack, __u32 instructions)
{
	stack->has = (instructions & INT_NODE ? TELEMETRY_HAS_PATH : 0) |
		     (instructions & INT_QUEUE ? TELEMETRY_HAS_QUEUE : 0);
	stack->queue_at = int_words(instructions & ~(INT_QUEUE | (INT_QUEUE - 1)));
	stack->node_mask = ~0;
	stack->queue_mask = 0xffffff;
}

/* Leaves the slots out that no node has written yet. */
static __always_inline void stack_skip(struct int_stack *stack, __u32 slots)
{
	__u32 octets = INT_WORD * stack->hop * slots;

	if (octets > INT_WORD * stack->words)
		octets = INT_WORD * stack->words;
	stack->at += octets;
	stack->words -= octets / INT_WORD;
}

/* Looks through the stack for the longest queue and the nodes. Global, so that it is verified
 * apart. */
__noinline int stack_see(struct __sk_buff *skb, const struct int_stack *stack,
			 struct telemetry_sight *sight)
{
	__u32 hops, value, path = 2166136261;
	__be32 *word;

	if (!sight || !stack || !stack->hop)
		return 0;
	hops = stack->words / stack->hop;
	for (int i = 0; i < TELEMETRY_HOPS_MAX; i++) {
		__u32 from = stack->at + INT_WORD * stack->hop * i;

		if (i >= hops)
			break;
		word = stack->has & TELEMETRY_HAS_PATH ? frame_at(skb, from, INT_WORD) : 0;
		if (word && ~bpf_ntohl(*word) & stack->node_mask) {
			path = (path ^ (bpf_ntohl(*word) & stack->node_mask)) * 16777619;
			sight->has |= TELEMETRY_HAS_PATH;
		}
		from += INT_WORD * stack->queue_at;
		word = stack->has & TELEMETRY_HAS_QUEUE ? frame_at(skb, from, INT_WORD) : 0;
		if (word && ~*word) {
			value = bpf_ntohl(*word) & stack->queue_mask;
			if (value > sight->queue)
				sight->queue = value;
			sight->has |= TELEMETRY_HAS_QUEUE;
		}
	}
	sight->path = path;
	return 0;
}

/* The time from then to now; 0 if then is later, noted by another processor. */
static __always_inline __u64 since(__u64 now, __u64 then)
{
	__s64 elapsed = now - then;

	return elapsed > 0 ? elapsed : 0;
}

/* Least pause of the flow that counts, 0 if none does. */
static __always_inline __u64 gap_of(const struct telemetry_watch *w, const struct telemetry_flow *f)
{
	__u64 times = (__u64)w->gap_rtts * f->rtt_ns;

	return times > w->gap_ns ? times : w->gap_ns;
}

static __always_inline __u32 tcp_see(struct telemetry_flow *f, const struct telemetry_sight *sight)
{
	__u32 reasons = 0;

	if ((sight->tcp & (TCP_SYN | TCP_ACK)) == TCP_SYN) {
		if (f->state & TELEMETRY_ENDED)
			reasons = TELEMETRY_NEW;
		f->opening_ns = sight->now_ns;
		f->state = (f->state | TELEMETRY_OPENING) & ~TELEMETRY_ENDED;
	} else if (f->state & TELEMETRY_OPENING) {
		f->rtt_ns = since(sight->now_ns, f->opening_ns);
		f->state &= ~TELEMETRY_OPENING;
	}
	if (sight->tcp & (TCP_FIN | TCP_RST) && !(f->state & TELEMETRY_ENDED)) {
		f->state |= TELEMETRY_ENDED;
		reasons |= TELEMETRY_END;
	}
	return reasons;
}

static __always_inline __u32 way_see(struct telemetry_flow *f, const struct telemetry_watch *w,
				     const struct telemetry_sight *sight)
{
	__u32 reasons = 0, change;

	if (sight->has & TELEMETRY_HAS_QUEUE) {
		change = sight->queue > f->queue ? sight->queue - f->queue :
						   f->queue - sight->queue;
		if (sight->queue > w->queue)
			reasons |= TELEMETRY_QUEUE;
		if (f->state & TELEMETRY_HAS_QUEUE && change >= w->queue_change)
			reasons |= TELEMETRY_QUEUE_CHANGE;
		if (!(f->state & TELEMETRY_HAS_QUEUE) || change >= w->queue_change)
			f->queue = sight->queue;
	}
	if (sight->has & TELEMETRY_HAS_PATH) {
		if (f->state & TELEMETRY_HAS_PATH && f->path != sight->path)
			reasons |= TELEMETRY_PATH;
		f->path = sight->path;
	}
	f->state |= sight->has;
	return reasons;
}

/* Remembers the packet. Returns all reasons there are to report it, and the flow. */
static __always_inline __u32 flow_see(const struct telemetry_flow_key *key,
				      const struct telemetry_watch *w,
				      struct telemetry_sight *sight, struct telemetry_flow **flow)
{
	struct telemetry_flow *f = bpf_map_lookup_elem(&telemetry_flows, key);
	__u32 reasons = 0;
	__u64 gap;

	if (!f) {
		struct telemetry_flow fresh = { .last_ns = sight->now_ns };

		bpf_map_update_elem(&telemetry_flows, key, &fresh, BPF_ANY);
		f = bpf_map_lookup_elem(&telemetry_flows, key);
		if (!f)
			return 0;
		reasons = TELEMETRY_NEW;
	}
	*flow = f;
	sight->gap_ns = since(sight->now_ns, f->last_ns);
	gap = gap_of(w, f);
	if (gap && sight->gap_ns > gap && !(f->state & TELEMETRY_ENDED))
		reasons |= TELEMETRY_GAP;
	f->last_ns += sight->gap_ns;
	return reasons | tcp_see(f, sight) | way_see(f, w, sight);
}

/* Takes one report of those that are left in this second. */
static __always_inline bool budget_take(__u64 now, __u32 limit)
{
	__u32 zero = 0;
	struct telemetry_budget *budget = bpf_map_lookup_elem(&telemetry_budgets, &zero);

	if (!budget)
		return false;
	if (since(now, budget->since_ns) >= 1000000000) {
		budget->since_ns = now;
		budget->reports = 0;
	}
	if (budget->reports >= limit)
		return false;
	__sync_fetch_and_add(&budget->reports, 1);
	return true;
}
