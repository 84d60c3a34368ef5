// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Chains of backends: who is offered the packets of a bucket, which SIDs they have, and how much
 * they were sent. */
#pragma once

#include "counters.h"
#include "flow.h"
#include "service.h"
#include "srh.h"

/* Who serves a bucket: current candidates first, then previous owners, newest first. */
struct chain {
	__be16 ids[CHAIN_MAX];
	__u8 length;
	__u8 candidates;
	__be16 shadow; /* for End.SHADOW: the owner before the latest change; 0: none */
} __attribute__((aligned(8))); /* it is read in words */

/* Nothing else brings the type into the object's BTF, of which its Go twin is made. */
const struct chain *chain_type __attribute__((unused));

#define CHAIN_BLOCK 131328 /* two tables of 65,537 and their headers; the loader may make more */
#define CHAIN_BLOCKS 16384 /* at most */

/* No BPF_F_INNER_MAP: as all blocks are of one size, the verifier puts the look-up in one in line.
 * A call of it would be an eighth of a packet's time where returns are slow. */
struct chain_block {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CHAIN_BLOCK);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct chain));
	__uint(map_flags, BPF_F_MMAPABLE);
};

/*
 * The chains of all services, in blocks that the loader makes as they are needed. Tables of several
 * services are in a block, and each in one: which that is does not wait for the hash. The entry of
 * a service says where its table is. As it is replaced, all of the service's buckets are; what it
 * named before is written again only when no packet is under way that has found it. The first chain
 * of the first block is empty.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, CHAIN_BLOCKS);
	__type(key, __u32);
	__array(values, struct chain_block);
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

static __always_inline struct chain *chain_of_owner(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&owners, &zero);
}

/* The chain at a place of a block. */
static __always_inline struct chain *chain_at(__u32 block, __u32 place)
{
	void *chains = bpf_map_lookup_elem(&tables, &block);

	return chains ? bpf_map_lookup_elem(chains, &place) : 0;
}

static __always_inline struct chain *chain_find(const struct service *service, __u64 hash)
{
	return chain_at(service->block, service->table + flow_bucket(hash, service->buckets));
}

/* What was forwarded for a service. */
struct service_counters {
	struct traffic all;
	struct traffic others; /* of these, to backends for which no counter was free */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct service_counters);
} service_traffic SEC(".maps");

/*
 * What a backend was offered first of a service. Each CPU writes the owner beside the counter when
 * its first packet comes: at the place that service and id name, or the first free one behind it.
 * The step between services is the golden section of all places, so that ids in sequence, as most
 * are, keep clear of those of other services.
 */
#define COUNTERS 32768
#define COUNTERS_STEP 20251
#define COUNTERS_PROBES 64
#define COUNTERS_BLOCK 16 /* the kernel allocates each entry of a per-CPU map by itself */

/* All places less one: a power of two, for the loader makes more of them where backends are many.
 */
const volatile __u32 counters_mask = COUNTERS - 1;

struct backend_counter {
	struct traffic traffic;
	__u32 owner; /* service and id; 0: the counter is free */
	__u32 reserved;
};

struct backend_counters {
	struct backend_counter counters[COUNTERS_BLOCK];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS / COUNTERS_BLOCK);
	__type(key, __u32);
	__type(value, struct backend_counters);
} backend_traffic SEC(".maps");

static __always_inline struct backend_counter *backend_counter_at(__u32 place)
{
	__u32 block = (place & counters_mask) / COUNTERS_BLOCK;
	struct backend_counters *b = bpf_map_lookup_elem(&backend_traffic, &block);

	return b ? &b->counters[place % COUNTERS_BLOCK] : 0;
}

/* Counts a packet to a backend that has no counter yet, or not at its own place. */
__noinline int traffic_count_elsewhere(__u32 service, __u32 backend, __u32 bytes)
{
	__u32 owner = service << 16 | (backend & 0xffff),
	      place = service * COUNTERS_STEP + (backend & 0xffff);
	struct service_counters *s;

	for (__u32 i = 0; i < COUNTERS_PROBES; i++) {
		struct backend_counter *c = backend_counter_at(place + i);

		if (!c)
			return 0;
		if (!c->owner)
			c->owner = owner;
		if (c->owner == owner) {
			traffic_add(&c->traffic, bytes);
			return 0;
		}
	}
	s = bpf_map_lookup_elem(&service_traffic, &service);
	if (s)
		traffic_add(&s->others, bytes);
	return 0;
}

static __always_inline void traffic_count(__u32 service, __u16 backend, __u32 bytes)
{
	struct backend_counter *c = backend_counter_at(service * COUNTERS_STEP + backend);
	struct service_counters *s = bpf_map_lookup_elem(&service_traffic, &service);

	if (s)
		traffic_add(&s->all, bytes);
	if (c && likely(c->owner == (service << 16 | backend)))
		traffic_add(&c->traffic, bytes);
	else
		traffic_count_elsewhere(service, backend, bytes);
}
