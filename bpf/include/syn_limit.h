// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* New connections of a service: how many it may get, and how many it got. */
#pragma once

#include "limit.h"
#include "service.h"

/* Of one service that is limited, and when the next one is due. */
struct new_connections {
	struct limit limit;
	__u64 due;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct new_connections);
} new_connections SEC(".maps");

/* SYNs to a service that is limited. */
struct openings {
	__u64 taken;
	__u64 refused;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct openings);
} openings SEC(".maps");

static __noinline bool syn_limit_take(__u32 service)
{
	struct new_connections *n = bpf_map_lookup_elem(&new_connections, &service);
	struct openings *o;
	bool may;

	if (!n)
		return true;
	may = limit_allows_shared(&n->limit, &n->due, bpf_ktime_get_ns());
	o = bpf_map_lookup_elem(&openings, &service);
	if (o && may)
		o->taken++;
	else if (o)
		o->refused++;
	return may;
}
