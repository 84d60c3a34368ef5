// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * SYNs refused lately. The SYN went on to another host; were its retransmission
 * accepted here, there would be two half-open connections.
 */
#pragma once

#include "compat.h"

/*
 * The upper half of the flow hash and the time in jiffies, by the lower half. One slot per
 * hash: a newer refusal overwrites an older one, which may then be decided anew.
 */
#define REFUSALS 65536

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REFUSALS);
	__type(key, __u32);
	__type(value, __u64);
} refusals SEC(".maps");

/* Whether the flow was refused less than so many jiffies ago. */
static __always_inline bool refused_lately(__u64 hash, __u32 jiffies)
{
	__u32 slot = hash % REFUSALS;
	__u64 *refusal = bpf_map_lookup_elem(&refusals, &slot);
	__u32 now = bpf_jiffies64();

	return refusal && *refusal && *refusal >> 32 == hash >> 32 &&
	       now - (__u32)*refusal < jiffies;
}

static __always_inline void refusal_remember(__u64 hash)
{
	__u32 slot = hash % REFUSALS;
	__u64 *refusal = bpf_map_lookup_elem(&refusals, &slot);

	if (refusal)
		*refusal = (hash >> 32) << 32 | (__u32)bpf_jiffies64();
}
