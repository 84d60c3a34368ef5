// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The next hop of an SRv6 packet: the kernel's FIB, remembered for a moment.
 *
 * A FIB look-up costs more than all the rest of the edge. Its answer for a
 * compressed SID is kept per CPU until it is 100 ms old or the agent has seen a
 * change of routes or neighbours (fib_epoch). ECMP is preserved: eight answers are
 * kept per SID, each looked up with a flow label of its own, and a flow's hash
 * names the one it uses, so a refreshed answer is the same answer.
 */
#pragma once

#include "address.h"
#include "counters.h"
#include "frame.h"

#include <linux/ipv6.h>

#define NEXT_HOP_CHOICES 8
#define NEXT_HOP_SIDS 4096 /* by the low bits of the SID's id; others evict */
#define FLOW_LABEL_STEP 0x1f35b /* spreads the choices over the 20 bits */

enum next_hop_how {
	NEXT_HOP_UNKNOWN = 0, /* never asked for */
	NEXT_HOP_SEND, /* interface and addresses are known */
	NEXT_HOP_HAND, /* the kernel must find out */
	NEXT_HOP_NONE, /* the routing table refuses */
} __attribute__((packed)); /* one byte */

/* Half a cache line. */
struct next_hop {
	__u32 since; /* jiffies */
	__u32 epoch;
	__u32 interface;
	__u16 id; /* which SID the entry is about, host order */
	__u16 mtu;
	struct eth_addresses addresses;
	enum next_hop_how how;
	__u8 reserved[3];
};

/* By choice. The kernel allocates each entry of a per-CPU map by itself: many small ones take long
 * to load. */
struct next_hop_set {
	struct next_hop choices[NEXT_HOP_CHOICES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NEXT_HOP_SIDS + 1); /* the last: for answers that are not kept */
	__type(key, __u32);
	__type(value, struct next_hop_set);
} next_hops SEC(".maps");

/* Raised by the agent at each change of routes or neighbours, and of the edge's services. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} fib_epoch SEC(".maps");

/* Interfaces on which frames can be sent without the kernel, by interface index. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, 64);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} ports SEC(".maps");

/* Kernel ticks per second, from the loader. */
const volatile __u32 jiffies_per_second = 250;

/* For how many ticks an answer is kept, likewise: packets are spared the division. */
const volatile __u32 next_hop_lifetime = 25;

static __always_inline __u32 fib_epoch_now(void)
{
	__u32 zero = 0;
	__u32 *epoch = bpf_map_lookup_elem(&fib_epoch, &zero);

	return epoch ? *epoch : 0;
}

/*
 * Asks the kernel. Only what the answer depends on is given: no ports, no length. Not inlined, to
 * spare the stack, and not static, so that the verifier looks at it once.
 */
__noinline int next_hop_resolve(struct xdp_md *ctx, const struct address *source,
				const struct address *destination, __u32 choice,
				struct next_hop *hop)
{
	struct bpf_fib_lookup fib __attribute__((aligned(8))) = {
		.family = AF_INET6,
		.tot_len = 1, /* makes the kernel report the path MTU */
		.ifindex = ctx->ingress_ifindex,
		.flowinfo = bpf_htonl((choice + 1) * FLOW_LABEL_STEP & 0xfffff),
	};
	__u32 interface;
	long verdict;

	if (!source || !destination || !hop)
		return 0;
	address_store(fib.ipv6_src, source);
	address_store(fib.ipv6_dst, destination);
	verdict = bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
	switch (verdict) {
	case BPF_FIB_LKUP_RET_SUCCESS:
		hop->how = NEXT_HOP_SEND;
		break;
	case BPF_FIB_LKUP_RET_BLACKHOLE:
	case BPF_FIB_LKUP_RET_UNREACHABLE:
	case BPF_FIB_LKUP_RET_PROHIBIT:
		hop->how = NEXT_HOP_NONE;
		break;
	default:
		hop->how = NEXT_HOP_HAND;
		break;
	}
	interface = fib.ifindex;
	hop->interface = interface;
	hop->mtu = verdict == BPF_FIB_LKUP_RET_SUCCESS ? fib.mtu_result : 0;
	__builtin_memcpy(&hop->addresses, fib.dmac, ETH_ALEN);
	__builtin_memcpy((void *)&hop->addresses + ETH_ALEN, fib.smac, ETH_ALEN);
	/* An interface which no program can send on: the kernel can. */
	if (hop->how == NEXT_HOP_SEND && interface != ctx->ingress_ifindex &&
	    !bpf_map_lookup_elem(&ports, &interface)) /* Linux 6.1 takes no key but of the stack */
		hop->how = NEXT_HOP_HAND;
	return 0;
}

/* Where the next hop towards a compressed SID is remembered. */
static __always_inline struct next_hop *next_hop_place(__u16 id, __u8 choice)
{
	__u32 index = id % NEXT_HOP_SIDS;
	struct next_hop_set *set = bpf_map_lookup_elem(&next_hops, &index);

	return set ? &set->choices[choice % NEXT_HOP_CHOICES] : 0;
}

static __always_inline bool next_hop_is_fresh(const struct next_hop *hop, __u16 id, __u32 epoch,
					      __u32 now)
{
	return hop->id == id && hop->epoch == epoch && hop->how == NEXT_HOP_SEND &&
	       now - hop->since < next_hop_lifetime;
}

/* The next hop towards a compressed SID if it is remembered and fresh in the epoch, else 0. */
static __always_inline struct next_hop *next_hop_remembered(__u16 id, __u8 choice, __u32 epoch)
{
	struct next_hop *hop = next_hop_place(id, choice);

	return hop && next_hop_is_fresh(hop, id, epoch, bpf_jiffies64()) ? hop : 0;
}

/*
 * The next hop towards a compressed SID, from memory if it is fresh. An answer that
 * can't be used for sending is asked for again each time: that is the slow path anyway.
 */
static __always_inline struct next_hop *next_hop_for(struct xdp_md *ctx,
						     const struct address *source,
						     const struct address *destination, __u16 id,
						     __u8 choice)
{
	__u32 now = bpf_jiffies64(), epoch = fib_epoch_now();
	struct next_hop *hop = next_hop_place(id, choice);

	if (!hop || likely(next_hop_is_fresh(hop, id, epoch, now)))
		return hop;
	next_hop_resolve(ctx, source, destination, choice, hop);
	hop->id = id;
	hop->epoch = epoch;
	hop->since = now;
	return hop;
}

/* The next hop towards any other segment, asked for each time. */
static __always_inline struct next_hop *next_hop_uncached(struct xdp_md *ctx,
							  const struct address *source,
							  const struct address *destination,
							  __u8 choice)
{
	__u32 index = NEXT_HOP_SIDS;
	struct next_hop_set *set = bpf_map_lookup_elem(&next_hops, &index);

	if (!set)
		return 0;
	next_hop_resolve(ctx, source, destination, choice % NEXT_HOP_CHOICES, &set->choices[0]);
	return &set->choices[0];
}

/* Puts the next hop's addresses on the frame. Another link has other VLANs: only a frame that turns
 * round keeps its tags. */
static __always_inline void next_hop_apply(struct xdp_md *ctx, const struct next_hop *hop,
					   struct frame *f)
{
	f->addresses = hop->addresses;
	if (hop->interface != ctx->ingress_ifindex)
		f->tags_length = 0;
}

/* Sends the frame, which carries the next hop's addresses already. */
static __always_inline int next_hop_send(struct xdp_md *ctx, const struct next_hop *hop)
{
	if (hop->interface == ctx->ingress_ifindex) {
		count_in(&outcomes, OUTCOME_TRANSMITTED);
		return XDP_TX;
	}
	count_in(&outcomes, OUTCOME_REDIRECTED);
	return bpf_redirect_map(&ports, hop->interface, 0);
}

/* The end of a frame that was rewritten for the next hop: it is sent, or the kernel sends it. */
static __always_inline int next_hop_leave(struct xdp_md *ctx, const struct next_hop *hop)
{
	if (hop->how == NEXT_HOP_SEND)
		return next_hop_send(ctx, hop);
	count_in(&outcomes, OUTCOME_HANDED);
	return XDP_PASS;
}
