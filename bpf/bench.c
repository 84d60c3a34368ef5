// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The bench: a driver which gives the program under test a new packet at each
 * repeat of BPF_PROG_TEST_RUN. The kernel repeats on one buffer, and edge and host
 * change what is in it; so the driver gives the buffer its first length again, writes
 * the whole frame anew with the next flow's source, and tail-calls the program.
 * What the driver costs is measured with a target that does nothing, and taken off.
 * Method and figures: docs/benchmarks.md. Only the bench loads this object.
 */
#include "include/frame.h"

#include <linux/ipv6.h>

#define FRAME_WORDS 30 /* behind the L2 header */
#define PORTS_LOG2 12 /* flows that differ in the port alone; then the address changes */

/*
 * The frame, in words of 8 bytes behind its Ethernet header. Stores of this size and place forward to any load of
 * an address or a port: others would stall the program under test as no packet from a network card does.
 */
struct driver {
	__u64 words[FRAME_WORDS];
	struct eth_addresses addresses;
	__be16 ethertype;
	__u16 reserved;
	__u32 count; /* of words */
	__u32 source; /* the word whose upper half is the end of the source address */
	__u32 ports; /* offset of the source port in the frame */
	__u32 flows; /* visited in turn, stride apart */
	__u32 stride;
	__u32 flow; /* the next one */
};

struct driver driver = {};

/* The program under test. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} target SEC(".maps");

static __always_inline __u32 next_flow(void)
{
	__u32 flow = driver.flow, next = flow + driver.stride;

	driver.flow = next < driver.flows ? next : next - driver.flows;
	return flow;
}

static __always_inline void ethernet_write(void *data, const struct eth_addresses *addresses, __be16 ethertype)
{
	*(struct eth_addresses *)data = *addresses;
	*(__be16 *)(data + ETH_ADDRESSES) = ethertype;
}

/* The whole frame anew, from the flow of this number. */
static __always_inline bool frame_renew(struct xdp_md *ctx, __u32 flow)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__be16 *port = data + (driver.ports & 0xff);
	__u64 *word = data + ETH_HLEN;
	__u32 source = driver.source;

	if (data + ETH_HLEN > end)
		return false;
	ethernet_write(data, &driver.addresses, driver.ethertype);
	for (int i = 0; i < FRAME_WORDS; i++) {
		if (i >= driver.count || (void *)(word + i + 1) > end)
			break;
		word[i] = driver.words[i];
	}
	if (source >= FRAME_WORDS || (void *)(word + source + 1) > end || (void *)(port + 1) > end)
		return false;
	word[source] = driver.words[source] + ((__u64)bpf_htonl(flow >> PORTS_LOG2) << 32);
	*port += bpf_htons(flow & ((1 << PORTS_LOG2) - 1));
	return true;
}

SEC("xdp.frags")
int drive(struct xdp_md *ctx)
{
	int length = ETH_HLEN + driver.count * sizeof(__u64);
	int has = bpf_xdp_get_buff_len(ctx); /* what the last repeat left: the end stays, the start moves */

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
	__u64 *outer;

	if (data + ETH_HLEN > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	addresses = *(struct eth_addresses *)data;
	if (bpf_xdp_adjust_head(ctx, -(int)sizeof(struct ipv6hdr)))
		return XDP_ABORTED;
	data = (void *)(long)ctx->data;
	outer = data + ETH_HLEN;
	if (data + ETH_HLEN + sizeof(struct ipv6hdr) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	ethernet_write(data, &addresses, bpf_htons(ETH_P_IPV6));
	outer[0] = bpf_cpu_to_be64(6ULL << 60 | 72 << 16 | 41 << 8 | 64);
	outer[1] = bpf_cpu_to_be64(0xfd00005e00000000);
	outer[2] = bpf_cpu_to_be64(0xe1);
	outer[3] = bpf_cpu_to_be64(0xfcbbbb0000010002);
	outer[4] = 0;
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
