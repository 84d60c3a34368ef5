// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the two objects share that take strays away beside a router's own SIDs: vrf_stray.c on the
 * interfaces of the SR domain, vrf_lookup.c where packets enter a VRF. Specification:
 * docs/reference/dataplane.md, "Strays beside a router".
 */
#pragma once

#include "hop_limit.h"
#include "socket.h"

#define STRAY_VRFS_MAX 16

/*
 * A stray leaves with one hop less than this. What comes with less has been astray before, and does
 * not leave again. No hop limit would end that otherwise: kernels that encapsulate do not count
 * down that of the packet inside.
 */
#define STRAY_HOPS 16

/* Where the sockets of a VRF are, and where its strays go. Written by the agent, which follows
 * changes. */
struct stray_vrf {
	__u32 interface; /* the VRF device; 0: the VRF is a network namespace */
	__u32 netns; /* its id in this namespace, if it is one */
	__u32 backup; /* the device on which strays are received; 0: this VRF is not there now */
	__u8 address[ETH_ALEN]; /* of the VRF device */
	__u8 backup_address[ETH_ALEN];
	__u8 name[16]; /* for the program that takes the counters over */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STRAY_VRFS_MAX);
	__type(key, __u32);
	__type(value, struct stray_vrf);
} stray_vrfs SEC(".maps");

/* What was asked for: packets that continue a connection. Openings and all that is no TCP are not
 * counted. */
struct stray_traffic {
	__u64 here; /* packets whose connection is in the VRF */
	__u64 here_bytes; /* of inner packets */
	__u64 strays; /* packets whose connection is not */
	__u64 stray_bytes;
	__u64 returned; /* strays that have been strays before: left to the kernel */
	__u64 returned_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STRAY_VRFS_MAX);
	__type(key, __u32);
	__type(value, struct stray_traffic);
} stray_traffic SEC(".maps");

enum stray_verdict {
	STRAY_HERE,
	STRAY_AWAY,
	STRAY_RETURNED,
};

/* Counts packets that are one after GRO. */
static __always_inline void stray_count(__u32 vrf, enum stray_verdict verdict, __u32 packets,
					__u32 bytes)
{
	struct stray_traffic *t = bpf_map_lookup_elem(&stray_traffic, &vrf);

	if (!t)
		return;
	if (verdict == STRAY_HERE) {
		t->here += packets;
		t->here_bytes += bytes;
	} else if (verdict == STRAY_RETURNED) {
		t->returned += packets;
		t->returned_bytes += bytes;
	} else {
		t->strays += packets;
		t->stray_bytes += bytes;
	}
}

/* VRF-shadowing, Algorithm 1: only a packet that continues a connection can be astray. */
static __always_inline bool continues(const struct packet *p)
{
	return p->flow.protocol == IPPROTO_TCP && !(p->tcp_flags & TCP_FLAG_SYN);
}
