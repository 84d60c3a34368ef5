// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Flows with a path of their own, in front of the rules of a head-end: exact matches,
 * each with a segment list and a time at which it is over. A controller moves a flow by
 * one write to the map; without one, flows keep their lists until their time is over.
 * Lists are shared by flows, and not changed while one uses them.
 */
#pragma once

#include "counters.h"
#include "policy.h"

/* Whether there is such a table: else the verifier removes all of this. */
const volatile bool has_flow_paths = false;

struct flow_key {
	struct address source;
	struct address destination;
	__u32 ports; /* as they lie in the packet */
	__u8 protocol;
	__u8 ipv4;
	__u16 reserved;
};

struct flow_path {
	__u64 until; /* CLOCK_MONOTONIC, ns */
	__u32 list;
	__u32 reserved;
};

/* The flow that rested longest gives way. The loader sets the number of entries. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct flow_key);
	__type(value, struct flow_path);
} flow_paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets it */
	__type(key, __u32);
	__type(value, struct list);
} flow_lists SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1); /* as flow_lists */
	__type(key, __u32);
	__type(value, struct traffic);
} flow_traffic SEC(".maps");

static __always_inline struct flow_key flow_key_of(const struct packet *p)
{
	return (struct flow_key){
		.source = p->flow.source,
		.destination = p->flow.destination,
		.ports = p->flow.ports,
		.protocol = p->flow.protocol,
		.ipv4 = p->flow.ipv4,
	};
}

/* What the packet's flow has, or none. Not inlined, to spare the stack. */
static __noinline struct flow_path *flow_path_at(const struct packet *p)
{
	struct flow_key key = flow_key_of(p);
	struct flow_path *path = bpf_map_lookup_elem(&flow_paths, &key);

	return path && path->until > bpf_ktime_get_coarse_ns() ? path : 0;
}
