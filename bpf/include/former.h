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
	struct flow_secret secret;
	__u32 on; /* 0: nothing former is known */
	__u32 reserved;
};

const volatile struct former former = {};

/* A chain that is joined for one packet. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct chain);
} joints SEC(".maps");

static __always_inline struct chain *chain_joint(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&joints, &zero);
}

/* Adds an id at the end, if there is room for it and it is not there. */
static __always_inline void chain_push(volatile struct chain *c, __be16 id)
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

/* Adds the candidates of a chain. All numbers are read where they are compared: the verifier would
 * follow what comes next once for each value that a comparison has left possible. */
static __always_inline void chain_push_candidates(struct chain *c,
						  const volatile struct chain *from)
{
	for (int i = 0; i < CHAIN_MAX; i++)
		if (i < from->candidates)
			chain_push(c, from->ids[i]);
}

/* Adds those behind the candidates. */
static __always_inline void chain_push_others(struct chain *c, const volatile struct chain *from)
{
	for (int i = 0; i < CHAIN_MAX; i++)
		if (i >= from->candidates && i < from->length)
			chain_push(c, from->ids[i]);
}

/*
 * The chain of now, joined by that of the flow's bucket in the service's former table: present
 * candidates, former candidates, the other present ones, the other former ones. It lies in joints;
 * false: there was none to join. Not static, so that the verifier looks at it once.
 */
__noinline int chain_join(const struct chain *now, const struct service *service,
			  const struct flow *flow)
{
	struct chain *before, *joint = chain_joint();

	if (!now || !service || !flow || !joint)
		return false;
	before = chain_at(service->former_block,
			  service->former_table + flow_bucket(flow_hash(&former.secret, flow),
							      service->former_buckets));
	if (!before)
		return false;
	joint->length = 0;
	joint->candidates = now->candidates;
	joint->shadow = now->shadow;
	chain_push_candidates(joint, now);
	chain_push_candidates(joint, before);
	chain_push_others(joint, now);
	chain_push_others(joint, before);
	return true;
}

/* The chain of a packet with those who had its flow by the former secret and table. */
static __always_inline struct chain *with_former(const struct service *service,
						 const struct flow *flow, struct chain *chain)
{
	struct chain *joint = 0;

	if (former.on && service->former_buckets && chain_join(chain, service, flow))
		joint = chain_joint();
	return joint ? joint : chain;
}
