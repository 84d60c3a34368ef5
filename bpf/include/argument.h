// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A host's SIDs in destinations, and their arguments: the candidates after this one (RFC 9800), and
 * the mark of a copy. */
#pragma once

#include "accept.h" /* is_some */
#include "copy_mark.h"
#include "host.h"

/* The number of the SID that the destination is, or SIDS_MAX: none. */
static __always_inline __u32 sid_find(const struct address *destination)
{
	for (__u32 i = 0; i < SIDS_MAX && settings.sids[i].behavior; i++)
		if (prefix_contains(&settings.sids[i].prefix, destination))
			return i;
	return SIDS_MAX;
}

static __always_inline bool has_argument(const volatile struct local_sid *sid,
					 const struct address *destination)
{
	return (destination->word[0] & ~sid->prefix.mask.word[0]) ||
	       (destination->word[1] & ~sid->prefix.mask.word[1]);
}

/* What is in the argument of the SID that a packet came to. */
struct argument {
	__u32 ids; /* how many */
	__u16 last;
};

static __always_inline struct argument argument_read(const volatile struct local_sid *sid,
						     const struct address *destination)
{
	struct argument argument = {};

	for (int word = 0; word < 2; word++)
		for (int shift = 0; shift < 64; shift += 16) {
			__u16 id = (destination->word[word] & ~sid->prefix.mask.word[word]) >>
				   shift;

			/* Without a branch: the verifier would follow each id both ways. */
			argument.ids += is_some(id);
			argument.last ^= (bpf_ntohs(id) ^ argument.last) & -is_some(id);
		}
	return argument;
}

/* How many of a word's four ids are not 0: each leaves its uppermost bit, and these are added up.
 */
static __always_inline __u32 ids_count(__u64 word)
{
	__u64 upper = 0x8000800080008000ULL, some = ((word & ~upper) + ~upper) | word;

	return ((some & upper) >> 15) * 0x0001000100010001ULL >> 48;
}

/* How many candidates a carrier names after this host. */
static __always_inline __u32 argument_ids(const struct outer *outer, const struct ipv6hdr *ip)
{
	const volatile struct address *mask = &settings.sids[outer->sid % SIDS_MAX].prefix.mask;
	struct address destination = address_load(&ip->daddr);

	return ids_count(destination.word[0] & ~mask->word[0]) +
	       ids_count(destination.word[1] & ~mask->word[1]) - !!outer->copy;
}

/* Whether one of a word's four ids may be the mark of a copy: all ones, but for the last bit. */
static __always_inline bool may_have_mark(__u64 word)
{
	__u64 ones = 0xfefffefffefffeffULL, zero = ~word & ones; /* in memory order */

	return (zero - 0x0001000100010001ULL) & ~zero & 0x8000800080008000ULL;
}

/* Takes the mark of a copy for what it is: no candidate. Not inlined, for it is rare. */
static __noinline void copy_mark_read(struct outer *outer, const struct address *destination)
{
	struct argument argument =
		argument_read(&settings.sids[outer->sid % SIDS_MAX], destination);

	if (argument.last < COPY_MARK)
		return;
	outer->copy = argument.last - COPY_MARK + 1;
	outer->argument = argument.ids > 1;
}
