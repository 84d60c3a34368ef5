// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a node of the domain is and knows, and its steps with any packet that has telemetry. */
#pragma once

#include "int.h"
#include "telemetry_outcome.h"
#include "utilization.h"

#include <linux/pkt_cls.h>

/* The form in which a source inserts telemetry. */
enum telemetry_encoding {
	ENCODING_INT,
	ENCODING_IOAM,
	ENCODING_PATH_TRACING,
};

struct telemetry_settings {
	__u32 node;
	__u16 port; /* UDP destination port of INT */
	__u16 namespace; /* of IOAM */
	__u8 encoding; /* enum telemetry_encoding */
	__u8 shift; /* of a clock's nanoseconds for Path Tracing */
	__u8 plain; /* packets that are not encapsulated have a part in it: PREFIX_PLAIN */
	__u8 reserved[5];
	struct infrastructure infrastructure; /* of the domain: others' telemetry is not believed */
};

const volatile struct telemetry_settings settings = {};

struct telemetry_prefix {
	__u32 bits;
	__u8 address[16];
};

enum telemetry_prefix_kind {
	PREFIX_SINK = 1, /* destinations of which telemetry is taken out here: decapsulating SIDs */
	PREFIX_PLAIN = 2, /* hosts of the domain, between which plain packets carry telemetry */
};

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct telemetry_prefix);
	__type(value, __u32); /* enum telemetry_prefix_kind, one or more */
} telemetry_prefixes SEC(".maps");

static __always_inline bool is_ipv6(const struct __sk_buff *skb)
{
	return skb->protocol == bpf_htons(ETH_P_IPV6);
}

/* What of it is asked for with instructions. */
static __always_inline void observe(struct __sk_buff *skb, __u32 instructions,
				    struct int_observation *o)
{
	__u64 now;

	o->node = settings.node;
	o->ingress = skb->ingress_ifindex;
	o->egress = skb->ifindex;
	o->queue = queue_of(skb);
	o->utilization = instructions & INT_UTILIZATION ? utilization_of(skb) : ~0;
	o->latency_ns = ~0ULL;
	if (!(instructions & (INT_LATENCY | INT_INGRESS_TIME)) ||
	    skb->tstamp_type != BPF_SKB_TSTAMP_DELIVERY_MONO)
		return;
	now = bpf_ktime_get_ns();
	if (skb->tstamp <= now)
		o->latency_ns = now - skb->tstamp;
}

/* Whether the packet can become longer by so many octets. */
static __always_inline bool fits(struct __sk_buff *skb, __u32 more)
{
	struct ipv6hdr *ip = packet_start(skb) + sizeof(struct ethhdr);
	__u32 mtu = 0;

	return (void *)(ip + 1) <= packet_end(skb) && bpf_ntohs(ip->payload_len) + more <= 0xffff &&
	       !bpf_check_mtu(skb, 0, &mtu, more, 0);
}

static __always_inline void length_add(struct int_scratch *s, __u32 at, __s32 more)
{
	put16(s, at, get16(s, at) + more);
}

/* Makes or takes room behind the IPv6 header, and stores what has been copied and changed from
 * there on, then the first words of the IPv6 header with what it says of length and of what
 * follows. */
static __always_inline bool store(struct __sk_buff *skb, const struct int_scratch *s, __s32 more,
				  __u32 octets)
{
	__u32 behind = octets - sizeof(struct ipv6hdr);

	if (octets < sizeof(struct ipv6hdr) || octets > INT_HEAD + INT_WORD * INT_ROOM_WORDS)
		return false;
	return !bpf_skb_adjust_room(skb, more, BPF_ADJ_ROOM_NET, 0) &&
	       !bpf_skb_store_bytes(skb, sizeof(struct ethhdr), s->octets, 8,
				    BPF_F_RECOMPUTE_CSUM) &&
	       (!behind ||
		!bpf_skb_store_bytes(skb, sizeof(struct ethhdr) + sizeof(struct ipv6hdr),
				     s->octets + sizeof(struct ipv6hdr),
				     some(behind, INT_SCRATCH / 2), BPF_F_RECOMPUTE_CSUM));
}

enum carrying {
	CARRIES_NOTHING,
	CARRIES_TELEMETRY,
	CARRIES_BROKEN,
	CARRIES_OUTSIDE, /* a header for which no node of the domain answers */
};

/* An address of the outer header; 0: the packet has none. */
static __always_inline bool outer_address(struct __sk_buff *skb, __u32 at, struct address *a)
{
	void *data = packet_start(skb) + sizeof(struct ethhdr);

	if (data + sizeof(struct ipv6hdr) > packet_end(skb))
		return false;
	*a = address_load(data + at);
	return true;
}

/* Whether the outer source is of the domain. */
static __always_inline bool is_inside(struct __sk_buff *skb)
{
	struct address source;

	return outer_address(skb, __builtin_offsetof(struct ipv6hdr, saddr), &source) &&
	       infrastructure_contains(&settings.infrastructure, &source);
}

/* Whether an address of the outer header, at an offset, is of a kind. */
static __always_inline bool has_prefix(struct __sk_buff *skb, __u32 at,
				       enum telemetry_prefix_kind kind)
{
	struct telemetry_prefix key = { .bits = 128 };
	struct address address;
	__u32 *kinds;

	if (!outer_address(skb, at, &address))
		return false;
	__builtin_memcpy(key.address, &address, sizeof(key.address));
	kinds = bpf_map_lookup_elem(&telemetry_prefixes, &key);
	return kinds && *kinds & kind;
}

#define SOURCE_AT __builtin_offsetof(struct ipv6hdr, saddr)
#define DESTINATION_AT __builtin_offsetof(struct ipv6hdr, daddr)

/* Whether the telemetry of the packet is of the domain: of its nodes, or of its hosts. */
static __always_inline bool is_trusted(struct __sk_buff *skb)
{
	return is_inside(skb) || (settings.plain && has_prefix(skb, SOURCE_AT, PREFIX_PLAIN));
}

static __always_inline int refuse(__u32 outcome, enum drop_reason reason)
{
	__u64 *counter = bpf_map_lookup_elem(&drops, &reason);

	if (counter)
		++*counter;
	outcome_count(outcome);
	return TC_ACT_SHOT;
}
