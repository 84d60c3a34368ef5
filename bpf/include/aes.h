// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * AES-128 of one block (FIPS 197), by tables: programs cannot call the kernel's ciphers on
 * Linux 6.1. Both directions are the same steps on other tables, if the columns 1 and 3 change
 * places for decryption, in block and round keys. Tables and round keys come from the loader.
 */
#pragma once

#include "compat.h"

#define AES_ROUNDS 10

struct aes_tables {
	__u32 mixed[256]; /* a byte after SubBytes as a column after MixColumns: that of row 0;
			     others are rotated */
	__u8 last[256]; /* SubBytes alone */
};

enum aes_direction {
	AES_ENCRYPT = 0,
	AES_DECRYPT = 1, /* the equivalent inverse cipher, FIPS 197 section 5.3.5 */
};

const volatile struct aes_tables aes_tables[2] = {};

/* Columns as they lie in memory, row 0 first. */
struct aes_block {
	__u32 columns[4];
};

struct aes_key {
	struct aes_block rounds[AES_ROUNDS + 1];
	__u32 direction;
	__u32 reserved;
};

static __always_inline __u32 aes_mix(const volatile struct aes_tables *t, __u32 row0, __u32 row1,
				     __u32 row2, __u32 row3)
{
	__u32 a = t->mixed[row0 & 0xff], b = t->mixed[row1 >> 8 & 0xff];
	__u32 c = t->mixed[row2 >> 16 & 0xff], d = t->mixed[row3 >> 24];

	return a ^ (b << 8 | b >> 24) ^ (c << 16 | c >> 16) ^ (d << 24 | d >> 8);
}

static __always_inline __u32 aes_last(const volatile struct aes_tables *t, __u32 row0, __u32 row1,
				      __u32 row2, __u32 row3)
{
	return t->last[row0 & 0xff] | t->last[row1 >> 8 & 0xff] << 8 |
	       t->last[row2 >> 16 & 0xff] << 16 | (__u32)t->last[row3 >> 24] << 24;
}

/* Not static, so that the verifier looks at it once. Unrolled: Linux 6.1 refuses some loops. */
__noinline int aes_run(const struct aes_key *key, struct aes_block *block)
{
	const volatile struct aes_tables *t;
	__u32 a, b, c, d;

	if (!key || !block)
		return 0;
	t = &aes_tables[key->direction & 1];
	a = block->columns[0] ^ key->rounds[0].columns[0];
	b = block->columns[1] ^ key->rounds[0].columns[1];
	c = block->columns[2] ^ key->rounds[0].columns[2];
	d = block->columns[3] ^ key->rounds[0].columns[3];
#pragma clang loop unroll(full)
	for (int round = 1; round < AES_ROUNDS; round++) {
		__u32 a_ = aes_mix(t, a, b, c, d) ^ key->rounds[round].columns[0];
		__u32 b_ = aes_mix(t, b, c, d, a) ^ key->rounds[round].columns[1];
		__u32 c_ = aes_mix(t, c, d, a, b) ^ key->rounds[round].columns[2];

		d = aes_mix(t, d, a, b, c) ^ key->rounds[round].columns[3];
		a = a_;
		b = b_;
		c = c_;
	}
	block->columns[0] = aes_last(t, a, b, c, d) ^ key->rounds[AES_ROUNDS].columns[0];
	block->columns[1] = aes_last(t, b, c, d, a) ^ key->rounds[AES_ROUNDS].columns[1];
	block->columns[2] = aes_last(t, c, d, a, b) ^ key->rounds[AES_ROUNDS].columns[2];
	block->columns[3] = aes_last(t, d, a, b, c) ^ key->rounds[AES_ROUNDS].columns[3];
	return 0;
}
