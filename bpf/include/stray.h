// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the two objects share that take strays away beside a router's own SIDs: stray.c on the interfaces of the SR
 * domain, vrf.c where packets enter a VRF. Specification: docs/dataplane.md, "Strays beside a router".
 */
#pragma once

#include "socket.h"

#define STRAY_VRFS_MAX 16

/* Where the sockets of a VRF are, and where its strays go. Written by the agent, which follows changes. */
struct stray_vrf {
	__u32 interface; /* the VRF device; 0: the VRF is a network namespace */
	__u32 netns; /* its id in this namespace, if it is one */
	__u32 backup; /* the device on which strays are received; 0: this VRF is not there now */
	__u8 address[ETH_ALEN]; /* of the VRF device */
	__u8 backup_address[ETH_ALEN];
	__u8 name[16]; /* for whoever takes the counters over */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STRAY_VRFS_MAX);
	__type(key, __u32);
	__type(value, struct stray_vrf);
} stray_vrfs SEC(".maps");

/* What was asked for: packets that continue a connection. Openings and all that is no TCP are not counted. */
struct stray_traffic {
	__u64 here; /* packets whose connection is in the VRF */
	__u64 here_bytes; /* of inner packets */
	__u64 strays; /* packets whose connection is not */
	__u64 stray_bytes;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STRAY_VRFS_MAX);
	__type(key, __u32);
	__type(value, struct stray_traffic);
} stray_traffic SEC(".maps");

/* Counts packets that are one after GRO. */
static __always_inline void stray_count(__u32 vrf, bool here, __u32 packets, __u32 bytes)
{
	struct stray_traffic *t = bpf_map_lookup_elem(&stray_traffic, &vrf);

	if (!t)
		return;
	if (here) {
		t->here += packets;
		t->here_bytes += bytes;
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
