// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The end of an SRv6 path: the segment routing header that led there, and the packet behind it. */
#pragma once

#include "transport.h"

/* The SRH at an offset found by the walk, which has checked it; 0: there is none. */
static __always_inline struct routing_header *srh_at(struct xdp_md *ctx, __u32 offset)
{
	struct routing_header *srh = (void *)(long)ctx->data + (offset & OFFSET_MAX);

	return offset && (void *)(srh + 1) <= (void *)(long)ctx->data_end ? srh : 0;
}

static __always_inline __u8 segments_left(struct xdp_md *ctx, __u32 srh_offset)
{
	struct routing_header *srh = srh_at(ctx, srh_offset);

	return srh ? srh->segments_left : 0;
}

/* The packet behind the outer headers, up to its transport header. The first error ends it. */
static __always_inline int inner_parse(struct xdp_md *ctx, struct cursor *c, __u8 next,
				       struct packet *inner)
{
	int reason;
	__u32 srh;

	if (next == IPPROTO_IPIP) {
		reason = ipv4_parse(c, inner);
	} else if (next == IPPROTO_IPV6) {
		reason = ipv6_parse(c, inner);
		if (!reason && unlikely(is_extension(inner->flow.protocol)))
			reason = packet_walk(ctx, c, inner, SRH_IS_ROUTING_HEADER, true, &srh);
	} else {
		return REASON_UPPER_LAYER;
	}
	if (reason)
		return reason;
	transport_parse(ctx, c, inner);
	return inner->error;
}

/* The same from an offset. Not static, so that the verifier looks at it once. */
__noinline int inner_parse_at(struct xdp_md *ctx, struct packet *inner, __u32 offset, __u32 left,
			      __u32 next)
{
	struct cursor c;

	if (!inner)
		return REASON_TRUNCATED;
	*inner = (struct packet){};
	cursor_set(&c, ctx, offset, left);
	return inner_parse(ctx, &c, next, inner);
}

/* The packet behind the outer headers as most are: TCP or UDP in one piece, without options and
 * extension headers. False: it is another one, perhaps a wrong one. */
static __always_inline bool inner_parse_plain(struct cursor c, __u8 next, struct packet *inner)
{
	__u32 offset = c.offset;

	if (next == IPPROTO_IPIP) {
		if (ipv4_parse(&c, inner) || inner->fragment ||
		    c.offset - offset != sizeof(struct iphdr))
			return false;
	} else if (next != IPPROTO_IPV6 || ipv6_parse(&c, inner)) {
		return false;
	}
	return inner->flow.protocol == IPPROTO_TCP ? tcp_parse(&c, inner) :
	       inner->flow.protocol == IPPROTO_UDP ? udp_parse(&c, inner) :
						     false;
}
