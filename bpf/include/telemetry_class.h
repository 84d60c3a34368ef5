// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which packets get telemetry at a source: classes by what is encapsulated, and one in so many. */
#pragma once

#include "match.h"
#include "telemetry_flow.h"

#define TELEMETRY_CLASSES 16

/* What a source does with packets of one class: of the listed ones, the first that the packet
 * matches. It may change at any time. */
struct telemetry_class {
	struct match match; /* of the inner packet */
	__u32 threshold; /* by chance: random numbers up to it choose the packet */
	__u32 one_in; /* in turn: each so manieth packet of a CPU; 0: by chance */
	__u16 instructions; /* 0: no packet */
	__u8 hops; /* nodes that push, at most; the source counts */
	__u8 slots; /* left free in the stack, for nodes that write in place */
	__u8 listed; /* 0: here the list ends */
	__u8 looks; /* at the match; 0: all packets are of the class */
	__u8 reserved[2];
};

/* Two lists of classes: the agent writes the one that packets do not meet, and then switches. */
struct telemetry_list {
	__u32 first; /* class of the list that packets meet: 0 or TELEMETRY_CLASSES */
	__s32 tai_offset_s; /* seconds that CLOCK_TAI is before POSIX time */
	__u32 ceilings[2]; /* of each list: no random number above it chooses a packet */
	struct telemetry_class classes[2 * TELEMETRY_CLASSES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct telemetry_list);
} telemetry_classes SEC(".maps");

/* Packets until the next one is chosen in turn. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TELEMETRY_CLASSES);
	__type(key, __u32);
	__type(value, __u32);
} telemetry_turns SEC(".maps");

static __always_inline bool class_matches(const struct match *m, const struct telemetry_flow_key *k,
					  __u32 dscp)
{
	return k->version && (!m->protocol || m->protocol == k->protocol) &&
	       (!m->family || m->family == k->version) &&
	       (m->dscp == DSCP_ANY || m->dscp == dscp) && prefix_matches(&m->source, &k->source) &&
	       prefix_matches(&m->destination, &k->destination) &&
	       port_matches(m->source_ports, k->source_port) &&
	       port_matches(m->destination_ports, k->destination_port);
}

/* Class of this number in the list that begins with first. */
static __always_inline struct telemetry_class *class_at(struct telemetry_list *list, __u32 first,
							__u32 number)
{
	__u32 at = first & TELEMETRY_CLASSES;

	barrier_var(at); /* a sum that the compiler turns into an or has no bound on kernel 6.1 */
	return &list->classes[at + (number & (TELEMETRY_CLASSES - 1))];
}

/* The number of the first class of the list that the inner flow matches; TELEMETRY_CLASSES: none.
 */
static __always_inline __u32 class_find(const struct telemetry_flow_key *key, __u32 dscp,
					__u32 first)
{
	__u32 zero = 0;
	struct telemetry_list *list = bpf_map_lookup_elem(&telemetry_classes, &zero);
	struct telemetry_class *class;

	if (!key || !list)
		return TELEMETRY_CLASSES;
	for (__u32 i = 0; i < TELEMETRY_CLASSES; i++) {
		class = class_at(list, first, i);
		if (!class->listed)
			break;
		if (!class->looks || class_matches(&class->match, key, dscp))
			return i;
	}
	return TELEMETRY_CLASSES;
}

/* What is encapsulated behind the IPv6 header alone, most often; IPPROTO_NONE: not so. */
static __always_inline __u32 inner_without_walk(struct __sk_buff *skb)
{
	struct ipv6hdr *ip = packet_start(skb) + sizeof(struct ethhdr);

	if ((void *)(ip + 1) > packet_end(skb) || ip->version != 6 || !is_inner(ip->nexthdr) ||
	    sizeof(struct ethhdr) + sizeof(*ip) + bpf_ntohs(ip->payload_len) > skb->len)
		return IPPROTO_NONE;
	return ip->nexthdr;
}

/* The class of a packet, by what is encapsulated in it, or by itself if it is plain;
 * TELEMETRY_CLASSES: none. */
static __noinline __u32 class_of(struct __sk_buff *skb, __u32 first, bool plain)
{
	struct telemetry_flow_key key = {};
	__u32 at = sizeof(struct ethhdr), protocol = inner_without_walk(skb), unused, dscp = 0;
	struct int_outer o = {};
	__u8 *head;

	if (protocol != IPPROTO_NONE) {
		at += sizeof(struct ipv6hdr);
	} else if (!int_walk(skb, &o)) {
		at = INNER_AT_MAX + 1;
	} else if (!plain || is_inner(o.protocol)) {
		at += o.length;
		protocol = o.protocol;
	} else {
		protocol = IPPROTO_IPV6;
	}
	head = inner_flow(skb, at, protocol, &key, &unused) ? frame_at(skb, at, 2) : 0;
	if (head)
		dscp = key.version == 6 ? (head[0] & 15) << 2 | head[1] >> 6 : head[1] >> 2;
	return class_find(&key, dscp, first);
}

/* Whether the turn of the class is at this packet, which counts. */
static __always_inline bool is_its_turn(__u32 class, __u32 one_in)
{
	__u32 *left = bpf_map_lookup_elem(&telemetry_turns, &class);

	if (!left)
		return false;
	if (*left == 0 || *left > one_in)
		*left = one_in;
	return --*left == 0;
}

/* State of chance, for each processor: 0 before its first packet. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} telemetry_chance SEC(".maps");

/*
 * The next random number: the upper half of a linear congruential generator (Knuth's MMIX), which
 * costs half of what the kernel's does. It chooses samples, and keeps no secret.
 */
static __always_inline __u32 chance(void)
{
	__u32 zero = 0;
	__u64 *state = bpf_map_lookup_elem(&telemetry_chance, &zero);

	if (!state)
		return ~0;
	if (!*state)
		*state = (__u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 32;
}

/* Whether a packet of the class is to get telemetry, a random number drawn for it. */
static __always_inline bool is_chosen(__u32 number, const struct telemetry_class *class,
				      __u32 drawn)
{
	if (!class->instructions)
		return false;
	if (class->one_in)
		return is_its_turn(number, class->one_in);
	return drawn <= class->threshold;
}
