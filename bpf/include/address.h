// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * IPv6 addresses as two 64-bit words in memory order, and prefixes over them.
 * IPv4 addresses are kept IPv4-mapped (::ffff:a.b.c.d).
 */
#pragma once

#include "compat.h"

struct address {
	__u64 word[2];
};

static __always_inline bool is_ipv4_mapped(const struct address *a)
{
	return a->word[0] == 0 && (__u32)a->word[1] == bpf_htonl(0xffff);
}

/* A prefix is its address and its mask; mask.word[0] == 0 means "no prefix". */
struct prefix {
	struct address address;
	struct address mask;
};

/*
 * An address on the wire is read and written in two words, wherever it lies: memcpy would go byte
 * by byte, for it knows no alignment. The verifier allows it on machines on which it is fast.
 */
static __always_inline struct address address_load(const void *wire)
{
	return *(const struct address *)wire;
}

/*
 * Copies an address from read-only configuration word by word: clang takes the copy of a
 * whole volatile structure for a copy of its initial value.
 */
static __always_inline struct address address_read(const volatile struct address *a)
{
	struct address copy = { { a->word[0], a->word[1] } };

	return copy;
}

static __always_inline void address_store(void *wire, const struct address *a)
{
	*(struct address *)wire = *a;
}

static __always_inline struct address address_from_ipv4(__be32 ipv4)
{
	struct address a = {};

	a.word[1] = (__u64)ipv4 << 32 | (__u64)bpf_htonl(0xffff);
	return a;
}

static __always_inline bool prefix_contains(const volatile struct prefix *p,
					    const struct address *a)
{
	__u64 mask = p->mask.word[0];

	return mask && (a->word[0] & mask) == p->address.word[0] &&
	       (a->word[1] & p->mask.word[1]) == p->address.word[1];
}

/* Sources from which the SR domain accepts SRv6 (RFC 8754 section 5.1, "A"). */
#define INFRASTRUCTURE_PREFIXES 4

struct infrastructure {
	struct prefix prefixes[INFRASTRUCTURE_PREFIXES];
};

static __always_inline bool
infrastructure_contains(const volatile struct infrastructure *infrastructure,
			const struct address *a)
{
#pragma unroll
	for (int i = 0; i < INFRASTRUCTURE_PREFIXES; i++)
		if (prefix_contains(&infrastructure->prefixes[i], a))
			return true;
	return false;
}
