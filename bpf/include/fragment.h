// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Which flow a later fragment is of. The edge remembers first fragments, and hosts remember those
 * that they took: a bounded number, of which the least used are forgotten. What is forgotten is
 * lost, and counted.
 */
#pragma once

#include "ip.h"

#define FRAGMENTS_MAX 16384

/* What all fragments of a packet have in common: RFC 791, RFC 8200 section 4.5. */
struct fragment_key {
	struct address source;
	struct address destination;
	__u32 identification;
	__u8 protocol; /* IPv4 */
	__u8 ipv4;
	__u16 reserved;
};

struct first_fragment {
	__u32 ports;
	__u16 bytes; /* of data */
	__u8 protocol;
	__u8 tcp_flags;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FRAGMENTS_MAX);
	__type(key, struct fragment_key);
	__type(value, struct first_fragment);
} fragments SEC(".maps");

/* In whole words: what reads it would wait for bytes that are put down one by one. */
static __always_inline struct fragment_key fragment_key_of(const struct packet *p)
{
	__u64 protocol = p->flow.ipv4 ? p->flow.protocol | 1 << 8 : 0;
	struct fragment_key key;

	key.source = p->flow.source;
	key.destination = p->flow.destination;
	*(__u64 *)&key.identification = p->fragment_id | protocol << 32;
	return key;
}

/* Not inlined, like all here: fragments are rare. A newer first fragment takes the place of an
 * older one. */
__noinline int fragment_remember(const struct packet *p)
{
	struct first_fragment first __attribute__((aligned(8)));
	struct fragment_key key;

	if (!p)
		return 0;
	key = fragment_key_of(p);
	*(__u64 *)&first = p->flow.ports | (__u64)p->fragment_bytes << 32 |
			   (__u64)p->flow.protocol << 48 | (__u64)p->tcp_flags << 56;
	bpf_map_update_elem(&fragments, &key, &first, BPF_ANY);
	return 0;
}

/* Whether the first fragment was remembered. */
static __always_inline bool fragment_is_known(const struct packet *p)
{
	struct fragment_key key = fragment_key_of(p);

	return bpf_map_lookup_elem(&fragments, &key);
}

/* Gives a later fragment the flow of the first, and what decides about the first's way. Returns 0
 * or the error. */
__noinline int fragment_recall(struct packet *p)
{
	struct first_fragment *first;
	struct fragment_key key;

	if (!p)
		return REASON_FRAGMENT_WITHOUT_FIRST;
	key = fragment_key_of(p);
	first = bpf_map_lookup_elem(&fragments, &key);
	if (!first)
		return REASON_FRAGMENT_WITHOUT_FIRST;
	if (p->fragment_bytes < first->bytes)
		return REASON_OVERLAPPING_FRAGMENT;
	p->flow.ports = first->ports;
	p->flow.protocol = first->protocol;
	p->tcp_flags = first->tcp_flags;
	return REASON_NONE;
}
