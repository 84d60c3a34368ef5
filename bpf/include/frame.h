// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Layer 2: Ethernet with up to two VLAN tags, kept aside while the headers
 * behind it grow or shrink, then written back.
 */
#pragma once

#include "compat.h"
#include "reason.h"

#include <linux/if_ether.h>

#define ETH_ADDRESSES sizeof(struct eth_addresses)
#define VLAN_TAG 4
#define VLAN_TAGS_MAX 2

/* Destination and source, in words for the same reason as struct address. */
struct eth_addresses {
	__u32 word[3];
};

/* A frame's way through the program: where it is, and what was in front of the IP header. */
struct frame {
	struct eth_addresses addresses;
	__u32 tags[VLAN_TAGS_MAX]; /* TPID and TCI as on the wire */
	__u32 tags_length; /* 0, 4 or 8 */
	__be16 ethertype; /* behind the tags */
};

/* A position in the packet. The frame ends at end; the packet, by its own length, in left bytes. */
struct cursor {
	void *pos;
	void *end;
	__u32 left;
	__u32 offset; /* of pos from the start of the frame */
};

/* No header that is looked at starts farther into the frame. */
#define OFFSET_MAX 0x7fff

static __always_inline bool cursor_has(const struct cursor *c, __u32 bytes)
{
	return c->left >= bytes && c->pos + bytes <= c->end;
}

static __always_inline void cursor_skip(struct cursor *c, __u32 bytes)
{
	c->pos += bytes;
	c->left -= bytes;
	c->offset += bytes;
}

static __always_inline struct cursor cursor_at_start(CONTEXT *ctx)
{
	return (struct cursor){
		.pos = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
		.left = frame_bytes(ctx),
	};
}

/* The same without a question to the kernel: of a frame in several pieces, the first alone. */
static __always_inline struct cursor cursor_at_first_piece(CONTEXT *ctx)
{
	void *pos = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	return (struct cursor){ .pos = pos, .end = end, .left = end - pos };
}

/* Moves to an offset whose bounds the verifier may not know. */
static __always_inline void cursor_set(struct cursor *c, CONTEXT *ctx, __u32 offset, __u32 left)
{
	__u64 masked = offset;

	/* The compiler may know that the mask changes nothing; Linux 6.1 forgets the bounds of a
	 * number that was put aside. */
	barrier_var(masked);
	c->pos = (void *)(long)ctx->data + (masked & OFFSET_MAX);
	c->end = (void *)(long)ctx->data_end;
	c->left = left;
	c->offset = offset;
}

static __always_inline bool is_vlan(__be16 ethertype)
{
	return ethertype == bpf_htons(ETH_P_8021Q) || ethertype == bpf_htons(ETH_P_8021AD);
}

/* Reads the L2 header and leaves the cursor behind it. Returns 0 or the reason to drop. */
static __always_inline int frame_parse(struct cursor *c, struct frame *f)
{
	struct ethhdr *eth = c->pos;

	if (!cursor_has(c, sizeof(*eth)))
		return REASON_TRUNCATED;
	f->addresses = *(const struct eth_addresses *)eth;
	f->ethertype = *(
		__be16 *)(c->pos +
			  ETH_ADDRESSES); /* a field of the packed struct would be read by bytes */
	f->tags_length = 0;
	cursor_skip(c, sizeof(*eth));
	if (likely(!is_vlan(f->ethertype)))
		return REASON_NONE;

	/* The tag's TPID is what was read as the EtherType; its TCI and the next EtherType follow.
	 */
	for (int i = 0; i < VLAN_TAGS_MAX; i++) {
		__be16 *tag = c->pos;

		if (!is_vlan(f->ethertype))
			break;
		if (!cursor_has(c, VLAN_TAG))
			return REASON_TRUNCATED;
		f->tags[i] = (__u32)f->ethertype | (__u32)tag[0] << 16;
		f->ethertype = tag[1];
		f->tags_length += VLAN_TAG;
		cursor_skip(c, VLAN_TAG);
	}
	return REASON_NONE;
}

/* Bytes in front of the IP header. */
static __always_inline __u32 frame_l2_length(const struct frame *f)
{
	return sizeof(struct ethhdr) + f->tags_length;
}

/* Writes the L2 header at the start of the packet. False if it does not fit, which can't be after
 * parsing. */
static __always_inline bool frame_write(const struct frame *f, void *data, void *data_end)
{
	__u32 *tags = data + ETH_ADDRESSES;
	__be16 *ethertype = data + ETH_ADDRESSES;

	if (data + sizeof(struct ethhdr) + VLAN_TAGS_MAX * VLAN_TAG > data_end)
		return false;
	*(struct eth_addresses *)data = f->addresses;
	if (unlikely(f->tags_length)) {
		tags[0] = f->tags[0];
		ethertype += 2;
		if (f->tags_length > VLAN_TAG) {
			tags[1] = f->tags[1];
			ethertype += 2;
		}
	}
	*ethertype = f->ethertype;
	return true;
}

/* Copies a frame's L2. Tags that are not there were never written, and Linux 6.1 refuses to read
 * them. */
static __always_inline void frame_copy(struct frame *to, const struct frame *f)
{
	to->addresses = f->addresses;
	for (int i = 0; i < VLAN_TAGS_MAX; i++)
		to->tags[i] = f->tags_length > i * VLAN_TAG ? f->tags[i] : 0;
	to->tags_length = f->tags_length;
	to->ethertype = f->ethertype;
}

/* Makes back the L2 of a frame that goes back to where f came from. */
static __always_inline void frame_turn(struct frame *back, const struct frame *f)
{
	const __u32 *word = f->addresses.word;

	frame_copy(back, f);
	back->addresses.word[0] = word[1] >> 16 | word[2] << 16;
	back->addresses.word[1] = word[2] >> 16 | word[0] << 16;
	back->addresses.word[2] = word[0] >> 16 | word[1] << 16;
}
