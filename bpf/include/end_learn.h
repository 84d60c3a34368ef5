// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A SYN-ACK goes to its client by way of the edge that sent the SYN, which learns from it who has
 * the connection (End.LEARN). It is never risked: only edges that asked for it get it, by an outer
 * source that is an End.LEARN SID; without a route to the edge, and at the second try, it goes
 * straight.
 */
#pragma once

#include "inner.h"
#include "srh.h"

#include <linux/pkt_cls.h>

/* Prefixes of the edges' End.LEARN SIDs; none: nobody learns. */
const volatile struct infrastructure learners = {};

/* By the low bits of the flow hash: which edge sent the flow's latest SYN. A newer one overwrites
 * an older. */
#define ASKERS 65536

struct asker {
	struct address edge;
	__u32 tag; /* the upper half of the flow hash */
	__u32 sum; /* of edge: two CPUs may write at once */
	__u32 since; /* jiffies */
	__u16 sid; /* at which the SYN came: its number */
	__u16 answered; /* a SYN-ACK has gone there */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ASKERS);
	__type(key, __u32);
	__type(value, struct asker);
} askers SEC(".maps");

static __always_inline bool has_learners(void)
{
	return learners.prefixes[0].mask.word[0];
}

static __always_inline __u32 address_sum(const struct address *a)
{
	__u64 sum = a->word[0] ^ rotate_left(a->word[1], 17);

	return sum ^ sum >> 32;
}

static __always_inline struct asker *asker_of(__u64 hash)
{
	__u32 slot = hash % ASKERS;

	return bpf_map_lookup_elem(&askers, &slot);
}

/* Notes the edge that sent a SYN which is taken. For so many jiffies after the first, another SYN
 * of the flow is a second try. */
__noinline int asker_remember(struct xdp_md *ctx, __u32 ip_offset, __u64 hash, __u32 sid,
			      __u32 jiffies)
{
	struct ipv6hdr *ip = (void *)(long)ctx->data + (ip_offset & OFFSET_MAX);
	struct asker *asker = asker_of(hash);
	__u32 now = bpf_jiffies64();

	if (!asker || (void *)(ip + 1) > (void *)(long)ctx->data_end)
		return 0;
	if (asker->tag == (__u32)(hash >> 32) && asker->answered && now - asker->since < jiffies)
		return 0;
	asker->edge = address_load(&ip->saddr);
	asker->tag = hash >> 32;
	asker->sum = address_sum(&asker->edge);
	asker->since = now;
	asker->sid = sid;
	asker->answered = !infrastructure_contains(&learners, &asker->edge); /* it did not ask */
	return 0;
}

/* The headers around a SYN-ACK: H.Encaps of a path that began at the owner and ends at the edge. */
struct learn_outer {
	struct ipv6hdr ip;
	struct routing_header srh;
	struct address edge; /* the last segment comes first */
	struct address owner;
};

/* The interface by which the edge is reached, 0: none. */
static __always_inline __u32 route_to(struct __sk_buff *skb, const struct address *source,
				      const struct address *destination, __u32 label)
{
	struct bpf_fib_lookup fib __attribute__((aligned(8))) = {
		.family = AF_INET6,
		.ifindex = skb->ifindex,
		.flowinfo = bpf_htonl(label),
	};
	long verdict;

	address_store(fib.ipv6_src, source);
	address_store(fib.ipv6_dst, destination);
	verdict = bpf_fib_lookup(skb, &fib, sizeof(fib), 0);
	if (verdict != BPF_FIB_LKUP_RET_SUCCESS && verdict != BPF_FIB_LKUP_RET_NO_NEIGH)
		return 0;
	return fib.ifindex;
}

/* Puts the outer headers before a SYN-ACK. False if that can't be; then it is as it was. */
static __always_inline bool learn_encapsulate(struct __sk_buff *skb, const struct packet *p,
					      const struct learn_outer *outer)
{
	__be16 ethertype = bpf_htons(ETH_P_IPV6);

	if (bpf_skb_adjust_room(skb, sizeof(*outer), BPF_ADJ_ROOM_MAC,
				BPF_F_ADJ_ROOM_ENCAP_L3_IPV6))
		return false;
	bpf_skb_store_bytes(skb, p->ip, outer, sizeof(*outer), 0);
	bpf_skb_store_bytes(skb, p->ip - sizeof(ethertype), &ethertype, sizeof(ethertype), 0);
	return true;
}

/*
 * Sends a SYN-ACK that leaves through the edge that asked for it. hash is that of the client's
 * flow, owner the SID at which its SYN came. Returns what the program returns.
 */
static __always_inline int learn_send(struct __sk_buff *skb, const struct packet *p,
				      struct asker *asker, __u64 hash, const struct address *source,
				      const struct address *owner)
{
	struct learn_outer outer = {};
	__u32 interface;

	asker->answered = 1;
	interface = route_to(skb, source, &asker->edge, flow_label(hash));
	if (!interface)
		return TC_ACT_UNSPEC;
	outer_write(&outer.ip, p->traffic_class, source, &asker->edge, flow_label(hash),
		    IPPROTO_ROUTING, 64, sizeof(outer) - sizeof(outer.ip) + p->length);
	outer.srh = (struct routing_header){
		.next = p->flow.ipv4 ? IPPROTO_IPIP : IPPROTO_IPV6,
		.length = 4,
		.type = ROUTING_TYPE_SRH,
		.last_entry = 1,
	};
	outer.edge = asker->edge;
	outer.owner = *owner;
	if (!learn_encapsulate(skb, p, &outer))
		return TC_ACT_UNSPEC;
	return bpf_redirect_neigh(interface, 0, 0, 0);
}

/*
 * Who asked for the SYN-ACK of a flow, 0: nobody. One without a socket is a SYN cookie: in a flood
 * of SYNs the cache would learn but spoofed flows.
 */
static __always_inline struct asker *asker_find(struct __sk_buff *skb, __u64 hash)
{
	struct asker *asker = asker_of(hash);

	if (!asker || !skb->sk || asker->tag != (__u32)(hash >> 32) || asker->answered ||
	    asker->sum != address_sum(&asker->edge))
		return 0;
	return asker;
}
