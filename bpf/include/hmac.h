// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The HMAC TLV of a segment routing header, RFC 8754 section 2.1.2: HMAC-SHA-256 over
 * the source address, the segments and little else. package srv6 is the same in Go.
 * What is covered, and in which order things are checked: docs/reference/dataplane.md, "HMAC".
 */
#pragma once

#include "counters.h"
#include "inner.h"
#include "sha256.h"
#include "srh.h"

#define HMAC_KEYS 64
#define HMAC_SEGMENTS 12 /* more are not verified */
#define HMAC_TLVS 8 /* in one header */
#define HMAC_TLV_BYTES 128 /* of all TLVs of a header */
#define HMAC_REDUCED 0x8000 /* D: the destination of the first segment is not in the list */
#define HMAC_LINUX_FLAG 0x08 /* in the SRH's flags, for Linux */
#define HMAC_SIGNS 0 /* whose key the edge signs with */

enum hmac_form {
	HMAC_STANDARD = 0, /* as in RFC 8754 */
	HMAC_LINUX, /* as Linux does: without the D bit and what follows it */
};

struct hmac_digest {
	__u32 state[8];
};

/* Made of a secret by the loader: the hash after the block with the inner and the outer pad (RFC
 * 2104). */
struct hmac_key {
	__u32 id; /* as it is in the TLV, host order */
	enum hmac_form form;
	__u64 generation; /* of the secret, the id and the form */
	struct hmac_digest inner;
	struct hmac_digest outer;
};

/* By id; on the edge, the one that it signs with. Replaced one by one: a program that has found a
 * key has all of it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2 * HMAC_KEYS); /* new ones come before old ones go */
	__type(key, __u32);
	__type(value, struct hmac_key);
} hmac_keys SEC(".maps");

/* Where the segments begin in the text, in both forms; the Linux form begins 2 bytes later than the
 * standard one. */
#define HMAC_TEXT_SEGMENTS 24
#define HMAC_LINUX_START 2
#define HMAC_BLOCKS 4 /* for HMAC_SEGMENTS, with the padding */
#define HMAC_TEXT_WORDS (HMAC_BLOCKS * 8 + 1)

struct hmac_tlv {
	__u8 type;
	__u8 length;
	__be16 flags;
	__be32 key;
	__be32 digest[8];
};

/*
 * What is being signed or verified. The stack has no room for it. Steps that need much of the stack
 * are called one after the other, and leave here what the next one needs.
 */
struct hmac_scratch {
	struct sha256 hash;
	__u64 generation; /* of the key; with the text's first words the key of hmac_known */
	__u64 text[HMAC_TEXT_WORDS];
	__u8 tlvs[HMAC_TLV_BYTES +
		  sizeof(struct hmac_tlv)]; /* of the header; a read of the last may go beyond */
	struct sha256_block outer;
	struct hmac_tlv tlv; /* that was found, or is to be written */
	__u32 found; /* where the HMAC TLV's value is among the TLVs; 0: there is none */
	__u32 segments;
	bool known; /* the hash was remembered */
	__u8 reserved[7];
	struct hmac_key key; /* as it was found: it may be replaced meanwhile */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hmac_scratch);
} hmac_scratches SEC(".maps");

/*
 * HMACs that were right, by what they cover: neither the inner packet nor what changes on the way
 * is. A chain has one text, as long as key and SIDs stay the same.
 */
#define HMAC_KNOWN_WORDS 16 /* of the text: 6 segments */
#define HMAC_KNOWN_MAX 65536

struct hmac_text {
	__u64 generation;
	__u64 text[HMAC_KNOWN_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries,
	       HMAC_KNOWN_MAX); /* 1 if there is nothing to sign or check: the loader sets it */
	__type(key, struct hmac_text);
	__type(value, struct hmac_digest);
} hmac_known SEC(".maps");

static __always_inline struct hmac_scratch *hmac_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&hmac_scratches, &zero);
}

static __always_inline void hmac_key_set(struct hmac_scratch *s, const struct hmac_key *key)
{
	s->key.id = key->id;
	s->key.form = key->form;
	s->key.inner = key->inner;
	s->key.outer = key->outer;
	s->generation = key->generation;
}

/* The part of the text that is not segments. */
static __always_inline void hmac_text_head(struct hmac_scratch *s, const struct address *source,
					   __u8 last_entry, __u8 flags, __be16 reduced)
{
	__u8 *text = (__u8 *)s->text;

	if (s->key.form == HMAC_LINUX) {
		address_store(text + HMAC_LINUX_START, source);
		text[18] = last_entry;
		text[19] = flags;
	} else {
		address_store(text, source);
		text[16] = last_entry;
		text[17] = flags;
		*(__be16 *)(text + 18) = reduced;
	}
	*(__be32 *)(text + 20) = bpf_htonl(s->key.id);
}

static __always_inline bool hmac_recall(struct hmac_scratch *s)
{
	struct hmac_digest *known;

	s->known = false;
	if (s->segments > CHAIN_MAX)
		return false;
	known = bpf_map_lookup_elem(&hmac_known, &s->generation);
	if (!known)
		return false;
	*(struct hmac_digest *)s->hash.state = *known;
	s->known = true;
	return true;
}

/*
 * The HMAC of the text into the hash's state. Not static, so that the verifier looks at it once.
 * RFC 2104: the inner hash goes over the inner pad and the text, the outer one over the outer pad
 * and the inner hash.
 */
__noinline int hmac_run(void)
{
	struct hmac_scratch *s = hmac_here();
	__u32 start, end, blocks;

	if (!s || s->segments > HMAC_SEGMENTS || hmac_recall(s))
		return 0;
	start = s->key.form == HMAC_LINUX ? HMAC_LINUX_START : 0;
	end = HMAC_TEXT_SEGMENTS + s->segments * sizeof(struct address);
	blocks = (end - start + 9 + SHA256_BLOCK - 1) /
		 SHA256_BLOCK; /* with a bit and the length behind it */
	*(struct hmac_digest *)s->hash.state = s->key.inner;
	*((__u8 *)s->text + (end & 0xff)) = 0x80;
	*(__be32 *)((void *)s->text + start + ((blocks * SHA256_BLOCK - 4) & 0xff)) =
		bpf_htonl((SHA256_BLOCK + end - start) * 8);
#pragma clang loop unroll(full)
	for (int i = 0; i < HMAC_BLOCKS; i++)
		if (i < blocks)
			sha256_run(&s->hash, (void *)s->text + start + i * SHA256_BLOCK);
	*((__u8 *)s->text + (end & 0xff)) = 0; /* the text is a key once more */
	*(__be32 *)((void *)s->text + start + ((blocks * SHA256_BLOCK - 4) & 0xff)) = 0;
#pragma clang loop unroll(full)
	for (int i = 0; i < 8; i++)
		s->outer.words[i] = bpf_htonl(s->hash.state[i]);
	*(struct hmac_digest *)s->hash.state = s->key.outer;
	s->outer.words[8] = bpf_htonl(0x80000000);
#pragma clang loop unroll(full)
	for (int i = 9; i < 15; i++)
		s->outer.words[i] = 0;
	s->outer.words[15] = bpf_htonl((SHA256_BLOCK + 32) * 8);
	sha256_run(&s->hash, &s->outer);
	return 0;
}

static __always_inline void hmac_remember(struct hmac_scratch *s)
{
	if (!s->known && s->segments <= CHAIN_MAX)
		bpf_map_update_elem(&hmac_known, &s->generation, s->hash.state, BPF_ANY);
}

static __always_inline void hmac_text_clear(struct hmac_scratch *s)
{
#pragma clang loop unroll(full)
	for (int i = 0; i < HMAC_TEXT_WORDS; i++)
		s->text[i] = 0;
}

/* The segments of the SRH at an offset into the text. */
static __always_inline bool hmac_text_segments(struct xdp_md *ctx, struct hmac_scratch *s,
					       __u32 srh, __u32 segments)
{
	__u32 bytes = segments * sizeof(struct address);

	barrier_var(bytes);
	if (bytes < sizeof(struct address) || bytes > HMAC_SEGMENTS * sizeof(struct address))
		return false;
	return !bpf_xdp_load_bytes(ctx, srh + sizeof(struct routing_header),
				   (void *)s->text + HMAC_TEXT_SEGMENTS, bytes);
}

/*
 * Finds the HMAC TLV among the first size bytes of s->tlvs. Returns 0, or the reason to drop: what
 * can't be read as TLVs to the end, and a second HMAC TLV. s->found is where its value begins, 0:
 * there is none.
 */
__noinline int hmac_find(struct hmac_scratch *s, __u32 size)
{
	__u32 at = 0, found = 0;

	if (!s)
		return REASON_BAD_SRH;
#pragma clang loop unroll(full)
	for (int i = 0; i < HMAC_TLVS; i++) {
		__u32 length;
		__u8 type;

		if (at >= size || at >= HMAC_TLV_BYTES)
			break;
		type = s->tlvs[at & (HMAC_TLV_BYTES - 1)];
		if (type == TLV_PAD1) {
			at++;
			continue;
		}
		length = s->tlvs[(at & (HMAC_TLV_BYTES - 1)) + 1];
		if (at + 2 + length > size || (type == TLV_PADN && length > PADN_MAX))
			return REASON_BAD_SRH;
		if (type == TLV_HMAC) {
			if (found || length != TLV_HMAC_LENGTH)
				return REASON_BAD_SRH;
			found = at + 2;
		}
		at += 2 + length;
	}
	s->found = found;
	return at < size ? REASON_BAD_SRH : REASON_NONE;
}

/* Reads the TLVs of an SRH, which the walk has checked. Returns 0 or a reason to drop; s->found
 * says where the HMAC TLV is. */
static __always_inline int hmac_read_tlvs(struct xdp_md *ctx, struct hmac_scratch *s, __u32 srh,
					  __u32 segments, __u32 length)
{
	__u32 bytes = length * 8 - segments * sizeof(struct address), last = bytes - 1;

	s->found = 0;
	if (!bytes)
		return REASON_NONE;
	if (bytes > HMAC_TLV_BYTES)
		return REASON_BAD_SRH;
	barrier_var(last); /* Linux 6.1 wants the bounds where they are needed */
	if (bpf_xdp_load_bytes(
		    ctx, srh + sizeof(struct routing_header) + segments * sizeof(struct address),
		    s->tlvs, (last & (HMAC_TLV_BYTES - 1)) + 1))
		return REASON_TRUNCATED;
	return hmac_find(s, bytes);
}

/* RFC 8754 section 2.1.2.1: the current segment must be the destination. That of a reduced list's
 * first is not in the list. */
static __always_inline bool hmac_destination_fits(const struct hmac_scratch *s,
						  const struct address *destination, __u32 segments,
						  __u32 left, __be16 flags)
{
	const struct address *list = (void *)s->text + HMAC_TEXT_SEGMENTS;

	if (left >= segments)
		return flags & bpf_htons(HMAC_REDUCED);
	if (left >= HMAC_SEGMENTS)
		return false;
	return list[left].word[0] == destination->word[0] &&
	       list[left].word[1] == destination->word[1];
}

/* Reads what is to be verified: returns 0, a reason to drop, or -1: nothing is. */
__noinline int hmac_read(struct xdp_md *ctx, const struct packet *p, __u32 srh)
{
	struct routing_header *h = srh_at(ctx, srh);
	struct hmac_scratch *s = hmac_here();
	__u32 left, flags, id;
	struct hmac_key *key;
	int reason;

	if (!h)
		return hmac_rule == HMAC_RULE_ALL ? REASON_HMAC_MISSING : -1;
	if (!s || !p)
		return REASON_HMAC_MISSING;
	s->segments = h->last_entry + 1;
	left = h->segments_left;
	flags = h->flags;
	reason = hmac_read_tlvs(ctx, s, srh, s->segments, h->length);
	if (reason)
		return reason;
	if (!s->found)
		return hmac_rule == HMAC_RULE_PRESENT ? -1 : REASON_HMAC_MISSING;
	s->tlv = *(struct hmac_tlv *)((void *)s->tlvs + (s->found & (HMAC_TLV_BYTES - 1)) - 2);
	id = bpf_ntohl(s->tlv.key);
	key = id ? bpf_map_lookup_elem(&hmac_keys, &id) : 0;
	if (!key)
		return REASON_HMAC_KEY;
	hmac_key_set(s, key);
	hmac_text_clear(s);
	if (s->segments > HMAC_SEGMENTS || !hmac_text_segments(ctx, s, srh, s->segments) ||
	    !hmac_destination_fits(s, &p->flow.destination, s->segments, left, s->tlv.flags))
		return REASON_HMAC_WRONG;
	hmac_text_head(s, &p->flow.source, s->segments - 1, flags, s->tlv.flags);
	return REASON_NONE;
}

/* Whether the digest is the one that was computed. It takes the same time, wherever they differ. */
__noinline int hmac_compare(void)
{
	struct hmac_scratch *s = hmac_here();
	__u32 difference = 0;

	if (!s)
		return REASON_HMAC_WRONG;
#pragma clang loop unroll(full)
	for (int i = 0; i < 8; i++)
		difference |= s->hash.state[i] ^ bpf_ntohl(s->tlv.digest[i]);
	if (difference)
		return REASON_HMAC_WRONG;
	hmac_remember(s);
	return REASON_NONE;
}

/* Verifies the SRH at an offset, 0: there is none, of an IPv6 packet. Returns 0 or the reason to
 * drop. */
static __always_inline int hmac_check(struct xdp_md *ctx, const struct packet *p, __u32 srh)
{
	int reason = hmac_read(ctx, p, srh);

	if (reason)
		return reason < 0 ? REASON_NONE : reason;
	hmac_run();
	return hmac_compare();
}

/* Reads the SRH at an offset, behind an IPv6 header, which is to be signed. Returns 0 or the reason
 * to drop. */
__noinline int hmac_prepare(struct xdp_md *ctx, __u32 srh)
{
	struct routing_header *h = srh_at(ctx, srh);
	struct hmac_scratch *s = hmac_here();
	__u32 id = HMAC_SIGNS, flags;
	struct hmac_key *key = bpf_map_lookup_elem(&hmac_keys, &id);
	struct address source;

	if (!h || !s || !key)
		return REASON_HMAC_KEY;
	hmac_key_set(s, key);
	s->segments = h->last_entry + 1;
	if (key->form == HMAC_LINUX)
		h->flags |= HMAC_LINUX_FLAG;
	s->tlv.type = TLV_HMAC;
	s->tlv.length = TLV_HMAC_LENGTH;
	s->tlv.flags = h->segments_left > h->last_entry ? bpf_htons(HMAC_REDUCED) : 0;
	s->tlv.key = bpf_htonl(key->id);
	flags = h->flags;
	hmac_text_clear(s);
	if (srh < sizeof(struct ipv6hdr) || s->segments > HMAC_SEGMENTS ||
	    bpf_xdp_load_bytes(ctx, srh - sizeof(struct ipv6hdr) + 8, &source, sizeof(source)) ||
	    !hmac_text_segments(ctx, s, srh, s->segments))
		return REASON_TRUNCATED;
	hmac_text_head(s, &source, s->segments - 1, flags, s->tlv.flags);
	return REASON_NONE;
}

/* Writes the TLV with the hash behind the segments, where there is room for it. */
__noinline int hmac_write(struct xdp_md *ctx, __u32 srh)
{
	struct hmac_scratch *s = hmac_here();

	if (!s)
		return REASON_HMAC_KEY;
	hmac_remember(s);
#pragma clang loop unroll(full)
	for (int i = 0; i < 8; i++)
		s->tlv.digest[i] = bpf_htonl(s->hash.state[i]);
	if (bpf_xdp_store_bytes(
		    ctx, srh + sizeof(struct routing_header) + s->segments * sizeof(struct address),
		    &s->tlv, sizeof(s->tlv)))
		return REASON_TRUNCATED;
	return REASON_NONE;
}

/* Signs the SRH at an offset, behind an IPv6 header. Returns 0 or the reason to drop. */
static __always_inline int hmac_sign(struct xdp_md *ctx, __u32 srh)
{
	int reason = hmac_prepare(ctx, srh);

	if (reason)
		return reason;
	hmac_run();
	return hmac_write(ctx, srh);
}
