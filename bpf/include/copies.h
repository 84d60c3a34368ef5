// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies of a packet at a head-end: how often it is sent into the loop, what stands in
 * front of it meanwhile, and which of the copies that come out is which.
 */
#pragma once

#include "frame.h"
#include "policy.h"

struct copies {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, LISTS_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
};

/* By the number of copies wanted: that many times the loop. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, LISTS_MAX + 1);
	__type(key, __u32);
	__array(values, struct copies);
} broadcasts SEC(".maps");

/*
 * Which copy of a packet is which: they come out of the loop alike, and each takes the next list.
 * By the packet's number, with more places than the loop holds frames: the number's low 56 bits,
 * and how many copies have come.
 */
#define CLAIMS 512

struct claims {
	__u64 places[CLAIMS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, POLICIES_MAX);
	__type(key, __u32);
	__type(value, struct claims);
} claims SEC(".maps");

/* In front of a frame on its way through the loop to become a copy: an Ethernet header, of which
 * the payload is a note and the frame. */
struct copy_note {
	struct eth_addresses addresses;
	__be16 ethertype; /* ETH_P_COPY */
	__u16 l2; /* length of the frame's L2 header */
	__u64 hash;
	__u64 number;
	__u32 timestamp;
	__u32 policy;
	__u32 rule;
	__u16 length; /* of the IP packet */
	__u8 traffic_class;
	__u8 ipv4;
};

#define ETH_P_COPY 0x88b5 /* IEEE 802: local experimental EtherType 1 */

/* Which of the copies of its packet this one is. */
static __always_inline __u32 copy_claim(__u32 policy, __u64 number)
{
	struct claims *c = bpf_map_lookup_elem(&claims, &policy);
	__u64 *place;

	if (!c)
		return LISTS_MAX;
	place = &c->places[number % CLAIMS];
	for (int i = 0; i < 2 * LISTS_MAX; i++) {
		__u64 old = *(volatile __u64 *)place, fresh = number << 8 | 1;

		if (old >> 8 == (number << 8) >> 8 && (old & 0xff))
			fresh = old + 1;
		if (__sync_val_compare_and_swap(place, old, fresh) == old)
			return (fresh & 0xff) - 1;
	}
	return LISTS_MAX;
}
