// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What belongs to a link: no router sends it on, and so no head-end, whatever its rules say.
 */
#pragma once

#include "icmp_reply.h"

#define IPV4_LINK_LOCAL 0xa9fe /* first two octets, RFC 3927 */
#define IPV6_LINK_LOCAL 0xfe80 /* first 10 bits, RFC 4291 section 2.5.6 */
#define IPV6_LINK_LOCAL_MASK 0xffc0
#define ICMPV6_NEIGHBOUR_FIRST 133 /* types of neighbour discovery, RFC 4861 */
#define ICMPV6_NEIGHBOUR_LAST 137

static __always_inline bool is_link_local(const struct address *a, bool ipv4)
{
	return ipv4 ? (__u16)(a->word[1] >> 32) == bpf_htons(IPV4_LINK_LOCAL) :
		      ((__u16)a->word[0] & bpf_htons(IPV6_LINK_LOCAL_MASK)) ==
			       bpf_htons(IPV6_LINK_LOCAL);
}

/* Of one host, and known behind other links, too: RFC 6890, RFC 4291 section 2. */
static __always_inline bool is_routable(const struct address *a, bool ipv4)
{
	return is_single_host(a, ipv4) && !is_link_local(a, ipv4);
}

/* It can have any addresses. Fragments of it are none (RFC 6980 section 5). */
static __always_inline bool is_neighbour_discovery(const struct cursor *c, const struct packet *p)
{
	__u8 *type = c->pos;

	return p->flow.protocol == IPPROTO_ICMPV6 && !p->flow.ipv4 && !p->fragment &&
	       cursor_has(c, ICMP_HEADER) && *type >= ICMPV6_NEIGHBOUR_FIRST &&
	       *type <= ICMPV6_NEIGHBOUR_LAST;
}

/*
 * Whether a packet, at whose upper layer the cursor is, is the kernel's, which answers it or drops
 * it: its frame was for more than this node (RFC 1812 section 5.3.4), one of its addresses means
 * nothing elsewhere, or it is neighbour discovery.
 */
static __always_inline bool stays_on_link(const struct cursor *c, const struct frame *f,
					  const struct packet *p)
{
	return !is_unicast_frame(f) || !is_routable(&p->flow.source, p->flow.ipv4) ||
	       !is_routable(&p->flow.destination, p->flow.ipv4) || is_neighbour_discovery(c, p);
}
