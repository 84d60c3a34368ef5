// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * QUIC connections that a host took lately. The kernel does not see them, and until the client
 * has the server's connection ID, the same chain brings all its packets: what follows the first has
 * to be taken too.
 */
#pragma once

#include "quic.h"
#include "service.h"

/* As with refusals: the upper half of the flow hash and the time in jiffies, one slot per lower
 * half. */
#define QUIC_FLOWS 65536

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, QUIC_FLOWS);
	__type(key, __u32);
	__type(value, __u64);
} quic_flows SEC(".maps");

static __always_inline void quic_remember(__u64 hash)
{
	__u32 slot = hash % QUIC_FLOWS;
	__u64 *taken = bpf_map_lookup_elem(&quic_flows, &slot);

	if (taken)
		*taken = (hash >> 32) << 32 | (__u32)bpf_jiffies64();
}

/* Whether the flow was taken less than so many jiffies ago. */
static __always_inline bool quic_is_here(__u64 hash, __u32 jiffies)
{
	__u32 slot = hash % QUIC_FLOWS;
	__u64 *taken = bpf_map_lookup_elem(&quic_flows, &slot);
	__u32 now = bpf_jiffies64();

	return taken && *taken && *taken >> 32 == hash >> 32 && now - (__u32)*taken < jiffies;
}

/* Is a socket bound to where the packet goes? */
static __always_inline bool quic_has_server(struct xdp_md *ctx, const struct packet *p)
{
	struct bpf_sock_tuple tuple __attribute__((aligned(8))) = {};
	struct bpf_sock *sk;

	if (p->flow.ipv4) {
		tuple.ipv4.saddr = p->flow.source.word[1] >> 32;
		tuple.ipv4.daddr = p->flow.destination.word[1] >> 32;
		tuple.ipv4.sport = p->flow.ports;
		tuple.ipv4.dport = p->flow.ports >> 16;
		sk = bpf_sk_lookup_udp(ctx, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	} else {
		address_store(tuple.ipv6.saddr, &p->flow.source);
		address_store(tuple.ipv6.daddr, &p->flow.destination);
		tuple.ipv6.sport = p->flow.ports;
		tuple.ipv6.dport = p->flow.ports >> 16;
		sk = bpf_sk_lookup_udp(ctx, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	}
	if (!sk)
		return false;
	bpf_sk_release(sk);
	return true;
}
