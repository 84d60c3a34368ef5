// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which packets get telemetry at a source: classes by what is encapsulated, and one in so many. */
#pragma once

#include "match.h"
#include "telemetry_flow.h"

#define TELEMETRY_CLASSES 16
#define MORE_NETWORK 1 /* of addresses, the word at DESTINATION_WORD */
#define MORE_ALL 2 /* all of them, and ranges of ports */
#define DESTINATION_WORD 2 /* first half of an IPv6 destination */
#define ADDRESS_WORDS 4 /* of eight octets, in an IPv6 header and in its place */
#define CEILING_NONE 0xffffffff /* a class takes turns, and counts all of its packets */

/* What a source does with packets of one class: of the listed ones, the first that the packet
 * matches. It may change at any time. */
struct telemetry_class {
	struct match match; /* of the inner packet */
	__u64 head; /* what flow_fields.head of the class is, as far as the mask says */
	__u64 head_mask;
	__u32 ports; /* the same of flow_fields.ports */
	__u32 ports_mask;
	__u64 addresses[ADDRESS_WORDS]; /* the same of the words behind flow_fields.head */
	__u64 addresses_mask[ADDRESS_WORDS];
	__u32 threshold; /* by chance: random numbers up to it choose the packet */
	__u32 one_in; /* in turn: each so manieth packet of a CPU; 0: by chance */
	__u16 instructions; /* 0: no packet */
	__u8 hops; /* nodes that push, at most; the source counts */
	__u8 slots; /* left free in the stack, for nodes that write in place */
	__u8 listed; /* 0: here the list ends; all octets are 0, and no packet is chosen */
	__u8 looks; /* at the match; 0: all packets are of the class */
	__u8 more; /* MORE_NETWORK, MORE_ALL: what the match says besides the fields */
	__u8 number; /* in the list */
};

/* Classes in the order in which packets meet them. */
struct telemetry_list {
	__u32 ceiling; /* no random number above it chooses a packet; CEILING_NONE */
	__u32 reserved;
	struct telemetry_class classes[TELEMETRY_CLASSES];
};

/* Two lists of classes: the agent writes the one that packets do not meet, and then switches. */
struct telemetry_lists {
	__u32 current; /* the list that packets meet: 0 or 1 */
	__s32 tai_offset_s; /* seconds that CLOCK_TAI is before POSIX time */
	struct telemetry_list lists[2];
};

struct telemetry_lists telemetry_lists SEC(".data.lists");

/* What a source remembers of the packets of a processor. */
struct telemetry_choice {
	__u64 chance; /* state of chance(), which user space begins with a random number */
	__u32 turns[TELEMETRY_CLASSES]; /* packets until the next one is chosen in turn */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct telemetry_choice);
} telemetry_choices SEC(".maps");

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
static __always_inline struct telemetry_list *list_of(__u32 current)
{
	return &telemetry_lists.lists[current & 1];
}

/* The number of the list that packets meet now. */
static __always_inline __u32 list_current(void)
{
	return *(volatile __u32 *)&telemetry_lists.current;
}

/* The number of the first class of the list that the inner flow matches; TELEMETRY_CLASSES: none.
 */
static __always_inline __u32 class_find(const struct telemetry_flow_key *key, __u32 dscp,
					__u32 current)
{
	struct telemetry_class *class = list_of(current)->classes;

	if (!key)
		return TELEMETRY_CLASSES;
	for (__u32 i = 0; i < TELEMETRY_CLASSES; i++, class ++) {
		if (!class->listed)
			break;
		if (!class->looks || class_matches(&class->match, key, dscp))
			return i;
	}
	return TELEMETRY_CLASSES;
}

/* What a flow with ports says, in words as they lie in its headers. */
struct flow_fields {
	__u64 head; /* as the first of an IPv6 header: version, DSCP, and in octet 6 the protocol */
	const __u64 *addresses; /* what follows it there, ADDRESS_WORDS */
	__u32 ports;
};

/* Version and protocol of the first word of an IPv6 header. */
#define HEAD_KIND 0x00ff0000000000f0ULL
#define HEAD_OF(version, protocol) ((__u64)(protocol) << 48 | (version) << 4)

/*
 * The flow of what most packets are: TCP or UDP right behind an IP header, and that behind an IPv6
 * header. It is read where it lies, since to copy a flow costs more than all else. False: it is
 * another packet.
 */
static __always_inline bool flow_fields(struct __sk_buff *skb, struct flow_fields *f)
{
	const struct ipv6hdr *ip = packet_start(skb) + sizeof(struct ethhdr);
	const __u64 *inner = (const void *)(ip + 1);
	const struct iphdr *ip4 = (const void *)inner;
	__u64 outer, kind;

	if (unlikely((void *)inner + sizeof(struct ipv6hdr) + TCP_FLAGS_AT + 1 > packet_end(skb)))
		return false;
	if (unlikely(sizeof(struct ethhdr) + sizeof(*ip) + bpf_ntohs(ip->payload_len) > skb->len))
		return false;
	outer = *(const __u64 *)ip & HEAD_KIND;
	f->head = *inner;
	f->ports = *(const __u32 *)(inner + 5);
	f->addresses = inner + 1;
	kind = f->head & HEAD_KIND;
	if (likely(outer == HEAD_OF(6, IPPROTO_IPV6)))
		return likely(kind == HEAD_OF(6, IPPROTO_TCP)) || kind == HEAD_OF(6, IPPROTO_UDP);
	if (outer != HEAD_OF(6, IPPROTO_IPIP) || (f->head & 0xff) != 0x45 ||
	    ip4->frag_off & bpf_htons(0x3fff))
		return false;
	f->head = bpf_htons(4 << 12 | (ip4->tos & 0xfc) << 4) | (__u64)ip4->protocol << 48;
	f->ports = *(const __u32 *)(ip4 + 1);
	return ip4->protocol == IPPROTO_TCP || ip4->protocol == IPPROTO_UDP;
}

static __always_inline bool fields_match(const struct telemetry_class *class, __u64 head,
					 __u32 ports)
{
	return (head & class->head_mask) == class->head &&
	       (ports & class->ports_mask) == class->ports;
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

/* Whether a word of addresses is that of a class. It is compared where it lies. */
static __always_inline bool word_matches(const struct telemetry_class *class,
					 const struct flow_fields *f, __u32 i)
{
	return (f->addresses[i] & class->addresses_mask[i]) == class->addresses[i];
}

/* Whether the other words of addresses and the ports are those of a class. Of IPv4, addresses are
 * in the second half of the first word and in the first half of the second. */
static __always_inline bool all_match(const struct telemetry_class *class,
				      const struct flow_fields *f)
{
	__u32 ports = f->ports;

	barrier_var(ports); /* or clang prepares them for other classes, too */
	for (__u32 i = 0; i < ADDRESS_WORDS; i++)
		if (i != DESTINATION_WORD && !word_matches(class, f, i))
			return false;
	return port_matches(class->match.source_ports, ports) &&
	       port_matches(class->match.destination_ports, ports >> 16);
}

/* Whether what a class says besides is true of a packet that has flow_fields. */
static __always_inline bool more_matches(const struct telemetry_class *class,
					 const struct flow_fields *f)
{
	return word_matches(class, f, DESTINATION_WORD) &&
	       (likely(class->more == MORE_NETWORK) || all_match(class, f));
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
static __always_inline bool is_its_turn(struct telemetry_choice *choice,
					const struct telemetry_class *class)
{
	__u32 number = class->number, one_in = class->one_in, *turn, left;

	turn = &choice->turns[number & (TELEMETRY_CLASSES - 1)];
	left = *turn - 1;
	if (left >= one_in) /* the first packet, or the first after a change */
		left = one_in - 1;
	*turn = left;
	return !left;
}

/*
 * The next random number: the upper half of a linear congruential generator (Knuth's MMIX), which
 * costs half of what the kernel's does. It chooses samples, and keeps no secret.
 */
static __always_inline __u32 chance(struct telemetry_choice *choice)
{
	choice->chance = choice->chance * 6364136223846793005ULL + 1442695040888963407ULL;
	return choice->chance >> 32;
}

/* Whether a packet of the class is to get telemetry. A random number was drawn for it if none of
 * the classes takes turns; 0: not yet. */
static __always_inline bool is_chosen(struct telemetry_choice *choice,
				      const struct telemetry_class *class, __u32 drawn)
{
	if (class->one_in)
		return is_its_turn(choice, class);
	return class->instructions && (drawn ? drawn : chance(choice)) <= class->threshold;
}
