// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Elimination: the vector recovery of IEEE 802.1CB-2017 section 7.4.3, without a lock. The same in Go: package replicate.
 *
 * The history is a ring of words, each a block of 32 numbers: which of them were seen, and a tag that says which
 * block it is. A number is entered by compare-and-swap of its word, so of any copies on any CPUs one comes first, and a
 * word of an older block needs no clearing: it is replaced. The highest number is a word of its own, moved
 * forward by compare-and-swap. Both loops repeat only if another CPU got ahead.
 */
#pragma once

#include "redundancy.h"

#define BLOCK 32 /* numbers in a word of the history */
#define RETRIES 16 /* more CPUs than that would have to be at the same word at once */

/* What is fixed of an instance. */
struct recovery_settings {
	__u64 reset_ns; /* without a packet accepted, all is forgotten */
	__u32 history; /* numbers up to so far from the highest are told apart */
	__u32 blocks; /* in the ring: a power of two, see replicate.Settings.Blocks */
	__u32 bits; /* of a sequence number */
	__u32 ordered; /* not 0: packets that pass are put in order */
};

/* What is known of it, shared by all CPUs. */
struct recovery {
	__u64 state; /* see below */
	__u64 accepted_ns; /* when the latest packet was accepted */
	__u32 first; /* number accepted after the latest reset */
	__u32 reserved;
};

/* The state in one word: the highest number, the sender's epoch, and which generation of blocks is valid. */
#define STATE_VALID (1ULL << 63) /* else any number is accepted */
#define STATE_EPOCH_SHIFT 32
#define STATE_GENERATION_SHIFT 40

/* The tag of a word: the generation, and 24 bits of the block's number. */
#define TAG_SHIFT 32
#define TAG_BLOCK 0xffffff
#define TAG_GENERATION_SHIFT 24

/* One per CPU; Go adds them up. */
struct recovery_counters {
	__u64 passed;
	__u64 duplicate;
	__u64 rogue;
	__u64 old_epoch;
	__u64 out_of_order; /* of the passed */
	__u64 expected; /* numbers that the sender has used, as far as one can know: less passed, those that are missing */
	__u64 resets;
	__u64 contended; /* passed without a look, as other CPUs were at the same word all the time */
};

static __always_inline __u8 state_epoch(__u64 state)
{
	return state >> STATE_EPOCH_SHIFT;
}

static __always_inline __u8 state_generation(__u64 state)
{
	return state >> STATE_GENERATION_SHIFT;
}

/* From one number to another, in the circle of numbers of so many bits. */
static __always_inline __s32 number_distance(__u32 from, __u32 to, __u32 bits)
{
	__u32 unused = 32 - bits;

	return (__s32)((to - from) << unused) >> unused;
}

/* Is the word's block later than the tag's? */
static __always_inline bool tag_is_later(__u32 word, __u32 tag)
{
	__s8 generations = (word >> TAG_GENERATION_SHIFT) - (tag >> TAG_GENERATION_SHIFT);

	if (generations)
		return generations > 0;
	return (__s32)((word - tag) << 8) > 0;
}

/* Enters a number into the history. Returns 0: first, REASON_DUPLICATE, or REASON_ROGUE: its block has been replaced. */
static __always_inline int history_enter(void *history, __u32 blocks, __u8 generation, __u32 number,
					 struct recovery_counters *n)
{
	__u32 block = number / BLOCK, slot = block & (blocks - 1);
	__u32 tag = (__u32)generation << TAG_GENERATION_SHIFT | (block & TAG_BLOCK);
	__u32 bit = 1u << (number % BLOCK);
	__u64 *word = bpf_map_lookup_elem(history, &slot);

	if (!word)
		return REASON_NONE;
	for (int i = 0; i < RETRIES; i++) {
		__u64 old = *(volatile __u64 *)word, fresh = (__u64)tag << TAG_SHIFT | bit;

		if (old && old >> TAG_SHIFT == tag) {
			if (old & bit)
				return REASON_DUPLICATE;
			fresh = old | bit;
		} else if (old && tag_is_later(old >> TAG_SHIFT, tag)) {
			return REASON_ROGUE;
		}
		if (__sync_val_compare_and_swap(word, old, fresh) == old)
			return REASON_NONE;
	}
	n->contended++;
	return REASON_NONE;
}

/* Begins a generation with the number, if nobody else has meanwhile. */
static __always_inline bool recovery_reset(struct recovery *r, __u64 old, const struct number *q, __u64 now)
{
	__u64 generation = (__u8)(state_generation(old) + 1);
	__u64 fresh = STATE_VALID | generation << STATE_GENERATION_SHIFT | (__u64)q->epoch << STATE_EPOCH_SHIFT |
		      q->number;

	if (__sync_val_compare_and_swap(&r->state, old, fresh) != old)
		return false;
	r->accepted_ns = now;
	r->first = q->number;
	return true;
}

/* Must all be forgotten before this packet is looked at? */
static __always_inline bool recovery_is_over(const struct recovery *r, const struct recovery_settings *s, __u64 state,
					     const struct number *q, __u64 now)
{
	__u64 accepted = *(volatile __u64 *)&r->accepted_ns;

	return !(state & STATE_VALID) || (__s8)(q->epoch - state_epoch(state)) > 0 ||
	       (__s64)(now - accepted) > (__s64)s->reset_ns;
}

/* The state under which to look at a packet: the present one, or one that begins with it. */
static __always_inline __u64 recovery_state(struct recovery *r, const struct recovery_settings *s,
					    const struct number *q, __u64 now, struct recovery_counters *n)
{
	__u64 state = *(volatile __u64 *)&r->state;

	if (likely(!recovery_is_over(r, s, state, q, now)))
		return state;
	if (recovery_reset(r, state, q, now)) {
		n->resets++;
		n->expected++;
	}
	return *(volatile __u64 *)&r->state; /* if another CPU was first, it has just begun anew */
}

/* Moves the highest number forward to number, unless others have moved it farther. */
static __always_inline void highest_raise(struct recovery *r, __u64 state, __u32 number, struct recovery_counters *n)
{
	for (int i = 0; i < RETRIES; i++) {
		__s32 ahead = number - (__u32)state;
		__u64 seen;

		if (ahead <= 0)
			return;
		seen = __sync_val_compare_and_swap(&r->state, state, (state & ~0xffffffffULL) | number);
		if (seen == state) {
			n->expected += ahead;
			return;
		}
		if (state_generation(seen) != state_generation(state))
			return;
		state = seen;
	}
}

/*
 * Decides about a numbered packet. Returns 0: pass it on, or the reason to drop it. A number that has fewer than 32 bits is
 * continued to 32 from the highest one, and left so in q.
 */
static __always_inline int recovery_decide(struct recovery *r, const struct recovery_settings *s, void *history,
					   struct number *q, __u64 now, struct recovery_counters *n)
{
	__u64 state = recovery_state(r, s, q, now, n);
	__s32 ahead = number_distance((__u32)state, q->number, s->bits);
	__u32 number = (__u32)state + ahead;
	int reason;

	if ((__s8)(q->epoch - state_epoch(state)) < 0) {
		n->old_epoch++;
		return REASON_OLD_EPOCH;
	}
	if (ahead > (__s32)s->history || ahead <= -(__s32)s->history) {
		n->rogue++;
		return REASON_ROGUE;
	}
	reason = history_enter(history, s->blocks, state_generation(state), number, n);
	if (reason) {
		if (reason == REASON_DUPLICATE)
			n->duplicate++;
		else
			n->rogue++;
		return reason;
	}
	n->passed++;
	q->number = number;
	r->accepted_ns = now;
	if (ahead > 0) {
		if (ahead != 1)
			n->out_of_order++;
		highest_raise(r, state, number, n);
	} else if (number != r->first) {
		n->out_of_order++;
		if ((__s32)(number - r->first) < 0)
			n->expected++;
	}
	return REASON_NONE;
}
