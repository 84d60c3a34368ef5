// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* SHA-256 of one block (FIPS 180-4): programs cannot call the kernel's hashes on Linux 6.1. */
#pragma once

#include "compat.h"

#define SHA256_BLOCK 64

struct sha256 {
	__u32 state[8];
	__u32 schedule[16]; /* the words of the last 16 rounds; the stack has no room for them */
};

static const __u32 sha256_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

/*
 * The word twice, side by side: shifted right, its lower half is the word rotated. BPF has no
 * rotation; three of a word are cheaper so.
 */
static __always_inline __u64 sha256_twice(__u32 word)
{
	__u64 twice = (__u64)word << 32 | word;

	barrier_var(twice); /* or else the compiler sees the rotation, and spells it out */
	return twice;
}

static __always_inline __u32 sha256_sum(__u32 word, int a, int b, int c)
{
	__u64 twice = sha256_twice(word);

	return twice >> a ^ twice >> b ^ twice >> c;
}

static __always_inline __u32 sha256_mix(__u32 word, int a, int b, int c)
{
	__u64 twice = sha256_twice(word);

	return (__u32)(twice >> a ^ twice >> b) ^ word >> c;
}

struct sha256_block {
	__u32 words[SHA256_BLOCK / 4]; /* in network order */
};

/* Hashes one block into the state. Not static, so that the verifier looks at it once. Unrolled:
 * Linux 6.1 refuses some loops. */
__noinline int sha256_run(struct sha256 *s, const struct sha256_block *block)
{
	__u32 a, b, c, d, e, f, g, h;

	if (!s || !block)
		return 0;
	a = s->state[0], b = s->state[1], c = s->state[2], d = s->state[3];
	e = s->state[4], f = s->state[5], g = s->state[6], h = s->state[7];
#pragma clang loop unroll(full)
	for (int i = 0; i < 64; i++) {
		__u32 word, first, second;

		if (i < 16)
			word = bpf_ntohl(block->words[i]);
		else
			word = s->schedule[i & 15] +
			       sha256_mix(s->schedule[(i + 1) & 15], 7, 18, 3) +
			       s->schedule[(i + 9) & 15] +
			       sha256_mix(s->schedule[(i + 14) & 15], 17, 19, 10);
		s->schedule[i & 15] = word;
		first = h + sha256_sum(e, 6, 11, 25) + (g ^ (e & (f ^ g))) + sha256_constants[i] +
			word;
		second = sha256_sum(a, 2, 13, 22) + ((a & b) | (c & (a | b)));
		h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
	}
	s->state[0] += a, s->state[1] += b, s->state[2] += c, s->state[3] += d;
	s->state[4] += e, s->state[5] += f, s->state[6] += g, s->state[7] += h;
	return 0;
}
