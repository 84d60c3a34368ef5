// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies of a packet that an edge has sent over disjoint paths: the first that comes to a host is
 * offered to it, and the other one does not count again. A copy has no number: its edge keeps no
 * state, and there may be several edges. What tells packets apart is what is in them, and of equal
 * packets the one path has brought as many as the other, but for those that were lost. So a host
 * judges as many as the path that brought most of them. Specification: docs/reference/dataplane.md,
 * "End.OFFER".
 */
#pragma once

#include "copy_mark.h"
#include "flow.h"
#include "ip.h"

#define COPIES_SEEN 65536
#define COPY_PLACES 8 /* of a set: the oldest makes room */
#define COPY_SETS (COPIES_SEEN / COPY_PLACES)
#define COPY_TRIES 8 /* each that fails means that another CPU got ahead at the same place */

/*
 * A place is one word, replaced by compare-and-swap: which packet, 35 bits of its identity; when it
 * was judged last, 16 bits of jiffies; whether it was passed on then; and how many each path has
 * brought, and how many were judged, 4 bits each.
 */
#define COPY_IDENTITY_SHIFT 29
#define COPY_TIME_SHIFT 13
#define COPY_PASSED_ON (1 << 12)
#define COPY_JUDGED_SHIFT 8
#define COPY_COUNT_BITS 4
#define COPY_COUNT_MAX ((1 << COPY_COUNT_BITS) - 1)
#define COPY_COUNTS ((1 << COPIES_MAX * COPY_COUNT_BITS) - 1)

/* How long packets that are alike are told apart by their paths, in jiffies, from the loader:
 * longer than the paths' delays differ, and shorter than retransmissions wait. */
const volatile __u32 copy_jiffies = 25;

struct copy_set {
	__u64 places[COPY_PLACES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COPY_SETS);
	__type(key, __u32);
	__type(value, struct copy_set);
} copies_seen SEC(".maps");

enum copy_seen {
	COPY_FIRST = 0, /* to be judged */
	COPY_TAKEN, /* the other one was taken */
	COPY_PASSED, /* the other one was passed on */
};

static __always_inline __u32 copy_count(__u64 word, __u32 shift)
{
	return word >> shift & COPY_COUNT_MAX;
}

/* Whether a word is of the packet, and not older than a window of jiffies. */
static __always_inline bool copy_is(__u64 word, __u64 identity, __u32 now, __u32 window)
{
	return word && word >> COPY_IDENTITY_SHIFT == identity >> COPY_IDENTITY_SHIFT &&
	       (__u16)(now - (word >> COPY_TIME_SHIFT)) < window;
}

/*
 * The place of a packet in its set, or the oldest one. Not static, so that the verifier looks at
 * it once, and not for each try.
 */
__noinline __u32 copy_place(const struct copy_set *set, __u64 identity, __u32 now, __u32 window)
{
	__u32 oldest = 0, most = 0;

	if (!set)
		return 0;
	for (__u32 i = 0; i < COPY_PLACES; i++) {
		__u64 word = *(const volatile __u64 *)&set->places[i];
		__u32 age = word ? (__u16)(now - (word >> COPY_TIME_SHIFT)) : 0x10000;

		if (copy_is(word, identity, now, window))
			return i;
		if (age >= most) {
			most = age;
			oldest = i;
		}
	}
	return oldest;
}

static __always_inline __u64 copy_word(__u64 identity, __u32 now, __u32 judged, __u32 counts)
{
	return identity >> COPY_IDENTITY_SHIFT << COPY_IDENTITY_SHIFT |
	       (__u64)(__u16)now << COPY_TIME_SHIFT | judged << COPY_JUDGED_SHIFT | counts;
}

/*
 * Counts a copy, and says what became of the other one. Where other CPUs are always ahead, it
 * counts as the second: that loses a packet rather than offer one twice. Not static, for the
 * verifier's sake.
 */
__noinline int copy_judge(__u64 identity, __u32 copy, __u32 window)
{
	__u32 index = identity % COPY_SETS, now = bpf_jiffies64();
	struct copy_set *set = bpf_map_lookup_elem(&copies_seen, &index);
	__u32 shift = copy % COPIES_MAX * COPY_COUNT_BITS;

	for (int try = 0; set && try < COPY_TRIES; try++) {
		__u64 *place = &set->places[copy_place(set, identity, now, window) % COPY_PLACES];
		__u64 old = *(volatile __u64 *)place,
		      fresh = copy_word(identity, now, 1, 1 << shift);
		__u32 brought = copy_count(old, shift) + 1;
		int seen = COPY_FIRST;

		if (!copy_is(old, identity, now, window) || brought > COPY_COUNT_MAX) {
			/* the first, or more of its kind than can be counted: all starts again */
		} else if (brought > copy_count(old, COPY_JUDGED_SHIFT)) {
			fresh = copy_word(identity, now, brought,
					  (old & COPY_COUNTS) + (1 << shift));
		} else {
			fresh = old + (1 << shift);
			seen = old & COPY_PASSED_ON ? COPY_PASSED : COPY_TAKEN;
		}
		if (__sync_val_compare_and_swap(place, old, fresh) == old)
			return seen;
	}
	return COPY_TAKEN;
}

/* Notes that the host has passed the packet on. */
__noinline int copy_passed_on(__u64 identity, __u32 window)
{
	__u32 index = identity % COPY_SETS, now = bpf_jiffies64();
	struct copy_set *set = bpf_map_lookup_elem(&copies_seen, &index);

	for (int try = 0; set && try < COPY_TRIES; try++) {
		__u64 *place = &set->places[copy_place(set, identity, now, window) % COPY_PLACES];
		__u64 old = *(volatile __u64 *)place;

		if (!copy_is(old, identity, now, window) ||
		    __sync_val_compare_and_swap(place, old, old | COPY_PASSED_ON) == old)
			break;
	}
	return 0;
}

#define COPY_WORDS 5 /* of the transport header: all of TCP's without options */

/*
 * What tells a packet apart: its flow, length and transport header, whose checksum covers the rest,
 * and the identification of IPv4. 0: not to be told apart, as a fragment, another protocol, or a
 * header that is not in the first piece of the frame. The flow's hash is keyed, so nobody finds
 * equal ones. Not static, so that the verifier looks at it once.
 */
__noinline __u64 copy_identity(struct xdp_md *ctx, const struct packet *p, __u64 flow_hash)
{
	void *end = (void *)(long)ctx->data_end, *data = (void *)(long)ctx->data;
	__u32 words, *word;
	__u64 h;

	if (!p || p->fragment || !p->transport)
		return 0;
	h = flow_hash ^ p->length;
	words = p->flow.protocol == IPPROTO_TCP && !p->icmp ? COPY_WORDS : 2;
	word = data + (p->ip & OFFSET_MAX);
	if (p->flow.ipv4) {
		if ((void *)(word + 2) > end)
			return 0;
		h ^= (__u64)word[1] << 32;
	}
	word = data + (p->transport & OFFSET_MAX);
	for (__u32 i = 0; i < COPY_WORDS; i++) {
		if (i >= words)
			break;
		if ((void *)(word + i + 1) > end)
			return 0;
		h = (h ^ word[i]) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	return h | !h;
}
