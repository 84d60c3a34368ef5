// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * SRv6 Path Tracing (draft-filsfils-ippm-path-tracing): each node shifts what is there by three
 * octets, and writes its own in front: 12 bits of the interface by which the packet leaves, 4 of
 * its load, 8 of the time. The load has no scale that all nodes share, and is 0.
 */
#pragma once

#include "hop_options.h"

#define MIDPOINT 3 /* octets of a node */
#define MIDPOINTS_MAX 252 /* octets of all: 84 nodes */
#define MIDPOINT_INTERFACE_MAX 0xfff

#define SECOND_NS 1000000000

/* When the current second of CLOCK_TAI began: any processor may write it, none has to. */
static __u64 second_began;

/* Nanoseconds of CLOCK_TAI within its second. A division takes longer than the comparison that
 * most packets need. */
static __always_inline __u32 second_fraction(void)
{
	__u64 now = bpf_ktime_get_tai_ns(), fraction = now - *(volatile __u64 *)&second_began;

	if (likely(fraction < SECOND_NS))
		return fraction;
	fraction = now % SECOND_NS;
	*(volatile __u64 *)&second_began = now - fraction;
	return fraction;
}

/* Writes a node: its time is shifted as the domain's template says. */
static __always_inline void midpoint_write(__u8 *to, __u32 interface, __u32 shift)
{
	if (interface > MIDPOINT_INTERFACE_MAX)
		interface = MIDPOINT_INTERFACE_MAX;
	to[0] = interface >> 4;
	to[1] = interface << 4;
	to[2] = second_fraction() >> (shift & 31);
}

/* Octets of an option that nodes write to: a multiple of MIDPOINT. */
static __always_inline __u32 midpoints_octets(__u32 length)
{
	return (length & 0xff) * 171 / 512 * MIDPOINT; /* 171 / 512 is a third, of an octet */
}

/*
 * Shifts what nodes wrote by one: so many octets at an offset from the start of the frame. The
 * oldest falls out; the newest three are left to be written. From six octets before on, whose place
 * is a multiple of eight where sources put the option, eight at a time. The last eight, which
 * overlap them and may begin before the nodes, are read first.
 */
static __always_inline bool midpoints_shift(struct __sk_buff *skb, __u32 at, __u32 octets)
{
	__u64 *word = packet_at(skb, at - 6, 8), *to, old, before, last, kept;
	void *end = packet_end(skb),
	     *from = packet_at(skb, at + octets - 8 - MIDPOINT, 8 + MIDPOINT);

	if (octets <= MIDPOINT)
		return true;
	if (!word || !from)
		return false;
	last = *(__u64 *)from;
	before = *word;
	for (__u32 i = 1; i < MIDPOINTS_MAX / 8 + 1; i++) {
		if (8 * (i + 1) > octets + 6 || (void *)(word + i + 1) > end)
			break;
		old = word[i];
		word[i] = old << 8 * MIDPOINT | before >> (64 - 8 * MIDPOINT);
		before = old;
	}
	to = packet_at(skb, at + octets - 8, 8);
	if (!to)
		return false;
	kept = octets >= 8 + MIDPOINT ? 0 : (1ULL << 8 * (8 + MIDPOINT - octets)) - 1;
	*to = (last & ~kept) | (*to & kept);
	return true;
}

/* Looks through an option for the interfaces that the packet left by: a hash of them, newest
 * first. False if no node wrote. */
static __noinline bool midpoints_see(struct __sk_buff *skb, const struct hop_option *o, __u32 *path)
{
	__u32 hash = 2166136261;
	__u8 node[MIDPOINT];
	bool any = false;

	if (!o || !path)
		return false;
	for (__u32 i = 0; i < 16; i++) {
		if (MIDPOINT * (i + 1) > o->length ||
		    bpf_skb_load_bytes(skb, o->at + 2 + MIDPOINT * i, node, sizeof(node)))
			break;
		if (!node[0] && !node[1] && !node[2])
			continue;
		hash = (hash ^ (node[0] << 4 | node[1] >> 4)) * 16777619;
		any = true;
	}
	*path = hash;
	return any;
}
