// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The bench: a driver which gives the program under test a new packet at each
 * repeat of BPF_PROG_TEST_RUN. The kernel repeats on one buffer, and edge and host
 * change what is in it; so the driver gives the buffer its first length again, writes
 * the whole frame anew with the next flow's source, and tail-calls the program.
 * What the driver costs is measured with a target that does nothing, and taken off.
 * Method and figures: docs/results/benchmarks.md. Only the bench loads this object.
 */
#include "include/bench_driver.h"

#include "include/address.h"

#include <linux/ipv6.h>
#include <linux/tcp.h>

/* Whether the program under test leaves a note in front of the packet, which the next repeat would
 * find there. */
const volatile bool leaves_notes = false;

SEC("xdp.frags")
int drive(struct xdp_md *ctx)
{
	int length = ETH_HLEN + driver.count * sizeof(__u64);
	int has = bpf_xdp_get_buff_len(
		ctx); /* what the last repeat left: the end stays, the start moves */

	if (leaves_notes && bpf_xdp_adjust_meta(ctx, ctx->data - ctx->data_meta))
		return XDP_ABORTED;
	if (bpf_xdp_adjust_head(ctx, has - length) || !frame_renew(ctx, next_flow()))
		return XDP_ABORTED;
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}

/* What the driver costs: a target that does nothing. */
SEC("xdp.frags")
int nothing(struct xdp_md *ctx)
{
	return XDP_TX;
}

/* The yardstick: 40 constant bytes in front of the packet, without a look at it. */
SEC("xdp.frags")
int bare(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	struct eth_addresses addresses;

	if (data + ETH_HLEN > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	addresses = *(struct eth_addresses *)data;
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(struct ipv6hdr)))
		return XDP_ABORTED;
	data = (void *)(long)ctx->data;
	if (!bare_header_write(data, (void *)(long)ctx->data_end))
		return XDP_ABORTED;
	ethernet_write(data, &addresses, bpf_htons(ETH_P_IPV6));
	return XDP_TX;
}

/* What the host can not do without: the kernel's look-up of the socket of a TCP packet in one outer
 * header, and nothing else. */
SEC("xdp.frags")
int socket_alone(struct xdp_md *ctx)
{
	struct bpf_sock_tuple tuple __attribute__((aligned(8))) = {};
	void *inner = (void *)(long)ctx->data + ETH_HLEN + sizeof(struct ipv6hdr);
	struct tcphdr *tcp = inner + sizeof(struct ipv6hdr);
	struct address source, destination;
	struct bpf_sock *sk;

	if ((void *)(tcp + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	source = address_load(inner + __builtin_offsetof(struct ipv6hdr, saddr));
	destination = address_load(inner + __builtin_offsetof(struct ipv6hdr, daddr));
	address_store(tuple.ipv6.saddr, &source);
	address_store(tuple.ipv6.daddr, &destination);
	tuple.ipv6.sport = tcp->source;
	tuple.ipv6.dport = tcp->dest;
	sk = bpf_skc_lookup_tcp(ctx, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (!sk)
		return XDP_ABORTED;
	bpf_sk_release(sk);
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
