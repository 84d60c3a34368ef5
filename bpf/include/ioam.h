// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * IOAM pre-allocated trace (RFC 9197 section 4.4, RFC 9486): the source makes room, each node fills
 * a part of it from the end on. Units are Linux's: octets of queues, microseconds in the fraction
 * of a second.
 */
#pragma once

#include "hop_options.h"

#define IOAM_PREALLOCATED 0
#define IOAM_HEADER 10 /* octets of the option's data before the nodes' */
#define IOAM_OVERFLOW 4 /* flag: a node found no room */
#define IOAM_REMAINING 127 /* mask */
#define IOAM_WORDS_MAX 26 /* of one node: 22 fields, three of them wide, and the opaque's head */
#define IOAM_DELAY_OVERFLOW 0x80000000

/* IOAM-Trace-Type: 24 bits, what each node writes, in this order. */
enum ioam_field {
	IOAM_NODE = 0x800000, /* hop limit 8, node 24 */
	IOAM_INTERFACES = 0x400000,
	IOAM_SECONDS = 0x200000,
	IOAM_FRACTION = 0x100000,
	IOAM_DELAY = 0x080000,
	IOAM_QUEUE = 0x020000,
	IOAM_NODE_WIDE = 0x008000, /* hop limit 8, node 56 */
	IOAM_INTERFACES_WIDE = 0x004000,
	IOAM_WIDE = 0x00e000, /* 8 octets each */
	IOAM_FIELDS = 0xfffffc,
	IOAM_OPAQUE = 0x000002,
};

/* Fields of a word each, which nodes of Linux know, too. */
#define IOAM_SHORT \
	(IOAM_NODE | IOAM_INTERFACES | IOAM_SECONDS | IOAM_FRACTION | IOAM_DELAY | IOAM_QUEUE)
#define IOAM_SHORT_WORDS 6

#define IOAM_NODE_MASK 0xffffff
#define IOAM_NO_SCHEMA 0x00ffffff /* an opaque snapshot of no words */

struct ioam_trace {
	__u8 reserved;
	__u8 kind;
	__be16 namespace;
	__u8 words; /* of one node, 5 bits; flags */
	__u8 remaining; /* flag; words that are free, 7 bits */
	__u8 type[3];
	__u8 reserved2;
} __attribute__((packed, aligned(2)));

static __always_inline __u32 ioam_type(const struct ioam_trace *trace)
{
	return trace->type[0] << 16 | trace->type[1] << 8 | trace->type[2];
}

/* Words that a node writes, an opaque snapshot not counted. */
static __always_inline __u32 ioam_words(__u32 type)
{
	return __builtin_popcount(type & IOAM_FIELDS) + (type >> 15 & 1) + (type >> 14 & 1) +
	       (type >> 13 & 1);
}

/* The trace type that asks for what instructions of INT ask for, where it can. */
static __always_inline __u32 ioam_type_of(__u32 instructions)
{
	__u32 type = 0;

	if (instructions & INT_NODE)
		type |= IOAM_NODE;
	if (instructions & INT_INTERFACES)
		type |= IOAM_INTERFACES;
	if (instructions & INT_INGRESS_TIME)
		type |= IOAM_SECONDS | IOAM_FRACTION;
	if (instructions & INT_LATENCY)
		type |= IOAM_DELAY;
	if (instructions & INT_QUEUE)
		type |= IOAM_QUEUE;
	if (instructions & INT_WIDE_INTERFACES)
		type |= IOAM_INTERFACES_WIDE;
	return type;
}

/* What a node that writes IOAM knows besides. */
struct ioam_observation {
	struct int_observation seen;
	__u32 hop_limit;
	__s32 tai_offset_s; /* seconds that CLOCK_TAI is before POSIX time */
};

/* The first of a field's words, and the second of a wide one. All ones: not known. */
static __always_inline __u64 ioam_value(__u32 field, const struct ioam_observation *o, __u64 in)
{
	const struct int_observation *seen = &o->seen;

	switch (field) {
	case IOAM_NODE:
		return o->hop_limit << 24 | (seen->node & IOAM_NODE_MASK);
	case IOAM_INTERFACES:
		return int_interfaces(seen);
	case IOAM_SECONDS:
		return in == ~0ULL ? ~0U : in / 1000000000 - o->tai_offset_s;
	case IOAM_FRACTION:
		return in == ~0ULL ? ~0U : in % 1000000000 / 1000;
	case IOAM_DELAY:
		if (seen->latency_ns > 0xffffffff)
			return ~0U;
		return seen->latency_ns < IOAM_DELAY_OVERFLOW ? seen->latency_ns :
								IOAM_DELAY_OVERFLOW;
	case IOAM_QUEUE:
		return seen->queue;
	case IOAM_NODE_WIDE:
		return (__u64)o->hop_limit << 56 | seen->node;
	case IOAM_INTERFACES_WIDE:
		return (__u64)seen->ingress << 32 | seen->egress;
	}
	return ~0ULL;
}

/* When the packet came, nanoseconds of CLOCK_TAI, if the type asks for it; all ones: not known. */
static __always_inline __u64 ioam_ingress_ns(__u32 type, const struct ioam_observation *o)
{
	if (!(type & (IOAM_SECONDS | IOAM_FRACTION)) || o->seen.latency_ns > 0xffffffff)
		return ~0ULL;
	return bpf_ktime_get_tai_ns() - o->seen.latency_ns;
}

/* Writes short fields into a packet, in the order of their bits. */
static __always_inline void ioam_write_short(__be32 *to, __u32 type,
					     const struct ioam_observation *o)
{
	__u64 in = ioam_ingress_ns(type, o);

#pragma unroll
	for (__u32 field = IOAM_NODE; field >= IOAM_QUEUE; field >>= 1) {
		if (field & IOAM_SHORT && type & field)
			*to++ = bpf_htonl(ioam_value(field, o, in));
	}
}

/* Writes what a node knows, from an offset of the scratch on. Returns the octets. Global, for the
 * verifier. */
__noinline int ioam_write(struct int_scratch *s, __u32 at, __u32 type,
			  const struct ioam_observation *o)
{
	__u32 from = at;
	__u64 value, in;

	if (!s || !o)
		return 0;
	in = ioam_ingress_ns(type, o);
#pragma unroll
	for (__u32 field = IOAM_NODE; field > IOAM_OPAQUE; field >>= 1) {
		if (!(type & field))
			continue;
		value = ioam_value(field, o, in);
		if (field & IOAM_WIDE) {
			put32(s, at, value >> 32);
			at += INT_WORD;
		}
		put32(s, at, value);
		at += INT_WORD;
	}
	if (type & IOAM_OPAQUE) {
		put32(s, at, IOAM_NO_SCHEMA);
		at += INT_WORD;
	}
	return at - from;
}
