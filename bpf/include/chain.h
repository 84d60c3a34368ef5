// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Chains of backends: who is offered the packets of a bucket, which SIDs they have, and how much they were sent. */
#pragma once

#include "counters.h"
#include "flow.h"
#include "service.h"
#include "srh.h"

/* Who serves a bucket: current candidates first, then past owners, newest first. */
struct chain {
	__be16 ids[CHAIN_MAX];
	__u8 length;
	__u8 candidates;
	__be16 shadow; /* for End.SHADOW: the owner before the latest change; 0: none */
};

/* Nothing else brings the type into the object's BTF, against which its Go twin is checked. */
const struct chain *chain_type __attribute__((unused));

struct chains {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65537); /* the loader sets the number of buckets */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct chain));
};

/* Chains per service. Replacing the inner map replaces all of a service's buckets in one step. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__array(values, struct chains);
} tables SEC(".maps");

/* SIDs by id. The carrier needs none: there, the id is the SID. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536);
	__type(key, __u32);
	__type(value, struct address);
} sids SEC(".maps");

/* A chain that is made for one packet. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chain);
} owners SEC(".maps");

static __always_inline struct chain *chain_find(const struct service *service, __u64 hash, __u32 buckets)
{
	__u32 index = service->index;
	__u32 bucket = flow_bucket(hash, buckets);
	void *table = bpf_map_lookup_elem(&tables, &index);

	return table ? bpf_map_lookup_elem(table, &bucket) : 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct traffic);
} service_traffic SEC(".maps");

/*
 * By SID id of the first in the chain: whom the packet was offered to first. In blocks, as the kernel allocates each
 * entry of a per-CPU map by itself: 65,536 of them take longer than all else in loading.
 */
#define TRAFFIC_BLOCK 256

struct traffic_block {
	struct traffic backends[TRAFFIC_BLOCK];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 65536 / TRAFFIC_BLOCK);
	__type(key, __u32);
	__type(value, struct traffic_block);
} backend_traffic SEC(".maps");

static __always_inline void traffic_count(__u32 service, __u16 backend, __u32 bytes)
{
	__u32 index = backend / TRAFFIC_BLOCK;
	struct traffic_block *block = bpf_map_lookup_elem(&backend_traffic, &index);

	if (block)
		traffic_add(&block->backends[backend % TRAFFIC_BLOCK], bytes);
	traffic_add(bpf_map_lookup_elem(&service_traffic, &service), bytes);
}
