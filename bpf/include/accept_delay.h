// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How long a connection takes on a host: by how long a core worked on those that ended lately, and
 * by how many there are. acceptance.Pace is the same in Go, and says why.
 */
#pragma once

#include "accept_level.h"
#include "compat.h"

/* What a host did lately. A tick is 1,024 ns. Both sums fade, to a half within 2^22 ticks. */
struct pace {
	__u64 at; /* tick up to which it is known */
	__u64 work; /* ticks of all cores together */
	__u64 done; /* connections that ended, in 1/65536 */
};

#define TICK_SHIFT 10
#define PACE_SHIFT 22
#define PACE_MOST (1 << 28)
#define DONE_ONE_SHIFT 16
#define USUAL_COUNT 16
#define CORES_MOST (1 << 12)

#define DELAY_POWER_MOST 16
#define SHARE_ONE_SHIFT 10
#define SHARE_MOST (1 << 26)

#define DELAY_MANTISSA_BITS 6
#define NOTE_USUAL_SHIFT 11 /* the note is of what a connection takes of a core */

static __always_inline __u32 pace_working(__u32 connections, __u32 cores)
{
	return lesser(lesser(connections, cores), CORES_MOST);
}

/* Brings a pace up to date, after so many cores worked. Time that goes back is none. */
static __always_inline void pace_until(struct pace *p, __u64 now, __u64 working)
{
	__s64 passed = (now >> TICK_SHIFT) - p->at, beyond;
	__u64 whole;

	passed &= ~(passed >> 63);
	p->at += passed;
	beyond = passed - PACE_MOST;
	passed = PACE_MOST + (beyond & beyond >> 63);
	whole = (1ull << PACE_SHIFT) + passed;
	p->work = ((p->work + passed * working) << PACE_SHIFT) / whole;
	p->done = (p->done << PACE_SHIFT) / whole;
}

/* A number of 64 bits as a level: at least 1, and of 32 bits at most. */
static __always_inline __u32 level_saturated(__u64 x)
{
	__u32 level = x | -(__u32)is_some(x >> 32);

	return level + !is_some(level);
}

/* Ticks that a core works on a connection, 0: not known. usual counts as USUAL_COUNT of them. */
static __always_inline __u32 pace_each(const struct pace *p, __u32 usual)
{
	__u64 known = is_some(usual), work, done;

	work = (p->work + USUAL_COUNT * (__u64)usual) << DONE_ONE_SHIFT;
	done = p->done + ((known * USUAL_COUNT) << DONE_ONE_SHIFT);
	known = is_some(done >> DONE_ONE_SHIFT);
	/* without any, the divisor is 1 and the result not used */
	return level_saturated(work / (done | !known)) & -(__u32)known;
}

/* How many times as long as a core works on it a connection takes, in 1/1024: it shares the cores
 * once there are more connections than cores. */
static __always_inline __u64 delay_longer(__u64 busy, __u64 cores, __u32 power)
{
	__u64 share = ((busy + 1) << SHARE_ONE_SHIFT) / cores, longer;

	if (share < 1 << SHARE_ONE_SHIFT)
		share = 1 << SHARE_ONE_SHIFT;
	longer = share;
	for (__u32 i = 1; i < DELAY_POWER_MOST; i++) {
		if (i >= power)
			break;
		longer = longer * share >> SHARE_ONE_SHIFT;
		if (longer > SHARE_MOST)
			longer = SHARE_MOST;
	}
	longer += ((2 * busy + 1) << SHARE_ONE_SHIFT) / (8 * cores);
	return longer < SHARE_MOST ? longer : SHARE_MOST;
}

static __always_inline __u32 delay_of(__u32 each, __u64 longer)
{
	return level_saturated(each * longer >> SHARE_ONE_SHIFT) & -is_some(each);
}

static __always_inline __u32 delay_note(__u32 level)
{
	return level_short(level, DELAY_MANTISSA_BITS) + 1;
}

static __always_inline __u32 delay_note_level(__u32 note)
{
	__u32 code = note & ((1 << NOTE_USUAL_SHIFT) - 1), level;

	if (!code)
		return 0;
	level = level_long(code - 1, DELAY_MANTISSA_BITS);
	return level ? level : 1;
}
