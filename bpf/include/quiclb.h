// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The server that a QUIC connection ID names: draft-ietf-quic-load-balancers, in clear, or
 * encrypted in a single pass or in four. quiclb.Codec is the same in Go.
 */
#pragma once

#include "aes.h"
#include "quic.h"

#define QUIC_ROTATIONS 8
#define QUIC_CONFIGS 1024
#define QUIC_SERVERS 65536
#define QUIC_HEAD 40 /* a UDP header and all of a QUIC header up to the connection ID's end */
#define QUIC_SHORT_ID 9 /* where it is, from the UDP header on */
#define QUIC_LONG_ID 14

enum quic_cipher {
	QUIC_CLEAR = 0,
	QUIC_SINGLE_PASS,
	QUIC_FOUR_PASS,
};

/* 16 bytes as they lie in memory. */
struct quic_text {
	__u64 words[2];
};

/* How the connection IDs of one rotation of a service are read. */
struct quic_config {
	struct aes_key key;
	struct quic_text left; /* masks: the first half of the text */
	struct quic_text right; /* the second half, moved to the front */
	struct quic_text id; /* the server ID */
	__u8 length; /* of the text, which is the connection ID without the first byte */
	__u8 right_at; /* where the second half begins */
	__u8 cipher; /* enum quic_cipher */
	__u8 id_in_left; /* the server ID ends in the first half: the last pass is spared */
	__u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, QUIC_CONFIGS);
	__type(key, __u32); /* service * QUIC_ROTATIONS + rotation */
	__type(value, struct quic_config);
} quic_configs SEC(".maps");

struct quic_server {
	struct quic_text id;
	__u32 config; /* key of its configuration */
	__u32 reserved;
};

/* Backends by server ID. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, QUIC_SERVERS);
	__type(key, struct quic_server);
	__type(value, __u32);
} quic_servers SEC(".maps");

/* What is being read. The stack has no room for it. */
struct quic_scratch {
	__u8 head[64]; /* of the UDP datagram; the rest is what was there before */
	struct quic_text left;
	struct quic_text right;
	struct quic_text block;
	struct quic_text joined[2];
	struct quic_server server;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct quic_scratch);
} quic_scratches SEC(".maps");

static __always_inline void quic_masked(struct quic_text *to, const void *from,
					const struct quic_text *mask)
{
	const struct quic_text *text = from;

	to->words[0] = text->words[0] & mask->words[0];
	to->words[1] = text->words[1] & mask->words[1];
}

/* Changes one half by the other, which is the same for encryption and decryption. */
static __always_inline void quic_pass(struct quic_config *c, struct quic_scratch *q,
				      const struct quic_text *by, struct quic_text *changed,
				      const struct quic_text *mask, __u64 number)
{
	q->block.words[0] = by->words[0];
	q->block.words[1] = by->words[1] | (__u64)c->length << 48 |
			    number << 56; /* the last two bytes */
	aes_run(&c->key, (struct aes_block *)&q->block);
	changed->words[0] ^= q->block.words[0] & mask->words[0];
	changed->words[1] ^= q->block.words[1] & mask->words[1];
}

/* The server ID in four-pass encrypted text. */
static __always_inline void quic_four_pass(struct quic_config *c, struct quic_scratch *q,
					   const void *text)
{
	struct quic_text *tail;

	quic_masked(&q->left, text, &c->left);
	quic_masked(&q->right, text + (c->right_at & 15), &c->right);
	quic_pass(c, q, &q->right, &q->left, &c->left, 4);
	quic_pass(c, q, &q->left, &q->right, &c->right, 3);
	quic_pass(c, q, &q->right, &q->left, &c->left, 2);
	q->joined[0] = q->left;
	q->joined[1] = (struct quic_text){};
	if (!c->id_in_left) {
		quic_pass(c, q, &q->left, &q->right, &c->right, 1);
		tail = (void *)q->joined + (c->right_at & 15);
		tail->words[0] |= q->right.words[0];
		tail->words[1] |= q->right.words[1];
	}
	quic_masked(&q->server.id, q->joined, &c->id);
}

static __always_inline __u64 quic_swap(__u64 word, __u64 other)
{
	return (word & 0xffffffff) | (other & ~0xffffffffULL);
}

static __always_inline void quic_single_pass(struct quic_config *c, struct quic_scratch *q,
					     const void *text)
{
	const struct quic_text *t = text;

	/* Columns 1 and 3 are the upper halves of the words. */
	q->block.words[0] = quic_swap(t->words[0], t->words[1]);
	q->block.words[1] = quic_swap(t->words[1], t->words[0]);
	aes_run(&c->key, (struct aes_block *)&q->block);
	q->joined[0].words[0] = quic_swap(q->block.words[0], q->block.words[1]);
	q->joined[0].words[1] = quic_swap(q->block.words[1], q->block.words[0]);
	quic_masked(&q->server.id, q->joined, &c->id);
}

/* The backend that the packet's connection ID names, 0: none. Not inlined, for the verifier's sake
 * and the stack's. */
__noinline int quic_owner(struct xdp_md *ctx, const struct packet *p, __u32 service)
{
	__u32 zero = 0, at = QUIC_SHORT_ID, length, udp, *backend;
	struct quic_scratch *q = bpf_map_lookup_elem(&quic_scratches, &zero);
	struct quic_config *c;
	void *text;

	if (!q || !p)
		return 0;
	length = p->ip + p->length - p->transport;
	if (length > QUIC_HEAD)
		length = QUIC_HEAD;
	barrier_var(length);
	if (length <= QUIC_SHORT_ID || length > QUIC_HEAD ||
	    bpf_xdp_load_bytes(ctx, p->transport, q->head, length))
		return 0;
	udp = q->head[4] << 8 | q->head[5];
	if (udp < length)
		length = udp;
	if (q->head[8] & QUIC_LONG_HEADER)
		at = QUIC_LONG_ID;
	if (length <= at)
		return 0;
	q->server.config = service * QUIC_ROTATIONS + (q->head[at] >> 5);
	c = bpf_map_lookup_elem(&quic_configs, &q->server.config);
	if (!c || length < at + 1 + c->length ||
	    (at == QUIC_LONG_ID && q->head[at - 1] != 1 + c->length))
		return 0;
	text = q->head + at + 1;
	if (c->cipher == QUIC_FOUR_PASS)
		quic_four_pass(c, q, text);
	else if (c->cipher == QUIC_SINGLE_PASS)
		quic_single_pass(c, q, text);
	else
		quic_masked(&q->server.id, text, &c->id);
	backend = bpf_map_lookup_elem(&quic_servers, &q->server);
	return backend ? *backend : 0;
}
