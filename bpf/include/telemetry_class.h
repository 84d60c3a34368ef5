// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which packets get telemetry at a source: classes by what is encapsulated, and one in so many. */
#pragma once

#include "match.h"
#include "telemetry_flow.h"

#define TELEMETRY_CLASSES 16
#define CEILING_NONE 0xffffffff /* a class takes turns, and counts all of its packets */

/* What a source does with packets of one class: of the listed ones, the first that the packet
 * matches. It may change at any time. */
struct telemetry_class {
	struct match match; /* of the inner packet */
	__u64 fields; /* what flow_fields of the class are, as far as mask says */
	__u64 mask;
	__u32 threshold; /* by chance: random numbers up to it choose the packet */
	__u32 one_in; /* in turn: each so manieth packet of a CPU; 0: by chance */
	__u16 instructions; /* 0: no packet */
	__u8 hops; /* nodes that push, at most; the source counts */
	__u8 slots; /* left free in the stack, for nodes that write in place */
	__u8 listed; /* 0: here the list ends */
	__u8 looks; /* at the match; 0: all packets are of the class */
	__u8 more; /* the match says more than the fields: prefixes, ranges of ports */
	__u8 reserved;
};

/* Classes in the order in which packets meet them. */
struct telemetry_list {
	struct telemetry_class classes[TELEMETRY_CLASSES];
};

/* Two lists of classes: the agent writes the one that packets do not meet, and then switches. */
struct telemetry_lists {
	__u32 current; /* the list that packets meet: 0 or 1 */
	__s32 tai_offset_s; /* seconds that CLOCK_TAI is before POSIX time */
	__u32 ceilings[2]; /* of each list: no random number above it chooses a packet */
	struct telemetry_list lists[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct telemetry_lists);
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

/* Class of this number. */
static __always_inline struct telemetry_class *class_at(struct telemetry_list *list, __u32 number)
{
	barrier_var(number); /* or else the compiler leaves a bound out that kernel 6.1 needs */
	return &list->classes[number & (TELEMETRY_CLASSES - 1)];
}

/* The list that packets meet, or the one of this number. */
static __always_inline struct telemetry_list *list_of(struct telemetry_lists *lists, __u32 current)
{
	return &lists->lists[current & 1];
}

/* The number of the first class of the list that the inner flow matches; TELEMETRY_CLASSES: none.
 */
static __always_inline __u32 class_find(const struct telemetry_flow_key *key, __u32 dscp,
					__u32 current)
{
	__u32 zero = 0;
	struct telemetry_lists *lists = bpf_map_lookup_elem(&telemetry_classes, &zero);
	struct telemetry_class *class;

	if (!key || !lists)
		return TELEMETRY_CLASSES;
	class = list_of(lists, current)->classes;
	for (__u32 i = 0; i < TELEMETRY_CLASSES; i++, class ++) {
		if (!class->listed)
			break;
		if (!class->looks || class_matches(&class->match, key, dscp))
			return i;
	}
	return TELEMETRY_CLASSES;
}

/* Of a flow with ports: source and destination port as on the wire, protocol, 10 bits from 46 on
 * are DSCP and version. */
static __always_inline __u64 flow_fields(const __be16 *ports, __u32 protocol,
					 __u32 version_and_dscp)
{
	return ports[0] | (__u32)ports[1] << 16 | (__u64)protocol << 32 |
	       (__u64)version_and_dscp << 40;
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

/* Whether addresses and ports of a packet that class_of_plain looks at are those of a class. Not
 * inlined: its registers would cost packets of which the fields say enough. */
static __noinline bool more_matches(struct __sk_buff *skb, const struct telemetry_class *class)
{
	struct ipv6hdr *ip6 = packet_start(skb) + sizeof(struct ethhdr) + sizeof(*ip6);
	struct address source, destination;
	struct iphdr *ip4 = (void *)ip6;
	__be16 *ports;

	if (!class || (void *)(ip6 + 1) + 2 * sizeof(*ports) > packet_end(skb))
		return false;
	if (ip6->version == 6) {
		source = address_load(&ip6->saddr);
		destination = address_load(&ip6->daddr);
		ports = (void *)(ip6 + 1);
	} else {
		source = address_from_ipv4(ip4->saddr);
		destination = address_from_ipv4(ip4->daddr);
		ports = (void *)(ip4 + 1);
	}
	return prefix_matches(&class->match.source, &source) &&
	       prefix_matches(&class->match.destination, &destination) &&
	       port_matches(class->match.source_ports, ports[0]) &&
	       port_matches(class->match.destination_ports, ports[1]);
}

#define CLASS_UNDECIDED (TELEMETRY_CLASSES + 1)

/*
 * The class of what most packets are: TCP or UDP right behind an IP header, and that behind an IPv6
 * header. They are compared where they lie, since to copy a flow costs more than all else.
 * TELEMETRY_CLASSES: none; CLASS_UNDECIDED: another packet.
 */
static __always_inline __u32 class_of_plain(struct __sk_buff *skb, struct telemetry_class **found)
{
	struct ipv6hdr *ip = packet_start(skb) + sizeof(struct ethhdr), *ip6 = ip + 1;
	struct telemetry_class *class = *found;
	struct iphdr *ip4 = (void *)ip6;
	__u32 protocol;
	__u64 fields;

	if ((void *)(ip6 + 1) + TCP_FLAGS_AT + 1 > packet_end(skb) || ip->version != 6 ||
	    sizeof(struct ethhdr) + sizeof(*ip) + bpf_ntohs(ip->payload_len) > skb->len)
		return CLASS_UNDECIDED;
	if (ip->nexthdr == IPPROTO_IPV6 && ip6->version == 6) {
		protocol = ip6->nexthdr;
		fields = flow_fields((__be16 *)(ip6 + 1), protocol,
				     bpf_ntohs(*(__be16 *)ip6) & 0xffc0);
	} else if (ip->nexthdr == IPPROTO_IPIP && *(__u8 *)ip4 == 0x45 &&
		   !(ip4->frag_off & bpf_htons(0x3fff))) {
		protocol = ip4->protocol;
		fields = flow_fields((__be16 *)(ip4 + 1), protocol,
				     4 << 12 | (ip4->tos & 0xfc) << 4);
	} else {
		return CLASS_UNDECIDED;
	}
	if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
		return CLASS_UNDECIDED;
	for (__u32 i = 0; i < TELEMETRY_CLASSES && class->listed; i++, class ++) {
		if ((fields & class->mask) != class->fields ||
		    (class->more && !more_matches(skb, class)))
			continue;
		*found = class;
		return i;
	}
	return TELEMETRY_CLASSES;
}

/* The class of a packet, by what is encapsulated in it, or by itself if it is plain;
 * TELEMETRY_CLASSES: none. */
static __noinline __u32 class_of(struct __sk_buff *skb, __u32 current, bool plain)
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
	return class_find(&key, dscp, current);
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

/* Whether a packet of the class is to get telemetry. A random number was drawn for it if it could
 * keep packets of each class from being chosen. */
static __always_inline bool is_chosen(__u32 number, const struct telemetry_class *class,
				      __u32 ceiling, __u32 drawn)
{
	if (!class->instructions)
		return false;
	if (class->one_in)
		return is_its_turn(number, class->one_in);
	return (ceiling == CEILING_NONE ? chance() : drawn) <= class->threshold;
}
