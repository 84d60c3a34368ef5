// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a QUIC packet tells without its keys: RFC 8999, RFC 9000 section 17, RFC 9369. */
#pragma once

#include "ip.h"

#define QUIC_LONG_HEADER 0x80
#define QUIC_VERSION_1 0x00000001
#define QUIC_VERSION_2 0x6b3343cf

struct quic_start {
	struct udphdr udp;
	__u8 first;
	__u8 version[4]; /* of a long header */
} __attribute__((packed)); /* 13 bytes */

/*
 * Does the packet ask for a connection, or for the versions that a server knows? A retransmission
 * and what else comes in Initial packets count too. Whether it is whole, the server finds out.
 */
static __always_inline bool quic_opens(struct xdp_md *ctx, const struct packet *p)
{
	struct quic_start *q = (void *)(long)ctx->data + (p->transport & OFFSET_MAX);
	__u32 version, type;

	if (p->icmp || p->fragment || (void *)(q + 1) > frame_end(ctx) ||
	    bpf_ntohs(q->udp.len) < sizeof(*q) || !(q->first & QUIC_LONG_HEADER))
		return false;
	version = q->version[0] << 24 | q->version[1] << 16 | q->version[2] << 8 | q->version[3];
	type = q->first >> 4 & 3;
	if (version == QUIC_VERSION_1)
		return type == 0;
	return version != QUIC_VERSION_2 || type == 1;
}
