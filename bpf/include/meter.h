// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How fast octets go out, by a counter of octets that is kept anyway: the average is brought up to
 * date when somebody asks for it, so that other packets pay nothing. It forgets over a time
 * constant, as the discounting rate estimator of CONGA does (Alizadeh et al., SIGCOMM 2014, section
 * 3.2). srpolicy.Meter in Go.
 */
#pragma once

#include <linux/types.h>

#define METER_UNIT 20 /* a rate is in octets per 2^20 ns */
#define METER_PAUSE 8 /* part of the time constant for which a rate stands */

struct meter {
	__u64 at; /* CLOCK_MONOTONIC, ns */
	__u64 octets; /* of the counter then */
	__u64 rate;
};

/* The rate now. Of packets that ask at once, on several CPUs, one brings it up to date. */
static __always_inline __u64 meter_read(struct meter *m, __u64 octets, __u64 now, __u64 constant)
{
	__u64 at = m->at, elapsed = now - at, fresh;

	if ((__s64)elapsed <= (__s64)(constant / METER_PAUSE) ||
	    __sync_val_compare_and_swap(&m->at, at, now) != at)
		return m->rate;
	fresh = octets - m->octets;
	m->octets = octets;
	m->rate = (m->rate * constant + (fresh << METER_UNIT)) / (constant + elapsed);
	return m->rate;
}
