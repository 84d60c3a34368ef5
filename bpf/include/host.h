// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the host is told by its configuration, what it counts, and what it keeps of a packet's outer
 * headers. */
#pragma once

#include "counters.h"
#include "guard.h"
#include "service.h"

enum behavior {
	BEHAVIOR_NONE = 0,
	BEHAVIOR_END_OFFER,
	BEHAVIOR_END_DT4,
	BEHAVIOR_END_DT6,
	BEHAVIOR_END_DT46,
	BEHAVIOR_END_DT4_COND,
	BEHAVIOR_END_DT6_COND,
	BEHAVIOR_END_DT46_COND,
};

struct local_sid {
	struct prefix prefix; /* the bits behind it are the argument */
	enum behavior behavior; /* none: not a SID, and no more follow */
	__u32 reserved;
	struct address backup; /* of the conditional ends: where strays are sent */
};

#define SIDS_MAX 16

struct host_settings {
	struct domain domain;
	struct local_sid sids[SIDS_MAX]; /* longest prefix first: the first that fits is the one */
	/* Bits of an address's first word in which all of them agree, and what they are. */
	__u64 sids_mask;
	__u64 sids_common;
	__u64 netns_cookie; /* of the sockets that count as busy */
	__u32 refusal_jiffies; /* how long a refused SYN stays refused */
	__u16 mss_ipv4;
	__u16 mss_ipv6;
};

const volatile struct host_settings settings = {};

/* Per service; index 0 is for packets without a service of this host. */
struct host_traffic {
	__u64 offered; /* first SYNs that arrived with candidates left */
	__u64 accepted; /* of these, taken by the policy */
	__u64 refused; /* of these, passed on by the policy or because they were refused before */
	__u64 forced; /* first SYNs taken as the last candidate */
	struct traffic taken;
	struct traffic passed_on;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SERVICES_MAX);
	__type(key, __u32);
	__type(value, struct host_traffic);
} served SEC(".maps");

/* What remains of the outer headers once they are read. */
struct outer {
	__u32 length; /* of all of them */
	__u32 srh; /* offset; 0: none */
	__u32 sid; /* number of the SID */
	__u32 behavior; /* of the SID */
	__u8 traffic_class;
	__u8 next; /* the upper layer */
	bool argument; /* the SID has one, but for the mark of a copy */
	__u8 copy; /* 1 or 2: which one the packet is; 0: the only one */
	__u64 hash; /* of the inner flow, where a connection may open, QUIC or a copy comes */
};

/* The inner packet that a CPU is at. It lies in a map, so that the verifier takes what was parsed
 * for anything, whatever the way through the parser was: docs/results/benchmarks.md. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct packet);
} inner_packets SEC(".maps");

static __always_inline struct packet *inner_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&inner_packets, &zero);
}
