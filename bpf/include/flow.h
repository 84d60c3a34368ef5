// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The flow hash with the cluster's secret, so that nobody without it can choose flows that meet in
 * one bucket. Two functions: SipHash-1-3 over source, destination, source port, destination port
 * and protocol in network order; or NH, universal hashing, of the same to 128 bits, and then
 * SipHash's finalization: docs/explanation/hash.md. The same is flow.Function.Hash in Go.
 */
#pragma once

#include "address.h"

enum flow_hash_function {
	FLOW_HASH_SIPHASH = 0, /* SipHash-1-3 */
	FLOW_HASH_NH, /* NH, then SipHash's finalization */
} __attribute__((packed)); /* one byte */

#define NH_SUMS 2 /* of NH, each with keys of its own: 64 bits of the state each */
#define NH_KEYS 10 /* one for each 32-bit word: destination, source, ports, protocol */

/* What NH needs of a secret: flow.NHKey. */
struct nh_key {
	__u32 words[NH_SUMS][NH_KEYS];
	__u64 state[4]; /* to which the sums are added */
};

struct secret {
	__u64 k0;
	__u64 k1;
};

/* The cluster's secret with the function, and what the loader has derived from it. */
struct flow_secret {
	struct secret key;
	enum flow_hash_function function;
	__u8 reserved[7];
	struct nh_key nh;
};

/* The part of NH's sums that a flow's destination address makes. */
struct nh {
	__u64 sum[NH_SUMS];
};

/* 5-tuple. Ports as they lie in the packet: source in the low 16 bits. */
struct flow {
	struct address source;
	struct address destination;
	__u32 ports;
	__u8 protocol;
	bool ipv4;
};

struct sip {
	__u64 v0, v1, v2, v3;
};

static __always_inline __u64 rotate_left(__u64 x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static __always_inline void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = rotate_left(s->v1, 13) ^ s->v0;
	s->v0 = rotate_left(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotate_left(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotate_left(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotate_left(s->v1, 17) ^ s->v2;
	s->v2 = rotate_left(s->v2, 32);
}

static __always_inline void sip_block(struct sip *s, __u64 block)
{
	s->v3 ^= block;
	sip_round(s);
	s->v0 ^= block;
}

static __always_inline __u64 flow_siphash(const volatile struct flow_secret *secret,
					  const struct flow *f)
{
	__u64 k0 = secret->key.k0, k1 = secret->key.k1;
	struct sip s = {
		.v0 = k0 ^ 0x736f6d6570736575ULL,
		.v1 = k1 ^ 0x646f72616e646f6dULL,
		.v2 = k0 ^ 0x6c7967656e657261ULL,
		.v3 = k1 ^ 0x7465646279746573ULL,
	};
	__u64 last = (__u64)f->ports | (__u64)f->protocol << 32;

	if (f->ipv4) {
		sip_block(&s, f->source.word[1] >> 32 | (f->destination.word[1] >> 32) << 32);
		sip_block(&s, last | 13ULL << 56);
	} else {
		sip_block(&s, f->source.word[0]);
		sip_block(&s, f->source.word[1]);
		sip_block(&s, f->destination.word[0]);
		sip_block(&s, f->destination.word[1]);
		sip_block(&s, last | 37ULL << 56);
	}
	s.v2 ^= 0xff;
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* NH (Black et al., "UMAC", 1999) of two words. */
static __always_inline __u64 nh_pair(const volatile __u32 *keys, __u32 first, __u32 second)
{
	return (__u64)(__u32)(first + keys[0]) * (__u32)(second + keys[1]);
}

static __always_inline __u64 nh_word(const volatile __u32 *keys, __u64 word)
{
	return nh_pair(keys, word, word >> 32);
}

static __always_inline struct nh nh_destination(const volatile struct flow_secret *secret,
						const struct address *destination)
{
	struct nh part;

#pragma unroll
	for (int i = 0; i < NH_SUMS; i++)
		part.sum[i] = nh_word(secret->nh.words[i], destination->word[0]) +
			      nh_word(secret->nh.words[i] + 2, destination->word[1]);
	return part;
}

/* The hash of a flow, whose destination has that part in it. */
static __always_inline __u64 flow_nh(const volatile struct flow_secret *secret,
				     const struct flow *f, const struct nh *destination)
{
	__u64 sum[NH_SUMS];
	struct sip s;

#pragma unroll
	for (int i = 0; i < NH_SUMS; i++) {
		sum[i] = destination->sum[i] + nh_word(secret->nh.words[i] + 6, f->source.word[1]) +
			 nh_pair(secret->nh.words[i] + 8, f->ports, f->protocol | f->ipv4 << 8);
		if (!f->ipv4)
			sum[i] += nh_word(secret->nh.words[i] + 4, f->source.word[0]);
	}
	s = (struct sip){
		.v0 = secret->nh.state[0] ^ sum[0],
		.v1 = secret->nh.state[1],
		.v2 = secret->nh.state[2] ^ sum[1],
		.v3 = secret->nh.state[3],
	};
	sip_round(&s);
	sip_round(&s);
	sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static __always_inline __u64 flow_hash(const volatile struct flow_secret *secret,
				       const struct flow *f)
{
	struct nh destination;

	if (secret->function == FLOW_HASH_SIPHASH)
		return flow_siphash(secret, f);
	destination = nh_destination(secret, &f->destination);
	return flow_nh(secret, f, &destination);
}

static __always_inline __u32 flow_bucket(__u64 hash, __u32 buckets)
{
	return (hash >> 32) * buckets >> 32;
}

/* 20 bits, never 0: RFC 6437 section 3. */
static __always_inline __u32 flow_label(__u64 hash)
{
	__u32 label = hash & 0xfffff;

	return label ? label : 1;
}

/* Turns the flow of a server's packet into its client's. */
static __always_inline void flow_turn(struct flow *f)
{
	struct address server = f->source;

	f->source = f->destination;
	f->destination = server;
	f->ports = f->ports >> 16 | f->ports << 16;
}
