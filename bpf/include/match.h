// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What chooses packets by their IP and transport headers. */
#pragma once

#include "address.h"

/* What chooses traffic. A prefix without bits contains everything. */
struct match {
	struct prefix source;
	struct prefix destination;
	__u16 source_ports[2]; /* first and last, host order */
	__u16 destination_ports[2];
	__u8 family; /* 4, 6, 0: both */
	__u8 protocol; /* 0: any */
	__u8 dscp; /* 0xff: any */
	__u8 reserved[5];
};

#define DSCP_ANY 0xff

static __always_inline bool prefix_matches(const struct prefix *p, const struct address *a)
{
	return (a->word[0] & p->mask.word[0]) == p->address.word[0] &&
	       (a->word[1] & p->mask.word[1]) == p->address.word[1];
}

static __always_inline bool port_matches(const __u16 *ports, __be16 port)
{
	__u16 number = bpf_ntohs(port);

	return ports[0] <= number && number <= ports[1];
}
