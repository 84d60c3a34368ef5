// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How fast octets go out, by a counter of octets that is kept anyway: the average is brought up to
 * date when a packet asks for it, so that other packets pay nothing. It forgets over a time
 * constant, as the discounting rate estimator of CONGA does (Alizadeh et al., SIGCOMM 2014, section
 * 3.2). srpolicy.Meter in Go.
 */
#pragma once

#include <linux/types.h>

#define METER_UNIT 26 /* a rate is in octets per 2^26 ns */
#define METER_PAUSE 8 /* part of the time constant for which a rate stands */
#define METER_LONG 14 /* after 2^14 time constants nothing is left of what was before */
#define METER_MOST (1ULL << 32) /* octets that are counted of a shorter time: products fit */

struct meter {
	__u64 at; /* CLOCK_MONOTONIC, ns */
	__u64 octets; /* of the counter then */
	__u64 rate;
};

/* The rate now. Of packets that ask at once, on several CPUs, one brings it up to date. A counter
 * that went back is another one, of which nothing was seen yet. */
static __always_inline __u64 meter_read(struct meter *m, __u64 octets, __u64 now, __u64 constant)
{
	__u64 at = m->at, elapsed = now - at, fresh;

	if ((__s64)elapsed <= (__s64)(constant / METER_PAUSE) ||
	    __sync_val_compare_and_swap(&m->at, at, now) != at)
		return m->rate;
	fresh = octets - m->octets;
	if ((__s64)fresh < 0)
		fresh = 0;
	m->octets = octets;
	if (elapsed >> METER_LONG > constant) {
		m->rate = (fresh << (METER_UNIT - METER_LONG)) / (elapsed >> METER_LONG);
		return m->rate;
	}
	if (fresh > METER_MOST)
		fresh = METER_MOST;
	m->rate = (m->rate * constant + (fresh << METER_UNIT)) / (constant + elapsed);
	return m->rate;
}
