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

/* Writes a node at the start of the scratch: its time is shifted as the domain's template says. */
static __always_inline void midpoint_write(struct int_scratch *s, __u32 at, __u32 interface,
					   __u32 shift)
{
	if (interface > MIDPOINT_INTERFACE_MAX)
		interface = MIDPOINT_INTERFACE_MAX;
	*octet_at(s, at) = interface >> 4;
	*octet_at(s, at + 1) = interface << 4;
	*octet_at(s, at + 2) = bpf_ktime_get_tai_ns() % 1000000000 >> (shift & 31);
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
