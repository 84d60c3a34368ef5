// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * INT-MD 2.1 (P4.org) between the outer headers of SRv6 and the packet in them:
 *
 *   IPv6 | extension headers, SRH | UDP | shim (NPT 2) | INT-MD | stack | inner packet
 *
 * Headers are copied, changed and stored back: whatever is inserted or removed lies behind them.
 */
#pragma once

#include "compat.h"

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#ifndef IPPROTO_ETHERNET
#define IPPROTO_ETHERNET 143
#endif

#define INT_WORD 4
#define INT_TYPE_MD 1
#define INT_NPT_UDP 2 /* a UDP header of its own */
#define INT_VERSION 2
#define INT_HEADER_WORDS (sizeof(struct int_md) / INT_WORD)
#define INT_WORDS_MAX 255 /* of header and stack */
#define INT_HOP_WORDS 31 /* mask of what each node pushes */
#define INT_EXCEEDED_HOPS 4 /* E */
#define INT_EXCEEDED_MTU 2 /* M */
#define INT_DISCARD 8 /* D */
/* Domain of this program: the low octet of DS Flags counts the slots that the source left free at
 * the top of the stack. */
#define INT_DOMAIN 0x534d

enum int_instruction {
	INT_NODE = 0x8000,
	INT_INTERFACES = 0x4000,
	INT_LATENCY = 0x2000,
	INT_QUEUE = 0x1000,
	INT_INGRESS_TIME = 0x0800,
	INT_EGRESS_TIME = 0x0400,
	INT_WIDE_INTERFACES = 0x0200,
	INT_UTILIZATION = 0x0100,
	INT_WIDE = INT_INGRESS_TIME | INT_EGRESS_TIME | INT_WIDE_INTERFACES, /* 8 octets each */
};

struct int_shim {
	__u8 type; /* 4 bits, NPT 2, reserved 2 */
	__u8 words; /* of header and stack */
	__u8 reserved;
	__u8 protocol; /* of the inner packet */
};

struct int_md {
	__u8 flags; /* version 4, D, E, M, reserved */
	__u8 reserved;
	__u8 hop_words; /* 5 bits */
	__u8 remaining; /* nodes that may still push */
	__be16 instructions;
	__be16 domain;
	__be16 ds_instruction;
	__be16 ds_flags;
};

/* What stands between the outer headers and the stack. */
struct int_headers {
	struct udphdr udp;
	struct int_shim shim;
	struct int_md md;
};

#define INT_EXTENSIONS 3 /* extension headers that are walked */
#define INT_OUTER 256 /* octets of outer headers that are copied */
#define INT_ROOM_WORDS 64 /* words of stack that a source inserts, at most */
#define INT_HEAD (INT_OUTER + sizeof(struct int_headers))
#define INT_SCRATCH 1024 /* a power of two above INT_HEAD and INT_ROOM_WORDS */

struct int_scratch {
	__u8 octets[INT_SCRATCH]; /* the packet from its IPv6 header on */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct int_scratch);
} int_scratches SEC(".maps");

/* What a node knows of itself and of a packet. */
struct int_observation {
	__u64 latency_ns; /* beyond 32 bits: unknown */
	__u32 node;
	__u32 ingress;
	__u32 egress;
	__u32 queue; /* octets; all ones: unknown */
	__u32 utilization;
};

struct int_outer {
	__u32 length; /* of all headers */
	__u32 next_at; /* where the last of them says what follows */
	__u32 protocol; /* what follows */
};

/* Copies the headers of an IPv6 packet. Returns how many octets there are, 0 if too few. */
static __always_inline __u32 int_copy(struct __sk_buff *skb, struct int_scratch *s)
{
	__u32 octets = skb->len - sizeof(struct ethhdr);

	if (skb->len < sizeof(struct ethhdr) + sizeof(struct ipv6hdr))
		return 0;
	if (octets > INT_HEAD)
		octets = INT_HEAD;
	if (bpf_skb_load_bytes(skb, sizeof(struct ethhdr), s->octets, octets))
		return 0;
	return octets;
}

static __always_inline __u32 get16(const struct int_scratch *s, __u32 at)
{
	return s->octets[at & (INT_SCRATCH - 1)] << 8 | s->octets[(at + 1) & (INT_SCRATCH - 1)];
}

static __always_inline void put16(struct int_scratch *s, __u32 at, __u32 value)
{
	s->octets[at & (INT_SCRATCH - 1)] = value >> 8;
	s->octets[(at + 1) & (INT_SCRATCH - 1)] = value;
}

static __always_inline void put32(struct int_scratch *s, __u32 at, __u32 value)
{
	*(__be32 *)(s->octets + (at & (INT_SCRATCH - INT_WORD))) = bpf_htonl(value);
}

/* Walks the outer headers. False if they are not whole, or the packet is shorter than it says. */
static __always_inline bool int_walk(const struct int_scratch *s, __u32 octets, __u32 length,
				     struct int_outer *o)
{
	__u32 at = sizeof(struct ipv6hdr);

	o->next_at = __builtin_offsetof(struct ipv6hdr, nexthdr);
	o->protocol = s->octets[o->next_at];
	if (s->octets[0] >> 4 != 6 || sizeof(struct ipv6hdr) + get16(s, 4) > length)
		return false;
#pragma unroll
	for (int i = 0; i < INT_EXTENSIONS; i++) {
		if (o->protocol != IPPROTO_ROUTING && o->protocol != IPPROTO_DSTOPTS &&
		    o->protocol != IPPROTO_HOPOPTS)
			break;
		if (at + 8 > octets || at > INT_OUTER - 8)
			return false;
		o->next_at = at;
		o->protocol = s->octets[at];
		at += 8 + 8 * s->octets[at + 1];
		if (at > INT_OUTER)
			return false;
	}
	o->length = at;
	return at <= octets && at <= sizeof(struct ipv6hdr) + get16(s, 4);
}

static __always_inline bool is_inner(__u32 protocol)
{
	return protocol == IPPROTO_IPV6 || protocol == IPPROTO_IPIP || protocol == IPPROTO_ETHERNET;
}

/* Words of 4 octets that the metadata takes. */
static __always_inline __u32 int_words(__u32 instructions)
{
	__u32 words = 0;

#pragma unroll
	for (int bit = 0; bit < 16; bit++)
		words += (instructions >> bit & 1) + ((instructions & INT_WIDE) >> bit & 1);
	return words;
}

/*
 * Writes what a node pushes: baseline metadata in the order of their bits. What is not known,
 * reserved or of another domain is all ones.
 */
static __noinline int int_write(struct int_scratch *s, __u32 at, __u32 words, __u32 instructions,
				const struct int_observation *o)
{
	__u64 now = 0, in = ~0ULL;
	bool timed;

	if (!s || !o)
		return 0;
	timed = o->latency_ns <= 0xffffffff;
	for (int i = 0; i < INT_HOP_WORDS; i++) {
		if (i >= words)
			break;
		put32(s, at + INT_WORD * i, ~0);
	}
	if (instructions & (INT_INGRESS_TIME | INT_EGRESS_TIME))
		now = bpf_ktime_get_tai_ns();
	if (timed)
		in = now - o->latency_ns;
	if (instructions & INT_NODE) {
		put32(s, at, o->node);
		at += INT_WORD;
	}
	if (instructions & INT_INTERFACES) {
		put32(s, at,
		      (o->ingress > 0xffff ? 0xffff : o->ingress) << 16 |
			      (o->egress > 0xffff ? 0xffff : o->egress));
		at += INT_WORD;
	}
	if (instructions & INT_LATENCY) {
		put32(s, at, timed ? o->latency_ns : ~0U);
		at += INT_WORD;
	}
	if (instructions & INT_QUEUE) {
		put32(s, at, o->queue);
		at += INT_WORD;
	}
	if (instructions & INT_INGRESS_TIME) {
		put32(s, at, in >> 32);
		put32(s, at + INT_WORD, in);
		at += 2 * INT_WORD;
	}
	if (instructions & INT_EGRESS_TIME) {
		put32(s, at, now >> 32);
		put32(s, at + INT_WORD, now);
		at += 2 * INT_WORD;
	}
	if (instructions & INT_WIDE_INTERFACES) {
		put32(s, at, o->ingress);
		put32(s, at + INT_WORD, o->egress);
		at += 2 * INT_WORD;
	}
	if (instructions & INT_UTILIZATION)
		put32(s, at, o->utilization);
	return 0;
}
