// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The flow hash: SipHash-1-3 with the cluster's secret over source, destination,
 * source port, destination port and protocol in network order, so that nobody
 * without the secret can choose flows that meet in one bucket. The same function
 * is flow.Secret.Hash in Go.
 */
#pragma once

#include "address.h"

struct secret {
	__u64 k0;
	__u64 k1;
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

static __always_inline __u64 flow_hash(const volatile struct secret *secret, const struct flow *f)
{
	__u64 k0 = secret->k0, k1 = secret->k1;
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
