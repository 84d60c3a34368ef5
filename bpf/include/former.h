// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections from before another secret, or from before a service had fewer buckets. For a while
 * their packets are offered to those who had them by the former secret and table, too. A service
 * without a former table is none of this.
 * Specification: docs/reference/dataplane.md, "Former flows".
 */
#pragma once

#include "chain.h"
#include "flow.h"

struct former {
	struct secret secret;
	__u32 on; /* 0: nothing former is known */
	__u32 first_table; /* of the former ones: as many lie before it as an edge can have services
			    */
};

const volatile struct former former = {};

/* A chain that is joined for one packet. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chain);
} joints SEC(".maps");

/* Adds an id at the end, if there is room for it and it is not there. */
static __always_inline void chain_push(struct chain *c, __be16 id)
{
	__u32 place = c->length;
	bool there = false;

#pragma unroll
	for (int i = 0; i < CHAIN_MAX; i++)
		there |= i < place && c->ids[i] == id;
	if (there || place >= CHAIN_MAX)
		return;
	barrier_var(place); /* or else the compiler tests one register and uses another */
	((__be16 *)c)[place & 7] = id; /* ids, and what else the verifier assumes, is within c */
	c->length = place + 1;
}

/* Adds those of a chain from place first on, as far as before place last. */
static __always_inline void chain_push_some(struct chain *c, const struct chain *from, __u8 first,
					    __u8 last)
{
	for (int i = 0; i < CHAIN_MAX; i++)
		if (i >= first && i < last)
			chain_push(c, from->ids[i]);
}

/*
 * The chain of now, joined by that of a bucket of a former table: present candidates, former
 * candidates, the other present ones, the other former ones. It lies in joints; 0: there was none
 * to join.
 */
static __noinline struct chain *chain_join(const struct chain *now, __u32 table_index, __u32 bucket)
{
	struct chain *before = chain_at(table_index, bucket), *joint;
	__u32 zero = 0;

	joint = bpf_map_lookup_elem(&joints, &zero);
	if (!before || !joint)
		return 0;
	joint->length = 0;
	joint->candidates = now->candidates;
	joint->shadow = now->shadow;
	chain_push_some(joint, now, 0, now->candidates);
	chain_push_some(joint, before, 0, before->candidates);
	chain_push_some(joint, now, now->candidates, now->length);
	chain_push_some(joint, before, before->candidates, before->length);
	return joint;
}

/* The chain of a packet with those who had its flow by the former secret and table. */
static __always_inline struct chain *with_former(const struct service *service,
						 const struct flow *flow, struct chain *chain)
{
	struct chain *joint;
	__u64 hash;

	if (!former.on || !service->former_buckets)
		return chain;
	hash = flow_hash(&former.secret, flow);
	joint = chain_join(chain, former.first_table + service->index,
			   flow_bucket(hash, service->former_buckets));
	return joint ? joint : chain;
}
