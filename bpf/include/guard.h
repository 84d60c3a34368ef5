// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The border of the SR domain, RFC 8754 section 5.1: nothing from outside reaches a
 * SID, has a segment routing header, or pretends to come from inside.
 */
#pragma once

#include "ip.h"

/* What an interface faces; one program is loaded per side in use. */
enum side {
	SIDE_EXTERNAL = 0, /* clients */
	SIDE_INTERNAL, /* the SR domain */
	SIDE_MIXED, /* both on one interface: told apart by the source address */
} __attribute__((packed)); /* one byte */

#define LOCATORS_MAX 4

/* Where SIDs of the domain are, besides its block. */
struct locators {
	struct prefix prefixes[LOCATORS_MAX]; /* none behind the first that is no prefix */
};

/* The SR domain, in the settings of every program. What a program has no use for is 0. */
struct domain {
	struct flow_secret secret; /* of the flow hash */
	struct prefix block; /* SIDs of the domain, a /32 */
	struct locators locators;
	struct infrastructure infrastructure;
	struct address source; /* of this node's outer headers */
};

static __always_inline bool is_sid_of_domain(const volatile struct domain *domain,
					     const struct address *a)
{
	if (prefix_contains(&domain->block, a))
		return true;
#pragma unroll
	for (int i = 0; i < LOCATORS_MAX; i++) {
		if (!domain->locators.prefixes[i].mask.word[0])
			break;
		if (prefix_contains(&domain->locators.prefixes[i], a))
			return true;
	}
	return false;
}

/* Whether an IPv6 source counts as outside, by what the interface faces. */
static __always_inline bool is_outside(enum side side, const volatile struct domain *domain,
				       const struct address *source)
{
	return side == SIDE_EXTERNAL ||
	       (side == SIDE_MIXED && !infrastructure_contains(&domain->infrastructure, source));
}

/* Judges the addresses of an IPv6 packet from outside. Its segment routing header is found when
 * extension headers are walked. */
static __always_inline int guard_addresses(const volatile struct domain *domain,
					   const struct packet *p)
{
	if (is_sid_of_domain(domain, &p->flow.destination))
		return REASON_SRV6_FROM_OUTSIDE;
	if (is_sid_of_domain(domain, &p->flow.source) ||
	    infrastructure_contains(&domain->infrastructure, &p->flow.source))
		return REASON_SPOOFED_SOURCE;
	return REASON_NONE;
}

/* An ICMPv6 error, RFC 4443 section 2.1, as far as the header of the packet that it quotes. */
struct quotation {
	__u8 type;
	__u8 reserved[7];
	struct ipv6hdr quoted;
};

#define ICMPV6_INFORMATIONAL 0x80 /* bit of the type that errors do not have */

/*
 * Judges an ICMPv6 packet from outside, whose message is at the cursor. Packets to SIDs do not
 * leave the domain, so an error from outside about one is forged: the kernel would believe that it
 * was too big, and lower the path MTU to the SID. No error is long enough for fragments (RFC 4443
 * section 2.4 c), of which the kernel would make one.
 */
static __always_inline int guard_error(const volatile struct domain *domain, const struct cursor *c,
				       const struct packet *p)
{
	const struct quotation *error = c->pos;
	struct address to;

	if (p->fragment == FRAGMENT_LATER || !cursor_has(c, 1) ||
	    error->type & ICMPV6_INFORMATIONAL)
		return REASON_NONE;
	if (p->fragment)
		return REASON_FRAGMENT;
	if (c->left < sizeof(*error))
		return REASON_NONE;
	if (!cursor_has(c, sizeof(*error)))
		return REASON_TRUNCATED;
	to = address_load(&error->quoted.daddr);
	return is_sid_of_domain(domain, &to) ? REASON_SRV6_FROM_OUTSIDE : REASON_NONE;
}

/*
 * Whether a packet, of whose headers next is the one at offset, has a segment routing header. What
 * else is wrong with it is not said: it is the kernel's business. Not static, so that the verifier
 * looks at it once.
 */
__noinline int has_srh(struct xdp_md *ctx, __u32 offset, __u32 left, __u8 next)
{
	struct walk w = {
		.offset = offset, .left = left, .next = next, .rule = SRH_REFUSED, .fragments = true
	};

	return walk_extensions(ctx, &w) == REASON_SRV6_FROM_OUTSIDE;
}

/*
 * A packet that is for no SID of this node, on an interface inside the domain: a reason to drop it,
 * or -1. The kernel would forward it to another node's SID, or follow its segment routing header,
 * if this node has the address.
 */
static __always_inline int guard_transit(struct xdp_md *ctx, const struct cursor *c,
					 const struct packet *p,
					 const volatile struct domain *domain)
{
	bool sid = is_sid_of_domain(domain, &p->flow.destination);

	if (likely(!sid && !is_extension(p->flow.protocol)))
		return -1;
	if (infrastructure_contains(&domain->infrastructure, &p->flow.source))
		return -1;
	if (sid)
		return REASON_OUTSIDE_DOMAIN;
	return has_srh(ctx, c->offset, c->left, p->flow.protocol) ? REASON_SRV6_FROM_OUTSIDE : -1;
}
