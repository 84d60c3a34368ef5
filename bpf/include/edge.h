// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the edge is told by its configuration. */
#pragma once

#include "guard.h"
#include "srh.h"

struct edge_settings {
	struct domain domain;
	struct address shadow; /* the SID to which hosts send strays; 0: none */
	__be16 last_offer; /* behind a backend's SID: deliver, whatever you know */
	enum encapsulation encapsulation;
	enum side side;
	__u8 reserved[4];
	/* Bits of an address's first word in which all of the domain agree, and what they are. */
	__u64 inside_mask;
	__u64 inside;
};

const volatile struct edge_settings settings = {};

/* Whether an address may be a SID of the domain or one of its nodes; most are told apart here. */
static __always_inline bool may_be_inside(const struct address *a)
{
	return (a->word[0] & settings.inside_mask) == settings.inside;
}

/* The hash of a flow. Not static, so that the verifier looks at it once; it spares the stack, too.
 * Where packets are many, it is not called: on some processors a return costs as much as a look-up
 * in a table. */
__noinline __u64 edge_flow_hash(const struct flow *f)
{
	return f ? flow_hash(&settings.domain.secret, f) : 0;
}

/* What outer headers have: config.EdgeOuter, field by field. */
struct edge_outer {
	__u8 hop_limit;
	__u8 dscp; /* DSCP_COPY: that of the packet inside */
	bool ecn;  /* taken over from the packet inside */
};

const volatile struct edge_outer outer_settings = {};

#define DSCP_COPY 0xff

/* RFC 2983: the uniform model by default, else the pipe model; ECN as RFC 6040's normal mode by
 * default, else the compatibility mode. */
static __always_inline __u8 edge_traffic_class(const struct packet *inner)
{
	__u8 class = inner->traffic_class;

	if (outer_settings.dscp != DSCP_COPY)
		class = outer_settings.dscp << 2 | (class & ECN_MASK);
	return outer_settings.ecn ? class : class & ~ECN_MASK;
}
