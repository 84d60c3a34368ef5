// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Controllable per-flow load balancing (Detal et al., Computer Networks 57, 2013): which of a
 * group's next hops a packet takes. Its source may have written that into ports or flow label; else
 * a hash decides. The same functions are cflb.Codec.NextHop in Go, package packet/cflb, whose
 * documentation says why they are as they are.
 */
#pragma once

#include "skip32.h"

#define CFLB_NEXT_HOPS 64
#define CFLB_FEISTEL_ROUNDS 6
#define CFLB_RC5_SUBKEYS 26
#define CFLB_POSITIONS 256 /* one for each hop limit */

#define CFLB_LABEL 20
#define CFLB_PORT 16

/* What sources can control, cflb.Fields. */
enum cflb_fields {
	CFLB_NO_FIELDS = 0,
	CFLB_SOURCE_PORT,
	CFLB_FLOW_LABEL,
	CFLB_BOTH_PORTS,
	CFLB_FLOW_LABEL_SOURCE_PORT,
	CFLB_FLOW_LABEL_BOTH_PORTS,
};

/* cflb.Cipher */
enum cflb_cipher {
	CFLB_FEISTEL = 0,
	CFLB_RC5,
	CFLB_SKIP32,
};

/* How a next hop was chosen, cflb.Choice. */
enum cflb_choice {
	CFLB_CONTROLLED = 0, /* the selector names it */
	CFLB_BEYOND, /* hashed: the selector's digit names no next hop, or one that is down */
	CFLB_OUT_OF_RANGE, /* hashed: the controllable fields hold no selector */
	CFLB_UNREADABLE, /* hashed: the packet lacks controllable fields */
	CFLB_CHOICES,
};

/* The parameters of an address family. */
struct cflb_network {
	__u64 seed;
	__u64 limit; /* the first number that is no selector; all ones: there is none */
	__u64 add[CFLB_FEISTEL_ROUNDS];
	__u64 multiply[CFLB_FEISTEL_ROUNDS];
	__u64 power[CFLB_POSITIONS]; /* radix^position, by hop limit */
	__u8 shift[CFLB_POSITIONS]; /* its logarithm, if the radix is a power of two */
	__u16 rc5[CFLB_RC5_SUBKEYS];
	__u8 skip32[SKIP32_KEY];
	__u16 radix;
	__u8 fields; /* enum cflb_fields */
	__u8 cipher; /* enum cflb_cipher */
	__u8 half; /* bits of half a number, for the Feistel network */
	__u8 shifts; /* the radix is a power of two */
	__u8 reserved[12];
};

/* What is read of a packet. */
struct cflb_packet {
	__u64 address[4]; /* of IPv4, the first holds both */
	__u32 label;
	__u16 source_port;
	__u16 destination_port;
	__u8 protocol;
	__u8 hop_limit; /* as received */
	bool ipv4;
	bool ports; /* are there */
};

struct cflb_next_hop {
	__u32 interface; /* 0: down */
	__u16 mtu;
	__u8 ready; /* its address is known */
	__u8 reserved;
	__u8 destination[6];
	__u8 source[6];
};

/* The equal-cost next hops of destinations. */
struct cflb_group {
	__u32 count;
	__u32 last; /* that is up */
	__u32 equal; /* all are up, with equal weights */
	__u32 plain[CFLB_NEXT_HOPS]; /* hash below which a packet without a selector takes a next
					hop */
	__u32 beyond[CFLB_NEXT_HOPS]; /* the same if its digit names none */
	__u32 kernel_hash[CFLB_NEXT_HOPS]; /* the packet hash with which the kernel takes it */
	struct cflb_next_hop hops[CFLB_NEXT_HOPS];
};

/* ===== Hash ===== */

#define CFLB_GOLDEN 0x9e3779b97f4a7c15ULL
#define CFLB_MIX_A 0xbf58476d1ce4e5b9ULL
#define CFLB_MIX_B 0x94d049bb133111ebULL

static __always_inline __u64 cflb_mix(__u64 x)
{
	x = (x ^ x >> 30) * CFLB_MIX_A;
	x = (x ^ x >> 27) * CFLB_MIX_B;
	return x ^ x >> 31;
}

static __always_inline __u64 cflb_absorb(__u64 h, __u64 word)
{
	h = (h ^ word) * CFLB_MIX_A;
	return h ^ h >> 32;
}

static __always_inline __u64 cflb_addresses(__u64 h, const struct cflb_packet *p)
{
	h = cflb_absorb(h, p->address[0]);
	if (p->ipv4)
		return h;
	h = cflb_absorb(h, p->address[1]);
	h = cflb_absorb(h, p->address[2]);
	return cflb_absorb(h, p->address[3]);
}

/* H(u_f || c_f || router), of which the upper half chooses. */
static __always_inline __u32 cflb_fallback(__u64 h, __u64 controllable, __u32 router)
{
	return cflb_mix((h ^ controllable) + router * CFLB_GOLDEN) >> 32;
}

/* ===== Cipher ===== */

static __always_inline __u64 cflb_feistel_decrypt(const volatile struct cflb_network *n, __u64 x)
{
	__u32 half = n->half;
	__u64 left = x >> half, right = x & ((1ULL << half) - 1), round;

#pragma unroll
	for (int i = CFLB_FEISTEL_ROUNDS - 1; i >= 0; i--) {
		round = (left + n->add[i]) * n->multiply[i] >> (64 - half);
		round ^= right;
		right = left;
		left = round;
	}
	return left << half | right;
}

static __always_inline __u16 rotate_right_16(__u16 x, __u16 by)
{
	__u32 twice = x | (__u32)x << 16;

	return twice >> (by & 15);
}

/* RC5-16/12/16: little-endian words of the number's octets in network order. It and Skip32 are
 * functions of their own, so that the compiler has registers left where the default cipher is. */
static __noinline __u64 cflb_rc5_decrypt(const volatile struct cflb_network *n, __u32 x)
{
	__u16 a = __builtin_bswap16(x >> 16), b = __builtin_bswap16(x);

#pragma unroll
	for (int i = CFLB_RC5_SUBKEYS - 2; i >= 2; i -= 2) {
		b = rotate_right_16(b - n->rc5[i + 1], a) ^ a;
		a = rotate_right_16(a - n->rc5[i], b) ^ b;
	}
	a -= n->rc5[0];
	b -= n->rc5[1];
	return (__u64)__builtin_bswap16(a) << 16 | __builtin_bswap16(b);
}

static __noinline __u64 cflb_skip32_decrypt(const volatile struct cflb_network *n, __u32 x)
{
	return skip32_decrypt(n->skip32, x);
}

static __always_inline __u64 cflb_decrypt(const volatile struct cflb_network *n, __u64 x)
{
	if (__builtin_expect(n->cipher == CFLB_FEISTEL, true))
		return cflb_feistel_decrypt(n, x);
	if (n->cipher == CFLB_RC5)
		return cflb_rc5_decrypt(n, x);
	return cflb_skip32_decrypt(n, x);
}

/* ===== Selector ===== */

static __always_inline bool cflb_has_label(__u8 fields)
{
	return fields == CFLB_FLOW_LABEL || fields == CFLB_FLOW_LABEL_SOURCE_PORT ||
	       fields == CFLB_FLOW_LABEL_BOTH_PORTS;
}

static __always_inline bool cflb_has_destination_port(__u8 fields)
{
	return fields == CFLB_BOTH_PORTS || fields == CFLB_FLOW_LABEL_BOTH_PORTS;
}

/* Reads the controllable fields. False if the packet lacks one: cflb.Fields.Get. */
static __always_inline bool cflb_read(__u8 fields, const struct cflb_packet *p, __u64 *value)
{
	*value = 0;
	if (fields == CFLB_NO_FIELDS)
		return false;
	if (cflb_has_label(fields)) {
		if (p->ipv4 || (fields == CFLB_FLOW_LABEL && !p->label))
			return false;
		*value = p->label;
	}
	if (fields == CFLB_FLOW_LABEL)
		return true;
	if (!p->ports)
		return false;
	*value = *value << CFLB_PORT | p->source_port;
	if (cflb_has_destination_port(fields))
		*value = *value << CFLB_PORT | p->destination_port;
	return true;
}

/* H(u_f), of a packet that has the controllable fields, and the hash of its addresses. */
static __always_inline __u64 cflb_uncontrolled(const volatile struct cflb_network *n,
					       const struct cflb_packet *p, __u64 addresses)
{
	__u64 rest = p->protocol;

	if (n->fields == CFLB_FLOW_LABEL)
		rest = 0;
	else if (!cflb_has_destination_port(n->fields))
		rest |= (__u64)p->destination_port << 8;
	return cflb_mix(addresses ^ rest);
}

/* The digit at the packet's position, less H(u_f): equations 2 and 5. */
static __always_inline __u32 cflb_digit(const volatile struct cflb_network *n, __u64 selector,
					__u8 hop_limit, __u64 h)
{
	__u32 radix = n->radix, spread = h >> 32;

	if (n->shifts)
		return ((__u32)(selector >> n->shift[hop_limit]) - spread) & (radix - 1);
	return (__u32)(selector / n->power[hop_limit] % radix + radix - spread % radix) % radix;
}

/* Steps through the bounds of the next hops. Those that are down have the bound of what is before
 * them. */
static __always_inline __u32 cflb_search(const struct cflb_group *g, const __u32 *bounds,
					 __u32 hash)
{
	if (g->equal)
		return (__u64)hash * g->count >> 32;
	for (__u32 i = 0; i < CFLB_NEXT_HOPS; i++) {
		if (i >= g->count)
			break;
		if (hash < bounds[i])
			return i;
	}
	return g->last;
}

/* The next hop that a digit names, or that of the hash, of a group whose next hops are all up. No
 * branch depends on the digit: of packets whose sources control nothing, no processor foresees it.
 */
static __always_inline __u32 cflb_named_or_hashed(const struct cflb_group *g, __u32 digit,
						  __u32 hash, enum cflb_choice *choice)
{
	__u64 named = (__u64)digit - g->count; /* all its upper bits are 1 if the digit is less */
	__u32 index = (__u64)hash * g->count >> 32;

	barrier_var(named); /* or else the compiler makes a branch of it */
	named >>= 32;
	*choice = CFLB_BEYOND + (__u32)named; /* less 1: CFLB_CONTROLLED */
	return index ^ ((index ^ digit) & (__u32)named);
}

/* Algorithm 1: the index of the next hop in a group that has one which is up. */
static __always_inline __u32 cflb_next_hop_of(const volatile struct cflb_network *n, __u32 router,
					      const struct cflb_packet *p,
					      const struct cflb_group *g, enum cflb_choice *choice)
{
	__u64 h = cflb_addresses(n->seed, p), value, selector, rest = p->protocol;
	__u32 digit, hash;

	*choice = CFLB_UNREADABLE;
	if (!cflb_read(n->fields, p, &value)) {
		if (p->ports)
			rest |= (__u64)p->destination_port << 8 | (__u64)p->source_port << 24;
		return cflb_search(g, g->plain, cflb_fallback(cflb_mix(h ^ rest), 0, router));
	}
	h = cflb_uncontrolled(n, p, h);
	selector = cflb_decrypt(n, value);
	*choice = CFLB_OUT_OF_RANGE;
	if (selector >= n->limit)
		return cflb_search(g, g->plain, cflb_fallback(h, value, router));
	digit = cflb_digit(n, selector, p->hop_limit, h);
	*choice = CFLB_CONTROLLED;
	if (g->equal && g->count == n->radix) /* each digit names one */
		return digit;
	hash = cflb_fallback(h, value, router);
	if (g->equal)
		return cflb_named_or_hashed(g, digit, hash, choice);
	if (digit < g->count) {
		barrier_var(digit); /* what follows is for the verifier: a group has no more */
		digit &= CFLB_NEXT_HOPS - 1;
		if (g->hops[digit].interface)
			return digit;
	}
	*choice = CFLB_BEYOND;
	return cflb_search(g, g->beyond, hash);
}
