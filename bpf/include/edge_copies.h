// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Copies of what is worth it: a packet to a backend with two paths goes over both, and its host
 * takes the first that comes (offer_copies.h). The packet is encapsulated for the one path and
 * given to the kernel, with a note of the other path in front of the frame. A program at the
 * kernel's door (TC ingress) sends a copy with the other path into a loop, whose inner end the
 * kernel forwards from. Specification: docs/reference/dataplane.md, "Edge".
 */
#pragma once

#include "copy_mark.h"
#include "ip.h"
#include "path.h"

#include <linux/pkt_cls.h>

/* Of the loop: where copies go in, and the address of the end where they come out. */
struct copy_loop {
	__u32 outer; /* interface index */
	__u8 address[ETH_ALEN];
	__u8 reserved[2];
};

const volatile struct copy_loop copy_loop = {};

/* In front of a frame on its way to the kernel (XDP metadata). */
struct second_copy {
	struct address destination; /* of the other copy */
};

/* Whether the copies of a packet go over both paths. Offsets are those of its headers. */
static __always_inline bool copies_wanted(struct xdp_md *ctx, const struct service *service,
					  const struct packet *p, __u32 ip, __u32 transport)
{
	__u8 *tcp;

	if (!has_paths || likely(!(service->paths & SERVICE_COPIES)) || p->fragment)
		return false;
	if (service->paths & SERVICE_COPIES_ALL)
		return true;
	if (p->flow.protocol != IPPROTO_TCP || p->icmp)
		return false;
	if (service->paths & SERVICE_COPIES_SYN && is_first_syn(p))
		return true;
	tcp = (void *)(long)ctx->data + (transport & OFFSET_MAX);
	return service->paths & SERVICE_COPIES_DATA &&
	       tcp + sizeof(struct tcphdr) <= (__u8 *)(long)ctx->data_end &&
	       p->length > transport - ip + (tcp[TCP_FLAGS_OFFSET - 1] >> 4) * 4;
}

/* The destination of a copy over a path, of which the chain's carrier is known. */
static __always_inline void copy_lead(struct address *carrier, const struct path *path, __u32 copy)
{
	if (path->length)
		carrier_lead(carrier, path);
	carrier->word[1] |= bpf_cpu_to_be64(COPY_MARK + copy);
}

/*
 * Gives an encapsulated packet, which is the first copy, to the kernel, with a note of the second
 * one; carrier: that of its chain. Where the driver has no room for a note, it goes alone. Not
 * inlined, to spare the stack.
 */
static __noinline int copies_leave(struct xdp_md *ctx, const struct path *second, __u64 high,
				   __u64 low)
{
	struct address destination = { { high, low } };
	struct second_copy *note;

	copy_lead(&destination, second, 1);
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*note)))
		return XDP_PASS;
	note = (void *)(long)ctx->data_meta;
	if ((void *)(note + 1) > (void *)(long)ctx->data)
		return XDP_PASS;
	note->destination = destination;
	count_in(&outcomes, OUTCOME_COPIED);
	return XDP_PASS;
}

#define COPY_DESTINATION (ETH_HLEN + offsetof(struct ipv6hdr, daddr))

/* Gives a frame a destination of its outer header, and an Ethernet address to which it goes. */
static __always_inline bool copy_address(struct __sk_buff *skb, const struct address *destination,
					 const __u8 *to)
{
	return !bpf_skb_store_bytes(skb, COPY_DESTINATION, destination, sizeof(*destination),
				    BPF_F_RECOMPUTE_CSUM) &&
	       !bpf_skb_store_bytes(skb, 0, to, ETH_ALEN, 0);
}

/* Sends a copy of a packet with a note into the loop, and lets the packet go on (TC ingress). */
static __always_inline int copy_send(struct __sk_buff *skb)
{
	struct second_copy *note = (void *)(long)skb->data_meta;
	void *data = (void *)(long)skb->data;
	struct address first, second;
	__u8 own[ETH_ALEN], loop[ETH_ALEN];

	if ((void *)(note + 1) > data ||
	    data + COPY_DESTINATION + sizeof(first) > (void *)(long)skb->data_end)
		return TC_ACT_UNSPEC;
	second = note->destination;
	first = address_load(data + COPY_DESTINATION);
	__builtin_memcpy(own, data, ETH_ALEN);
	for (int i = 0; i < ETH_ALEN; i++)
		loop[i] = copy_loop.address[i];
	if (copy_address(skb, &second, loop))
		bpf_clone_redirect(skb, copy_loop.outer, 0);
	return copy_address(skb, &first, own) ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}
