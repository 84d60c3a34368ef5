// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Elimination: the vector recovery of IEEE 802.1CB-2017 section 7.4.3, without a lock. The same in
 * Go: package replicate. Specification: docs/reference/dataplane.md, "Egress".
 *
 * The history is a ring of words. A word holds a block of 32 numbers: which of them were seen, and
 * a tag that says which block it is. A number is entered by compare-and-swap of its word, so of any
 * copies on any CPUs one comes first. A word with another tag is replaced: tags are compared for
 * equality only. That is safe between CPUs as each raises the highest number before it enters its
 * own, and looks at the state again before it replaces a word:
 *
 * - A word of a later generation, or of a later block, was entered after the state had got there,
 *   which shows in that second look. The packet is then judged anew.
 * - A word of an earlier one is outside the window of the state that the second look has shown.
 *
 * Words that are not replaced are swept before their tags can come again: one with each generation,
 * and one with each round of the ring, so that none is older than the ring has words. A tag has 16
 * bits of either, of a round at least 14, and a ring has 2^13 words at most.
 */
#pragma once

#include "redundancy.h"

#define BLOCK 32 /* numbers in a word of the history */
#define TRIES 64 /* each that fails means that another CPU got ahead at the same place */
#define AGAIN (-1) /* the state has changed: to be judged anew */

/* What is fixed of an instance. */
struct recovery_settings {
	__u64 reset_ns; /* without a packet accepted, any number is accepted */
	__u32 history; /* numbers up to so far from the highest are told apart */
	__u32 blocks; /* in the ring: a power of two, see replicate.Settings.Blocks */
	__u32 bits; /* of a sequence number */
	__u32 ordered; /* not 0: packets that pass are put in order */
	__u32 round_shift; /* of a number: which round of the ring it is of */
	__u32 round_mask;
};

/* What is known of it, shared by all CPUs. */
struct recovery {
	__u64 state; /* generation, the sender's epoch, and the highest number */
	__u64 accepted; /* generation, and when the latest packet of it was accepted */
	__u64 first; /* generation, and the least number of it that is expected */
};

#define STATE_VALID (1ULL << 63) /* else any number is accepted */
#define STATE_EPOCH_SHIFT 32
#define STATE_GENERATION_SHIFT 40
#define ACCEPTED_GENERATION_SHIFT 48
#define ACCEPTED_TICK_SHIFT 16 /* a tick is 2^16 ns: 48 bits of them are 584 years */
#define FIRST_GENERATION_SHIFT 32
#define FIRST_BEHIND (1u << 30) /* of the highest number, at most */

#define TAG_SHIFT 32
#define TAG_GENERATION_SHIFT 16

/* One per CPU; Go adds them up. */
struct recovery_counters {
	__u64 passed;
	__u64 duplicate;
	__u64 rogue;
	__u64 old_epoch;
	__u64 out_of_order; /* of the passed */
	__u64 expected; /* numbers that the sender has used: less passed, those that are lost */
	__u64 resets;
	__u64 contended; /* passed without a look, as other CPUs were always ahead */
};

static __always_inline __u64 load(const __u64 *word)
{
	return *(const volatile __u64 *)word;
}

static __always_inline __u8 state_epoch(__u64 state)
{
	return state >> STATE_EPOCH_SHIFT;
}

static __always_inline __u16 state_generation(__u64 state)
{
	return state >> STATE_GENERATION_SHIFT;
}

/* From one number to another, in the circle of numbers of so many bits. */
static __always_inline __s32 number_distance(__u32 from, __u32 to, __u32 bits)
{
	__u32 unused = 32 - bits;

	return (__s32)((to - from) << unused) >> unused;
}

static __always_inline __u32 number_round(const struct recovery_settings *s, __u32 number)
{
	return number >> s->round_shift & s->round_mask;
}

/*
 * Empties the word of a slot if it is of an earlier generation, or of a round before the last
 * one. No number is entered before the highest is raised: a word is not ahead of the state read
 * after it.
 */
static __always_inline void history_sweep(struct recovery *r, const struct recovery_settings *s,
					  void *history, __u32 slot)
{
	__u64 *word, old, state;
	__u32 tag;

	slot &= s->blocks - 1;
	word = bpf_map_lookup_elem(history, &slot);
	if (!word)
		return;
	old = load(word);
	state = __sync_fetch_and_add(&r->state, 0);
	tag = old >> TAG_SHIFT;
	if (tag >> TAG_GENERATION_SHIFT == state_generation(state) &&
	    ((number_round(s, state) - tag) & s->round_mask) <= 1)
		return;
	__sync_val_compare_and_swap(word, old, 0);
}

/* Is a number still told apart, by the state as it is after all that was read before? */
static __always_inline bool is_in_window(struct recovery *r, const struct recovery_settings *s,
					 __u64 judged)
{
	__u64 now = __sync_fetch_and_add(&r->state, 0); /* a full barrier, unlike a load */

	return state_generation(now) == state_generation(judged) &&
	       (__u32)now - (__u32)judged < s->history;
}

/*
 * Enters a number, which with its generation is written like a state, and not above the highest.
 * Returns 0: it is the first of its kind, REASON_DUPLICATE, or AGAIN.
 */
static __always_inline int history_enter(struct recovery *r, const struct recovery_settings *s,
					 void *history, __u64 judged)
{
	__u32 number = judged;
	__u32 slot = number / BLOCK & (s->blocks - 1), round = number_round(s, number);
	__u64 tag = (__u32)state_generation(judged) << TAG_GENERATION_SHIFT | round;
	__u64 bit = 1u << (number % BLOCK), old, fresh;
	__u64 *word = bpf_map_lookup_elem(history, &slot);

	if (!word)
		return REASON_NONE;
	old = load(word);
	if (likely(old >> TAG_SHIFT == tag)) {
		if (old & bit)
			return REASON_DUPLICATE;
		return __sync_val_compare_and_swap(word, old, old | bit) == old ? REASON_NONE :
										  AGAIN;
	}
	fresh = tag << TAG_SHIFT | bit;
	if (!is_in_window(r, s, judged) || __sync_val_compare_and_swap(word, old, fresh) != old)
		return AGAIN;
	history_sweep(r, s, history, round);
	return REASON_NONE;
}

static __always_inline __u64 accepted_at(__u16 generation, __u64 now)
{
	return (__u64)generation << ACCEPTED_GENERATION_SHIFT | now >> ACCEPTED_TICK_SHIFT;
}

/* Notes that a packet of the generation was accepted now, if no later one was. */
static __always_inline void accepted_note(struct recovery *r, __u16 generation, __u64 now)
{
	__u64 fresh = accepted_at(generation, now), old = load(&r->accepted);

	/* As a signed number: generation and time are in front of those before, whatever has
	 * wrapped. */
	if ((__s64)(fresh - old) > 0)
		__sync_val_compare_and_swap(&r->accepted, old, fresh);
}

/*
 * Has the sender begun anew, or has it paused and gone on elsewhere? A number that follows
 * within the history is the same sender's, however long it paused. AGAIN: another CPU has
 * replaced the state.
 */
static __always_inline int recovery_is_over(struct recovery *r, const struct recovery_settings *s,
					    __u64 state, const struct number *q, __u64 now)
{
	__u64 accepted = load(&r->accepted);
	__s64 silent = accepted_at(state_generation(state), now) -
		       accepted; /* ticks, if of this generation */
	__s16 newer = (accepted >> ACCEPTED_GENERATION_SHIFT) - state_generation(state);
	__s8 epochs = q->epoch - state_epoch(state);
	__s32 ahead;

	if (!(state & STATE_VALID))
		return true;
	if (newer > 0)
		return AGAIN;
	if (epochs > 0)
		return true;
	if (newer || silent <= (__s64)(s->reset_ns >> ACCEPTED_TICK_SHIFT))
		return false;
	ahead = number_distance(state, q->number, s->bits);
	return epochs || ahead <= 0 || ahead > (__s32)s->history;
}

/*
 * Begins a generation with the number. What the sender has used since the highest one, or since
 * it was restarted, is expected. Returns the new state; 0 if another CPU has changed it.
 */
static __always_inline __u64 recovery_reset(struct recovery *r, const struct recovery_settings *s,
					    void *history, __u64 old, const struct number *q,
					    __u64 now, struct recovery_counters *n)
{
	__s32 ahead = number_distance(old, q->number, s->bits);
	__s8 epochs = q->epoch - state_epoch(old);
	__u16 generation = state_generation(old) + 1;
	__u32 number = q->number, first = number, expected = 1;
	__u64 fresh;

	if (old & STATE_VALID && !epochs && ahead > 0) {
		expected = ahead;
		number = (__u32)old + ahead;
		first = number - s->history;
	} else if (old & STATE_VALID && epochs > 0 && number < s->history) {
		expected = number + 1; /* a sender begins an epoch with 0 */
		first = 0;
	}
	fresh = STATE_VALID | (__u64)generation << STATE_GENERATION_SHIFT |
		(__u64)q->epoch << STATE_EPOCH_SHIFT | number;
	if (__sync_val_compare_and_swap(&r->state, old, fresh) != old)
		return 0;
	*(volatile __u64 *)&r->first = (__u64)generation << FIRST_GENERATION_SHIFT | first;
	accepted_note(r, generation, now);
	n->resets++;
	n->expected += expected;
	history_sweep(r, s, history, generation);
	return fresh;
}

/* The least number expected follows the highest, so that their distance does not wrap. */
static __always_inline void first_follow(struct recovery *r, __u64 state)
{
	__u64 first = load(&r->first),
	      fresh = first - (__u32)first + (__u32)((__u32)state - FIRST_BEHIND / 2);

	if (unlikely((__u32)state - (__u32)first >= FIRST_BEHIND) &&
	    first >> FIRST_GENERATION_SHIFT == state_generation(state))
		__sync_val_compare_and_swap(&r->first, first, fresh);
}

/* A number that is less than the least expected so far has passed: those between were used, too. */
static __always_inline void first_lower(struct recovery *r, __u64 state, __u32 number,
					struct recovery_counters *n)
{
	__u64 fresh = (__u64)state_generation(state) << FIRST_GENERATION_SHIFT | number;

	for (int i = 0; i < TRIES; i++) {
		__u64 first = load(&r->first);
		__s32 earlier = (__u32)first - number;

		if (first >> FIRST_GENERATION_SHIFT != state_generation(state))
			continue; /* about to be written */
		if (earlier <= 0)
			return;
		if (__sync_val_compare_and_swap(&r->first, first, fresh) == first) {
			n->expected += earlier;
			return;
		}
	}
}

static __always_inline void recovery_drop(int reason, struct recovery_counters *n)
{
	if (reason == REASON_DUPLICATE)
		n->duplicate++;
	else if (reason == REASON_ROGUE)
		n->rogue++;
	else
		n->old_epoch++;
}

/*
 * Judges a packet by the state as it is, and enters its number. Returns 0: pass it on; the
 * reason to drop it; or AGAIN. Judged is the number with its generation, written like a state.
 */
static __always_inline int recovery_judge(struct recovery *r, const struct recovery_settings *s,
					  void *history, struct number *q, __u64 now,
					  struct recovery_counters *n, __u64 *judged)
{
	__u64 state = load(&r->state);
	int over = recovery_is_over(r, s, state, q, now);
	__s32 ahead;

	if (unlikely(over)) {
		state = over == AGAIN ? 0 : recovery_reset(r, s, history, state, q, now, n);
		if (!state)
			return AGAIN;
		q->began = true;
	}
	if (q->epoch != state_epoch(state))
		return REASON_OLD_EPOCH;
	ahead = number_distance(state, q->number, s->bits);
	if (ahead > (__s32)s->history || ahead <= -(__s32)s->history)
		return REASON_ROGUE;
	*judged = (state & ~0xffffffffULL) | (__u32)(state + ahead);
	if (ahead > 0) {
		if (__sync_val_compare_and_swap(&r->state, state, *judged) != state)
			return AGAIN;
		n->expected += ahead;
		q->raised = ahead;
		first_follow(r, *judged);
	}
	return history_enter(r, s, history, *judged);
}

/*
 * Decides about a numbered packet. Returns 0: pass it on; the reason to drop it; or AGAIN, unless
 * it was the last try. A number that has fewer than 32 bits is continued to 32 from the highest
 * one, and left so in q, with its generation.
 */
static __always_inline int recovery_decide(struct recovery *r, const struct recovery_settings *s,
					   void *history, struct number *q, __u64 now,
					   struct recovery_counters *n, bool last)
{
	__u64 judged = 0;
	int reason = recovery_judge(r, s, history, q, now, n, &judged);

	if (unlikely(reason == AGAIN && !last))
		return AGAIN;
	if (reason > 0) {
		recovery_drop(reason, n);
		return reason;
	}
	n->passed++;
	if (unlikely(reason == AGAIN)) {
		n->contended++;
		return REASON_NONE;
	}
	q->number = judged;
	q->generation = state_generation(judged);
	accepted_note(r, q->generation, now);
	if (q->raised != 1 && !q->began)
		n->out_of_order++;
	if (!q->raised && !q->began)
		first_lower(r, judged, q->number, n);
	return REASON_NONE;
}
