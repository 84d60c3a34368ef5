// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The bench of forwarding: sender and receiver of frames that pass a machine under test, and what
 * that machine does at least. The sender is repeated by BPF_PROG_TEST_RUN with
 * BPF_F_TEST_XDP_LIVE_FRAMES: each repeat writes a frame of the next flow and sends it. Method and
 * figures: docs/results/forwarding.md. Only the bench loads this object.
 */
#include "include/bench_driver.h"

#include "include/address.h"

#include <linux/ipv6.h>

#define KEPT 1024 /* frames */
#define KEPT_BYTES 192

/* How a frame arrives that was forwarded as it should be. */
struct arrival {
	struct address destination;
	__u32 at; /* offset of that destination */
	__u32 length;
	__u8 protocol; /* of the first IPv6 header */
	__u8 keeps; /* the receiver keeps the first frames */
	__u16 reserved[3];
};

struct arrival arrival = {};

struct arrived {
	__u64 packets;
	__u64 right;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct arrived);
} arrivals SEC(".maps");

struct kept {
	__u8 octets[KEPT_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KEPT);
	__type(key, __u32);
	__type(value, struct kept);
} kept SEC(".maps");

/* The interface behind which the router is, at index 0. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} far SEC(".maps");

/* The interface of the sender. */
__u32 near_interface = 0;

/* Addresses of the frames that go to the router. */
struct eth_addresses to_router = {};

SEC("xdp.frags")
int forward_send(struct xdp_md *ctx)
{
	if (!frame_renew(ctx, next_flow()))
		return XDP_ABORTED;
	return bpf_redirect(near_interface, 0);
}

/* An interface that sends what programs give it needs a program of its own. */
SEC("xdp.frags")
int forward_pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

/* The least that a machine does which forwards: other MAC addresses, another interface. */
SEC("xdp.frags")
int forward_through(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;

	if (data + ETH_HLEN > (void *)(long)ctx->data_end)
		return XDP_DROP;
	ethernet_write(data, &to_router, bpf_htons(ETH_P_IPV6));
	return bpf_redirect_map(&far, 0, 0);
}

/* The yardstick: the same, and 40 constant bytes in front of the packet. */
SEC("xdp.frags")
int forward_bare(struct xdp_md *ctx)
{
	void *data;

	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(struct ipv6hdr)))
		return XDP_DROP;
	data = (void *)(long)ctx->data;
	if (!bare_header_write(data, frame_end(ctx)))
		return XDP_DROP;
	ethernet_write(data, &to_router, bpf_htons(ETH_P_IPV6));
	return bpf_redirect_map(&far, 0, 0);
}

/* The receiver, which counts what is right, and throws all away. */
SEC("xdp.frags")
int forward_receive(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u32 zero = 0, at = arrival.at & 0xff, number;
	struct arrived *counts = bpf_map_lookup_elem(&arrivals, &zero);
	__u64 length = end - data;
	struct address destination;
	struct ipv6hdr *ip = data + ETH_HLEN;
	struct kept *copy;

	if (!counts)
		return XDP_DROP;
	counts->packets++;
	if ((void *)(ip + 1) > end || data + at + sizeof(destination) > end)
		return XDP_DROP;
	destination = address_load(data + at);
	if (length != arrival.length || ip->version != 6 || ip->nexthdr != arrival.protocol ||
	    destination.word[0] != arrival.destination.word[0] ||
	    destination.word[1] != arrival.destination.word[1])
		return XDP_DROP;
	number = counts->right++;
	if (arrival.keeps && (copy = bpf_map_lookup_elem(&kept, &number)) && length >= ETH_HLEN) {
		barrier_var(length); /* Linux 6.1 needs both bounds of the same register */
		if (length <= KEPT_BYTES)
			bpf_xdp_load_bytes(ctx, 0, copy->octets, length);
	}
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
