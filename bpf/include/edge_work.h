// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The packet that a CPU is at, on the edge's general way. It lies in a map, so that steps can be
 * functions which the verifier follows once: what one has found may be anything to the next, and
 * the ways through them do not multiply.
 */
#pragma once

#include "ip.h"

struct edge_work {
	struct packet packet;
	struct frame frame;
	__u32 offset; /* of what is behind the headers that were parsed */
	__u32 left; /* bytes of the packet from there */
	__u32 outer_length; /* of the headers before the packet, where it came in others */
	__u32 srh; /* offset of the SRH among them; 0: there was none */
	struct address source; /* of the outer header, for the FIB: here it spares the stack */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct edge_work);
} edge_works SEC(".maps");

static __always_inline struct edge_work *edge_work_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&edge_works, &zero);
}
