// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Levels: what a connection meets on a host, and would meet with more candidates left. Hosts learn
 * them from their offers, and tell each other by notes of 12 bits.
 */
#pragma once

#include "compat.h"

#define LEVELS_MAX 5

#define FORGET_SHIFT 4
#define AGREE_SHIFT 1
#define BUSY_MAX (1 << 15)

/*
 * What follows has no branches, because the verifier would follow each of them with all that comes
 * behind it, and no calls, because a lock is held. The assembly keeps the compiler from finding the
 * branches again.
 */

/* 1 if x is not 0, else 0. */
static __always_inline __u32 is_some(__u32 x)
{
	__u32 negative = -x;

	asm volatile("" : "+r"(negative));
	return (x | negative) >> 31;
}

/*
 * Moves a mean by 1/2^shift of the distance to a value, all of it if nothing was known, and not at
 * all if the value is 0: it is not known.
 */
static __always_inline __u32 level_towards(__u32 level, __u32 value, __u32 shift)
{
	__s64 step = ((__s64)value - (__s64)level) >> (shift * is_some(level));

	return level + step * is_some(value);
}

/* 1 if a is above b, else 0. */
static __always_inline __u32 is_above(__u32 a, __u32 b)
{
	__s64 below = (__s64)b - (__s64)a;

	asm volatile("" : "+r"(below));
	return (__u64)below >> 63;
}

/* a if condition is 1, b if it is 0. */
static __always_inline __u32 choose(__u32 condition, __u32 a, __u32 b)
{
	__u32 mask = -condition;

	asm volatile("" : "+r"(mask));
	return b ^ ((a ^ b) & mask);
}

static __always_inline __u32 lesser(__u32 a, __u32 b)
{
	__s64 above = (__s64)a - (__s64)b, mask = above >> 63;

	asm volatile("" : "+r"(mask));
	return b + (above & mask);
}

/* Learns what a connection meets here: levels[k] is what it meets with k candidates left. */
static __always_inline void levels_meet(__u32 *levels, __u32 level)
{
	for (int i = 0; i < LEVELS_MAX; i++) {
		levels[i] = level_towards(levels[i], level, FORGET_SHIFT);
		level = lesser(level, levels[i]);
	}
}

/* What it meets elsewhere, if so many candidates are left. */
static __always_inline __u32 levels_limit(const __u32 *levels, __u32 left)
{
	__u32 limit = levels[0];

	for (int i = 1; i < LEVELS_MAX; i++)
		limit = choose(is_above(left, i), levels[i], limit);
	return limit;
}

/* A number as an exponent and so many bits of mantissa, rounded down. Not inlined, for the
 * verifier's sake. */
__noinline __u32 level_short(__u32 value, __u32 mantissa)
{
	__u32 exponent = 0;

	mantissa &= 15;
	if (value >> mantissa == 0)
		return value;
	for (__u32 i = 0; i < 32; i++) {
		if (value >> exponent < 2 << mantissa)
			break;
		exponent++;
	}
	return (exponent + 1) << mantissa | ((value >> exponent) - (1 << mantissa));
}

static __always_inline __u32 level_long(__u32 code, __u32 mantissa)
{
	__u32 value = code & ((1 << mantissa) - 1), exponent = code >> mantissa;

	return exponent ? (value + (1 << mantissa)) << (exponent - 1) : value;
}
