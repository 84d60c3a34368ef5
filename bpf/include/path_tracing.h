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

/* Writes a node: its time is shifted as the domain's template says. */
static __always_inline void midpoint_write(__u8 *to, __u32 interface, __u32 shift)
{
	if (interface > MIDPOINT_INTERFACE_MAX)
		interface = MIDPOINT_INTERFACE_MAX;
	to[0] = interface >> 4;
	to[1] = interface << 4;
	to[2] = bpf_ktime_get_tai_ns() % 1000000000 >> (shift & 31);
}

/*
 * Shifts what nodes wrote by one: so many octets at an offset from the start of the frame. The
 * oldest falls out. From the end on, eight octets at a time, of which the last may begin before
 * the nodes: what is there stays.
 */
static __always_inline bool midpoints_shift(struct __sk_buff *skb, __u32 at, __u32 octets)
{
	__u64 *to, now, old, kept;
	__u8 *from;

	for (__u32 i = 0; i < MIDPOINTS_MAX / 8 + 1; i++) {
		__u32 end = octets - 8 * i; /* of the octets that are shifted now */

		if (8 * i + MIDPOINT >= octets)
			return true;
		from = packet_at(skb, at + end - 8 - MIDPOINT, 8 + MIDPOINT);
		if (!from)
			return false;
		to = (void *)(from + MIDPOINT);
		old = *to;
		now = *(__u64 *)from;
		kept = end >= 8 + MIDPOINT ? 0 : (1ULL << 8 * (8 + MIDPOINT - end)) - 1;
		*to = (now & ~kept) | (old & kept);
	}
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
