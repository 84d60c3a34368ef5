// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Token buckets, as the generic cell rate algorithm (ITU-T I.371): one number holds the level and
 * the time. */
#pragma once

#include "compat.h"

struct limit {
	__u64 interval_ns; /* between two at the permitted rate */
	__u64 tolerance_ns; /* how far ahead of that rate: interval * (burst - 1) */
};

/* Tries to get past other CPUs. A token more now and then does no harm. */
#define LIMIT_TRIES 4

/* The same bucket for all CPUs. */
static __always_inline bool limit_allows_shared(const struct limit *limit, __u64 *due, __u64 now)
{
#pragma unroll
	for (int i = 0; i < LIMIT_TRIES; i++) {
		__u64 seen = *(volatile __u64 *)due, next = seen > now ? seen : now;

		if (next - now > limit->tolerance_ns)
			return false;
		if (__sync_val_compare_and_swap(due, seen, next + limit->interval_ns) == seen)
			return true;
	}
	return true;
}

/* Takes a token, if there is one. due is when the next is due at the permitted rate; nobody else
 * may be at it. */
static __always_inline bool limit_allows(const volatile struct limit *limit, __u64 *due, __u64 now)
{
	__u64 next = *due > now ? *due : now;

	if (next - now > limit->tolerance_ns)
		return false;
	*due = next + limit->interval_ns;
	return true;
}
