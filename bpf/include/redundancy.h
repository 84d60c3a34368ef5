// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Numbers of packets that travel more than once: the redundancy TLV of an SRH, and
 * the argument of a redundancy SID. Formats: package srv6, docs/reference/dataplane.md.
 */
#pragma once

#include "ip.h"

enum redundancy {
	REDUNDANCY_NONE = 0,
	REDUNDANCY_TLV, /* 32-bit number, epoch, time */
	REDUNDANCY_SID, /* 16-bit number */
} __attribute__((packed)); /* one byte */

#define TLV_REDUNDANCY 124
#define TLV_REDUNDANCY_LENGTH 14
#define TLVS_MAX 8 /* looked at before the redundancy TLV is found */

struct redundancy_tlv {
	__u8 type;
	__u8 length;
	__u8 flags;
	__u8 epoch;
	__be32 flow;
	__be32 number;
	__be32 timestamp;
};

/* What a packet says about itself. */
struct number {
	__u32 flow;
	__u32 number;
	__u32 timestamp; /* us, low 32 bits of TAI; 0 in the SID form */
	__u8 epoch;
	enum redundancy form;
	__u16 ordered; /* once it is decided: the instance plus 1, if its packets are put in order;
			  else 0 */
	__u16 generation; /* of the numbers, once it is decided */
	bool began; /* a generation: the packet that is decided about, in one try or several */
	__u8 reserved;
	__s32 raised; /* the highest number by so much, as above */
};

/* The argument of a redundancy SID: flow 20 bits, number 16, reserved 12, in the last 48 bits of
 * the address. */
#define SID_NUMBER_SHIFT 12 /* of the number in the address's last 32 bits */

static __always_inline void number_from_sid(const struct address *sid, struct number *n)
{
	__u64 low = bpf_be64_to_cpu(sid->word[1]);

	n->form = REDUNDANCY_SID;
	n->flow = low >> 28 & 0xfffff;
	n->number = low >> SID_NUMBER_SHIFT & 0xffff;
}

/* Now, in us: comparable between machines whose clocks are synchronised, and monotonic on one. */
static __always_inline __u32 timestamp_us(void)
{
	return bpf_ktime_get_tai_ns() / 1000;
}

/* The redundancy TLV of the SRH at an offset that the walk has checked. False if there is none. */
__noinline int number_from_tlv(struct xdp_md *ctx, __u32 srh, struct number *n)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct routing_header *h = data + (srh & OFFSET_MAX);
	__u32 at, last;

	if (!n || (void *)(h + 1) > end)
		return false;
	at = (srh & OFFSET_MAX) + sizeof(*h) + (h->last_entry + 1) * sizeof(struct address);
	last = (srh & OFFSET_MAX) + (h->length + 1) * 8;
	for (int i = 0; i < TLVS_MAX; i++) {
		struct redundancy_tlv *tlv = data + (at & OFFSET_MAX);

		if (at + 2 > last || (void *)tlv + 2 > end)
			return false;
		if (tlv->type == TLV_PAD1) {
			at++;
			continue;
		}
		if (tlv->type != TLV_REDUNDANCY) {
			at += 2 + tlv->length;
			continue;
		}
		if (tlv->length != TLV_REDUNDANCY_LENGTH || at + sizeof(*tlv) > last ||
		    (void *)(tlv + 1) > end)
			return false;
		n->form = REDUNDANCY_TLV;
		n->epoch = tlv->epoch;
		n->flow = bpf_ntohl(tlv->flow);
		n->number = bpf_ntohl(tlv->number);
		n->timestamp = bpf_ntohl(tlv->timestamp);
		return true;
	}
	return false;
}
