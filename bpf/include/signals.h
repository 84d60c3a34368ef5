// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Passive signals: what clients of a host's services met with, for edges that ask the host's agent.
 */
#pragma once

#include "compat.h"
#include "service.h"

/* What clients met with, per service: signs that the server does not work. */
struct host_signals {
	__u64 resets; /* RSTs that left */
	__u64 established; /* connections that were opened as a whole */
	__u64 by_edge; /* SYN-ACKs that went by way of the edge that asked for them */
	__u64 not_routed; /* SYN-ACKs that an edge asked for, but to which there is no route */
	__u64 stray_resets; /* of the RSTs, those about packets of no connection of this host */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct host_signals);
} signals SEC(".maps");
