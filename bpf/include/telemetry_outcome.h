// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What became of packets with in-band telemetry, or chosen for it, and why they were reported.
 */
#pragma once

#include "compat.h"
#include "reason.h"
#include "telemetry_flow.h"

#include <linux/pkt_cls.h>

enum telemetry_outcome {
	TELEMETRY_INSERTED = 0, /* by the source */
	TELEMETRY_PUSHED, /* by the transit */
	TELEMETRY_IN_PLACE, /* written by the transit into a free slot */
	TELEMETRY_REMOVED, /* by the sink */
	TELEMETRY_DISCARDED, /* by the sink, as the D bit says */
	TELEMETRY_CARRIES, /* chosen, but has telemetry or no encapsulation */
	TELEMETRY_SEGMENTED, /* chosen, but the kernel cuts it into packets later */
	TELEMETRY_MTU, /* no room: would be longer than the interface's MTU */
	TELEMETRY_HOPS, /* no hop remained */
	TELEMETRY_BROKEN, /* fields that contradict each other: left as it is */
	TELEMETRY_REFUSED, /* the kernel could not make or take room */
	TELEMETRY_LOST, /* no room in the ring buffer: not reported */
	TELEMETRY_FLOW_LIMIT, /* not reported: the flow was just now */
	TELEMETRY_LIMIT, /* not reported: too many were in this second */
	TELEMETRY_OUTSIDE, /* of the domain: the sink drops it, a transit leaves it as it is */
	TELEMETRY_OUTCOMES,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TELEMETRY_OUTCOMES);
	__type(key, __u32);
	__type(value, __u64);
} telemetry_outcomes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASON_COUNT);
	__type(key, enum drop_reason);
	__type(value, __u64);
} drops SEC(".maps");

/* Packets by each reason for which they were reported. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TELEMETRY_REASONS);
	__type(key, __u32);
	__type(value, __u64);
} telemetry_reasons SEC(".maps");

static __always_inline int outcome_count(__u32 outcome)
{
	__u64 *counter = bpf_map_lookup_elem(&telemetry_outcomes, &outcome);

	if (counter)
		++*counter;
	return TC_ACT_UNSPEC;
}
