// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Packet and byte counters, one copy per CPU; Go adds them up when asked. */
#pragma once

#include "compat.h"
#include "reason.h"

#include <linux/if_ether.h>

#ifdef CAPTURES /* the programs of which "sextant capture" copies packets */
#include "capture.h"
#else
#define capture_bytes 0
#define capture_note(reason, outcome)
#endif

struct traffic {
	__u64 packets;
	__u64 bytes; /* of the IP packet of the client or server, without encapsulation */
};

/* Packets that were not dropped and not counted with a service. */
enum outcome {
	OUTCOME_PASSED = 0, /* not ours, to the kernel as it came */
	OUTCOME_HANDED, /* rewritten, and given to the kernel to find the next hop */
	OUTCOME_TRANSMITTED, /* sent by the program on the interface it came from */
	OUTCOME_REDIRECTED, /* sent by the program on another interface */
	OUTCOME_TAKEN, /* decapsulated for the local stack */
	OUTCOME_ECHOED, /* an echo request, answered for the VIP */
	OUTCOME_TOO_BIG_ANSWERED, /* too big for the path: thrown away, and its sender told by a
				     Packet Too Big */
	OUTCOME_TRANSLATED, /* a Packet Too Big of the SR domain, given to the kernel as one for the
			       client */
	OUTCOME_COPIED, /* sent along several paths at once */
	OUTCOME_LEARNED, /* a SYN-ACK that a host sent by way of the edge, given to the kernel to be
			    routed */
	OUTCOME_COUNT,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASON_COUNT);
	__type(key, enum drop_reason);
	__type(value, __u64);
} drops SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, OUTCOME_COUNT);
	__type(key, enum outcome);
	__type(value, __u64);
} outcomes SEC(".maps");

static __always_inline void count_in(void *map, __u32 index)
{
	__u64 *counter = bpf_map_lookup_elem(map, &index);

	if (counter)
		(*counter)++;
	if (capture_bytes)
		capture_note(map == &drops ? index : 0, map == &outcomes ? index + 1 : 0);
}

/* Not inlined: there are many of them, and none is in a hurry. */
static __noinline int drop(enum drop_reason reason)
{
	count_in(&drops, reason);
	return XDP_DROP;
}

static __noinline int pass(void)
{
	count_in(&outcomes, OUTCOME_PASSED);
	return XDP_PASS;
}

static __always_inline void traffic_add(struct traffic *t, __u32 bytes)
{
	if (!t)
		return;
	t->packets++;
	t->bytes += bytes;
}
